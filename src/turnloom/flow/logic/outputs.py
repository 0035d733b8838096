"""Pydantic models as outputs of agents."""

from typing import Any

from pydantic import BaseModel, ValidationError

from turnloom.agents.spec.outputs import Validated
from turnloom.kernel.values import Json


class ModelOutput:
    """A pydantic model as the output model of an agent."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self.name = model.__name__
        self.schema: dict[str, Json] = model.model_json_schema()

    def validate(self, value: Json) -> Validated:
        """The value with defaults filled in, or what is wrong with it."""
        try:
            return Validated(self.model.model_validate(value).model_dump(mode="json"))
        except ValidationError as error:
            return Validated(None, "\n".join(_line(each) for each in error.errors()))


def _line(detail: Any) -> str:
    where = ".".join(map(str, detail["loc"]))
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])
