"""What Turnloom uses of jsonschema, which has no types of its own."""

from collections.abc import Mapping
from typing import Any, ClassVar

class SchemaError(Exception):
    message: str

class Draft202012Validator:
    META_SCHEMA: ClassVar[dict[str, Any]]
    FORMAT_CHECKER: ClassVar[Any]
    def __init__(self, schema: dict[str, Any]) -> None: ...
    @classmethod
    def check_schema(cls, schema: Mapping[str, Any]) -> None: ...
