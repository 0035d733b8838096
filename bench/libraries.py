"""Calls of model libraries without Turnloom."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

from ag2.config import OpenAIConfig
from ag2.context import ConversationContext
from ag2.events import ModelRequest as Asked
from ag2.events import TextInput
from ag2.stream import MemoryStream
from anyio import CapacityLimiter, to_thread
from autogen import OpenAIWrapper
from autogen.io.base import IOStream
from dspy import context
from dspy.lm15 import Config
from fast_depends.pydantic import PydanticSerializer
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from bench.baselines import TASK
from bench.workload import PATIENCE
from turnloom.adapters.autogen.asking import THREADS
from turnloom.adapters.dspy.engine import request_of
from turnloom.adapters.dspy.models import DspyModels

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


@asynccontextmanager
async def ag2(name: str, url: str) -> AsyncIterator[Call]:
    """A call of AG2's client."""
    client = OpenAIConfig(name, base_url=url, api_key="none", streaming=True).create()

    async def call() -> None:
        await client(
            [Asked([TextInput("Go.")])],
            ConversationContext(MemoryStream()),
            tools=[],
            response_schema=None,
            serializer=PydanticSerializer(),
        )

    yield call


class Silent:
    """Discards the output that AutoGen writes from a thread."""

    def send(self, message: object) -> None:
        pass

    def print(self, *objects: object, **how: object) -> None:
        pass

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        raise AssertionError(prompt)


@asynccontextmanager
async def autogen(name: str, url: str) -> AsyncIterator[Call]:
    """A call of AutoGen's client in a thread pool of the size that its engine has."""
    config = {"model": name, "base_url": url, "api_key": "none", "price": [0.0, 0.0]}
    client, threads = OpenAIWrapper(config_list=[config]), CapacityLimiter(THREADS)
    messages = [{"role": "user", "content": "Go."}]

    def ask() -> None:
        with IOStream.set_default(Silent()):
            client.create(messages=messages, stream=True, cache_seed=None)

    async def call() -> None:
        await to_thread.run_sync(ask, limiter=threads)

    yield call


class Sink:
    """Discards a stream of DSPy."""

    async def send(self, chunk: object) -> None:
        pass


@asynccontextmanager
async def dspy(name: str, url: str) -> AsyncIterator[Call]:
    """A call of DSPy."""
    async with aclosing(DspyModels(url, None, PATIENCE, keep_open=False).create(name)) as asked:
        request = request_of(TASK, {}, asked.name, Config())

        async def call() -> None:
            with context(send_stream=Sink(), disable_history=True):
                await asked.lm.acall(request)

        yield call


# Callers by the names of the engines.
ALONE: dict[str, Callable[[str, str], AbstractAsyncContextManager[Call]]] = {
    "pydantic_ai": pydantic_ai,
    "ag2": ag2,
    "autogen": autogen,
    "dspy": dspy,
}
