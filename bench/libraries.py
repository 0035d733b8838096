"""Calls of model libraries alone, as somebody makes them who has no runs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

from dspy import context
from dspy.lm15 import Config
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from bench.baselines import TASK
from bench.workload import PATIENCE
from weft.adapters.dspy.models import Models
from weft.adapters.dspy.requests import request_of

Call = Callable[[], Awaitable[object]]


@asynccontextmanager
async def pydantic_ai(name: str, url: str) -> AsyncIterator[Call]:
    """A call of Pydantic AI."""
    provider = OpenAICompatibleProvider("openai-compatible", base_url=url, api_key="none")
    asked, words = OpenAIChatModel(name, provider=provider), [ModelRequest.user_text_prompt("Go.")]

    async def call() -> None:
        parameters = ModelRequestParameters()
        request = model_request_stream(asked, words, model_request_parameters=parameters)
        async with request as response:
            async for _ in response:
                pass

    async with asked:
        yield call


class Sink:
    """Hears a stream of DSPy's, and does nothing about it."""

    async def send(self, chunk: object) -> None:
        pass


@asynccontextmanager
async def dspy(name: str, url: str) -> AsyncIterator[Call]:
    """A call of DSPy."""
    async with aclosing(Models(url, None, PATIENCE, are_kept=False).made(name)) as asked:
        request = request_of(TASK, {}, asked.name, Config())

        async def call() -> None:
            with context(send_stream=Sink(), disable_history=True):
                await asked.lm.acall(request)

        yield call


# By the names of the engines that make such calls.
ALONE: dict[str, Callable[[str, str], AbstractAsyncContextManager[Call]]] = {
    "pydantic_ai": pydantic_ai,
    "dspy": dspy,
}
