from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

def extend(
    validator: type[Any],
    validators: Mapping[str, Callable[[Any, Any, Any, Any], Iterable[ValidationError]]],
) -> Any: ...
def validator_for(
    schema: Mapping[str, Any], default: type[Draft202012Validator]
) -> type[Draft202012Validator]: ...
