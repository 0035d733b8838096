"""Whether keys of mappings come back from JSON, in which every key is a text."""

from collections.abc import Iterator
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaSerializer, SchemaValidator, core_schema


def lost_key(model: type[BaseModel]) -> tuple[Any] | None:
    """A key of a mapping in a model that does not come back as it is, if there is one that can be
    told before anything runs: of an enum, of a `Literal`, or null."""
    try:
        model.model_json_schema(schema_generator=_Looking)
    except _Lost as lost:
        return (lost.key,)
    return None


class _Lost(Exception):
    """A key does not come back."""

    def __init__(self, key: Any) -> None:
        self.key = key


class _Looking(GenerateJsonSchema):
    """Comes by every mapping of a model, and looks at its keys."""

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """The schema of a mapping whose keys come back.

        Raises:
            _Lost: one does not.
        """
        keys = schema.get("keys_schema")
        for key in _known(keys) if keys else ():
            if not _comes_back(core_schema.dict_schema(keys), key):
                raise _Lost(key)
        return super().dict_schema(schema)


def _known(keys: core_schema.CoreSchema) -> Iterator[Any]:
    """The keys that there are, where that can be told."""
    match keys:
        case {"type": "enum", "members": [*members]}:
            yield from members
        case {"type": "literal", "expected": [*expected]}:
            yield from expected
        case {"type": "nullable", "schema": inner}:
            yield None
            yield from _known(cast(core_schema.CoreSchema, inner))
        case {"type": "union", "choices": [*choices]}:
            for each in cast(list[core_schema.CoreSchema], choices):
                yield from _known(each)
        case _:
            return


def _comes_back(mapping: core_schema.DictSchema, key: Any) -> bool:
    whole = {key: None}
    try:
        text = SchemaSerializer(mapping).to_json(whole)
        return SchemaValidator(mapping).validate_json(text) == whole
    except ValueError:
        return False
