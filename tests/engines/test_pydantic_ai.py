"""Models of real providers, by the suite that every engine passes."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

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
