"""The suite of engines, for those that ask models as the libraries do."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any, ClassVar

import pytest

from turnloom.adapters.ag2 import AG2Engine
from turnloom.adapters.autogen import AutogenEngine
from turnloom.adapters.dspy import DSPyEngine
from turnloom.adapters.pydantic_ai import PydanticAIEngine
from turnloom.agents.spec import Engine
from turnloom.agents.spec.tasks import Patience
from turnloom.testing import LoopbackModel
from turnloom.testing.contracts import EngineContract
from turnloom.testing.contracts.engines import RETRIES
from turnloom.testing.contracts.facts import PATIENCE

# The engines of libraries that ask models, by the names that folders and apps have for them.
ENGINES: dict[str, Callable[..., Any]] = {
    "pydantic_ai": PydanticAIEngine,
    "ag2": AG2Engine,
    "autogen": AutogenEngine,
    "dspy": DSPyEngine,
}


@asynccontextmanager
async def asking(kind: str, url: str) -> AsyncIterator[Engine]:
    """The engine of a library, which asks the model at an address."""
    async with aclosing(ENGINES[kind]("loopback", base_url=url, keep_open=True)) as engine:
        yield engine


class Asking(EngineContract):
    """An engine of a kind; `slowly` is how much longer it takes than others to send anything."""

    kind: ClassVar[Callable[..., Any]]
    slowly: ClassVar[float] = 1.0

    def patience(self, silence: float) -> Patience:
        """What the engine waits for, and how often it tries again."""
        return Patience(self.slowly * silence, RETRIES, pause=0.05, longest_pause=2)


class ByAddress(Asking):
    """The engine keeps its connections to a server that it is given."""

    @asynccontextmanager
    async def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AsyncIterator[Engine]:
        patience = self.patience(silence)
        engine = type(self).kind("loopback", base_url=model.url, patience=patience, keep_open=True)
        async with aclosing(engine):
            yield engine


class ByName(Asking):
    """The engine asks what `openai:` stands for, with a connection for each call."""

    pytestmark = pytest.mark.repeats

    @asynccontextmanager
    async def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AsyncIterator[Engine]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", model.url)
            patch.setenv("OPENAI_API_KEY", "key")
            yield type(self).kind("openai:gpt-5", patience=self.patience(silence))
