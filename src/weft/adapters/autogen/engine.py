"""An engine that asks models through AutoGen's clients, one request for each call of a turn."""

import asyncio
from functools import partial

import anyio
import httpx2
from anyio import to_thread
from autogen.llm_config import LLMConfig

from weft.adapters.autogen.clients import Clients, Config
from weft.adapters.autogen.forms import Response, answer_of, request_of
from weft.adapters.autogen.hearing import Hearing
from weft.adapters.autogen.naming import Models
from weft.adapters.autogen.transport import Way
from weft.agents.logic.spelling import spelled
from weft.agents.logic.trouble import may_pass, told
from weft.agents.service.patience import attempts
from weft.agents.spec import Answer, Patience, Task
from weft.errors import EngineError

# How many models one engine asks at a time: each holds a thread, as the clients block.
THREADS = 256


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
        self._trusted = httpx2.create_ssl_context()  # which takes longer than most calls
        self._kept = self._transport() if keep_open else None
        self._threads = anyio.CapacityLimiter(THREADS)

    async def __call__(self, task: Task) -> Answer:
        """What the model says to the task, asked again after trouble that may pass.

        Raises:
            EngineError: it does not answer, or refuses to.
            UsageError: no model is named, or there is none of that name.
        """
        clients = self._models.named(task.model)
        names = spelled(tool.name for tool in task.tools)
        trying = attempts(self._patience, may_pass)
        try:
            response: Response = await trying(
                partial(self._ask, task, clients, request_of(task, names))
            )
        except Exception as error:
            tried = trying.statistics["attempt_number"]
            raise EngineError(told(error, clients.model, tried, self._patience)) from error
        return answer_of(task, names, response)

    async def aclose(self) -> None:
        """Part from the providers."""
        if self._kept is not None:
            await self._kept.aclose()

    async def _ask(self, task: Task, clients: Clients, request: Config) -> Response:
        """One request, heard while it is answered."""
        task.say(None)
        inner = self._kept or self._transport()
        way = Way(inner)
        now = asyncio.get_running_loop().time
        with anyio.fail_after(self._patience.timeout) as waiting:

            def hear(words: str) -> None:
                waiting.deadline = now() + self._patience.timeout
                task.say(words)

            hearing = Hearing(hear)
            try:
                # A thread that is left alone ends by itself: at once, if it goes by the way.
                ask = partial(clients.ask, request, way, hearing)
                return await to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._threads)
            finally:
                hearing.end()
                with anyio.CancelScope(shield=True):
                    await way.end()
                    if inner is not self._kept:
                        await inner.aclose()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        """What opens connections, and closes them."""
        return httpx2.AsyncHTTPTransport(verify=self._trusted)
