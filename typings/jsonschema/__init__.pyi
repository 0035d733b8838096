"""What Weft uses of jsonschema, which has no types of its own."""

from typing import Any, ClassVar

class Draft202012Validator:
    META_SCHEMA: ClassVar[dict[str, Any]]
    FORMAT_CHECKER: ClassVar[Any]
    def __init__(self, schema: dict[str, Any]) -> None: ...
