"""Whether the models inside of a flow's state are frozen, as the state is."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema


def loose_models(model: type[BaseModel]) -> list[type]:
    """The models and dataclasses inside of a model that are not frozen, by name."""
    found: dict[type, None] = {}

    class Looking(GenerateJsonSchema):
        """Comes by every model and dataclass, however deep it stands."""

        def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
            """The schema of a model, of which is noted whether it is frozen."""
            found.setdefault(schema["cls"])
            return super().model_schema(schema)

        def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
            """The schema of a dataclass, of which is noted whether it is frozen."""
            found.setdefault(schema["cls"])
            return super().dataclass_schema(schema)

    model.model_json_schema(schema_generator=Looking)
    loose = [each for each in found if each is not model and not _is_frozen(each)]
    return sorted(loose, key=lambda each: each.__qualname__)


def _is_frozen(kind: type[Any]) -> bool:
    if issubclass(kind, BaseModel):
        return bool(kind.model_config.get("frozen"))
    return kind.__dataclass_params__.frozen
