"""Check that the models inside a flow's state are frozen."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


def loose_models(model: type[BaseModel]) -> list[type]:
    """The models and dataclasses inside a model that are not frozen, sorted by name."""
    found: dict[type, None] = {}

    class Visitor(GenerateJsonSchema):
        """Visits every nested model and dataclass."""

        def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
            """Collect a model."""
            found.setdefault(schema["cls"])
            return super().model_schema(schema)

        def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
            """Collect a dataclass."""
            found.setdefault(schema["cls"])
            return super().dataclass_schema(schema)

    model.model_json_schema(schema_generator=Visitor)
    loose = [each for each in found if each is not model and not _is_frozen(each)]
    return sorted(loose, key=lambda each: each.__qualname__)


def _is_frozen(kind: type[Any]) -> bool:
    if issubclass(kind, BaseModel):
        return bool(kind.model_config.get("frozen"))
    return kind.__dataclass_params__.frozen
