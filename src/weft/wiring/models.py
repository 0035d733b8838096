"""Engines that ask models, by the names of the models."""

import inspect
from typing import Any

from weft.agents.spec import Engine
from weft.errors import UsageError
from weft.wiring.adapters import adapter
from weft.wiring.local import LOCAL, LocalEngine

# The engine that asks a model which is named and nothing more.
MODELS = "pydantic_ai"

# The engines that ask models, and what makes one for a model.
ASKING = {
    MODELS: "PydanticAIEngine",
    "ag2": "AG2Engine",
    "autogen": "AutogenEngine",
    "dspy": "DSPyEngine",
}


class Unanswered(Exception):
    """An agent that nothing makes answer."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Models:
    """The engines of an app that ask models; `default` is asked where no model is named."""

    def __init__(self, default: str = "") -> None:
        self.default = default
        self._made: dict[tuple[str, str], Any] = {}

    def engine(self, model: str, kind: str = MODELS) -> Engine:
        """The engine that asks a model; the agents of an app share it.

        Raises:
            Unanswered: it cannot be asked.
        """
        if (kind, model) not in self._made:
            try:
                make = getattr(adapter(kind), ASKING[kind])
                made = LocalEngine(make) if model == LOCAL else make(model, keep_open=True)
            except UsageError as error:
                raise Unanswered(str(error)) from error
            self._made.setdefault((kind, model), made)
        return self._made[kind, model]

    def answering(self, given: Any) -> Engine:
        """An engine, a function that answers as one, or a model by its name.

        Raises:
            UsageError: the model cannot be asked.
        """
        if inspect.isroutine(given):
            return adapter("functions").FunctionEngine(given)
        if not isinstance(given, str):
            return given
        try:
            return self.engine(given)
        except Unanswered as error:
            raise UsageError(error.message) from error

    async def aclose(self) -> None:
        """Part from the providers."""
        while self._made:
            await self._made.popitem()[1].aclose()
