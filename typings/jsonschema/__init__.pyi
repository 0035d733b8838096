"""The part of jsonschema that Weft calls; the package ships no types."""

from collections.abc import Mapping
from typing import Any

class SchemaError(Exception):
    message: str

class Draft202012Validator:
    @classmethod
    def check_schema(cls, schema: Mapping[str, Any]) -> None: ...
