from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError

def extend(
    validator: type[Any],
    validators: Mapping[str, Callable[[Any, Any, Any, Any], Iterable[ValidationError]]],
) -> Any: ...
