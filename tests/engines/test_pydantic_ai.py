"""Models of real providers, by the suite that every engine passes."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from weft.adapters.pydantic_ai import Patience, PydanticAIEngine
from weft.agents.spec import Engine
from weft.testing import LoopbackModel
from weft.testing.contracts import EngineContract
from weft.testing.contracts.engines import RETRIES
from weft.testing.contracts.facts import PATIENCE


class TestPydanticAI(EngineContract):
    @asynccontextmanager
    async def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AsyncIterator[Engine]:
        patience = Patience(silence, RETRIES, pause=0.05, longest_pause=2)
        engine = PydanticAIEngine("loopback", base_url=model.url, patience=patience, keep_open=True)
        async with aclosing(engine):
            yield engine


class TestPydanticAIByName(EngineContract):
    """The same by the protocol that `openai:` stands for."""

    @asynccontextmanager
    async def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AsyncIterator[Engine]:
        patience = Patience(silence, RETRIES, pause=0.05, longest_pause=2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", model.url)
            patch.setenv("OPENAI_API_KEY", "key")
            yield PydanticAIEngine("openai:gpt-5", patience=patience)
