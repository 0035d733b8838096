"""An engine that asks models through AutoGen's clients, one request for each call of a turn."""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import httpx2
from anyio import from_thread, to_thread
from autogen import OpenAIWrapper
from autogen.io.base import IOStream
from autogen.llm_config import LLMConfig

from weft.adapters.autogen.forms import Response, answer_of, request_of
from weft.adapters.autogen.naming import BRIDGED, Models
from weft.adapters.autogen.transport import LoopTransport
from weft.agents.logic.spelling import spelled
from weft.agents.logic.trouble import may_pass, told
from weft.agents.service.patience import attempts
from weft.agents.spec import Answer, Patience, Task
from weft.errors import EngineError

# How many models one engine asks at a time: each holds a thread, as the clients block.
THREADS = 256

# What the clients call a piece of an answer.
STREAM = "stream"

Config = dict[str, Any]


class AutogenEngine:
    """Asks the model that the agent names, or else this one.

    Models are named with the `api_type` of the classic line, as in `openai:gpt-5`, or are a
    configuration of it: an entry of a `config_list`, or an `LLMConfig`. With `base_url`, they are
    those of one server that speaks OpenAI's protocol. With `keep_open`, connections stay open
    between calls, until `aclose`.
    """

    def __init__(
        self,
        model: str | Config | LLMConfig | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        patience: Patience | None = None,
        keep_open: bool = False,
    ) -> None:
        self._models = Models(model, base_url, api_key)
        self._patience = patience or Patience()
        self._kept = httpx2.AsyncHTTPTransport() if keep_open else None
        self._threads = anyio.CapacityLimiter(THREADS)

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task, asked again after trouble that may pass.

        Raises:
            EngineError: it does not answer, or refuses to.
            UsageError: no model is named, or there is none of that name.
        """
        configs = self._models.named(task.model)
        names = spelled(tool.name for tool in task.tools)
        trying = attempts(self._patience, may_pass)
        try:
            response: Response = await trying(
                partial(self._ask, task, configs, request_of(task, names))
            )
        except Exception as error:
            tried, model = trying.statistics["attempt_number"], str(configs[-1]["model"])
            raise EngineError(told(error, model, tried, self._patience)) from error
        return answer_of(task, names, response)

    async def aclose(self) -> None:
        """Part from the providers."""
        if self._kept is not None:
            await self._kept.aclose()

    async def _ask(self, task: Task, configs: list[Config], request: Config) -> Response:
        """One request, heard while it is answered."""
        task.say(None)
        inner = self._kept or httpx2.AsyncHTTPTransport()
        transport = LoopTransport(inner)
        try:
            with anyio.fail_after(self._patience.timeout) as waiting:

                def hear(words: str) -> None:
                    waiting.deadline = anyio.current_time() + self._patience.timeout
                    task.say(words)

                ask = partial(_create, configs, request, transport, hear)
                # A thread whose requests go through the loop ends when they are cancelled.
                is_stoppable = all(config["api_type"] in BRIDGED for config in configs)
                return await to_thread.run_sync(
                    ask, abandon_on_cancel=not is_stoppable, limiter=self._threads
                )
        finally:
            with anyio.CancelScope(shield=True):
                await transport.release()
                if inner is not self._kept:
                    await inner.aclose()


def _create(
    configs: list[Config], request: Config, transport: LoopTransport, hear: Callable[[str], None]
) -> Response:
    """The message that a model answers with, and its usage; waits for it in this thread."""
    with httpx2.Client(transport=transport, timeout=None) as client:
        own = [_completed(config, request, client) for config in configs]
        wrapper = OpenAIWrapper(config_list=own)
        with IOStream.set_default(Hearing(hear)):
            response: Any = wrapper.create(**request)
        (message, *_) = wrapper.extract_text_or_completion_object(response)
        return Response(message, response.usage, response.model or configs[-1]["model"])


def _completed(config: Config, request: Config, client: httpx2.Client) -> Config:
    """A configuration without what the request says, since it would win over it."""
    kept = {key: value for key, value in config.items() if key not in request}
    return kept | {"http_client": client} if config["api_type"] in BRIDGED else kept


class Hearing:
    """A stream for what the clients say while a model answers; nobody types into it."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear

    def send(self, message: Any) -> None:
        """Hear a piece of an answer, in the event loop."""
        if message.type == STREAM:
            from_thread.run_sync(self._hear, message.content.content)

    def print(self, *objects: Any, sep: str = " ", end: str = "\n", flush: bool = False) -> None:
        """Print nothing: what is to be known of a call is on record."""

    def input(self, prompt: str = "", *, password: bool = False) -> str:
        """Refuse: a model client asks nobody.

        Raises:
            EngineError: always.
        """
        raise EngineError(f"A model client asked for input: {prompt!r}. Use another client.")
