from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator

def validator_for(
    schema: Mapping[str, Any], default: type[Draft202012Validator]
) -> type[Draft202012Validator]: ...
