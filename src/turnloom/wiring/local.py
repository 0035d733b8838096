"""The model of this machine."""

from collections.abc import Callable
from typing import Any

import anyio

from turnloom.agents.spec import Answer, Task
from turnloom.wiring.adapters import adapter

# The name of the model that needs no provider and no network.
LOCAL = "local"


class LocalEngine:
    """Asks the model of this machine by an engine that `make` gives; both begin with the first
    task."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._model = adapter("xllamacpp").LocalModel()
        self._make = make
        self._engine: Any = None
        self._making = anyio.Lock()

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task."""
        async with self._making:
            if self._engine is None:
                self._engine = self._make(LOCAL, base_url=await self._model.url(), keep_open=True)
        return await self._engine(task)

    def context_window(self, model: str | None) -> int:
        """How many tokens fit into the window of the model."""
        return self._model.context_window

    async def aclose(self) -> None:
        """Stop the model."""
        if self._engine is not None:
            await self._engine.aclose()
        await self._model.aclose()
