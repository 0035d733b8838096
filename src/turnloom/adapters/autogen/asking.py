"""Models that are asked in threads, with patience, and let go of when nobody waits any more."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import httpx2

from turnloom.adapters.autogen.hearing import Hearing
from turnloom.adapters.autogen.transport import Way
from turnloom.agents.logic.trouble import failure, may_pass
from turnloom.agents.service.patience import attempts
from turnloom.agents.spec import Patience
from turnloom.kernel.threads import in_thread, threads

# How many models are asked at a time for a tenant: each holds a thread, as the clients block.
THREADS = 256

T = TypeVar("T")


class Asking:
    """How one engine asks; with `keep_open`, its connections stay open until `aclose`."""

    def __init__(self, patience: Patience, keep_open: bool) -> None:
        self._patience = patience
        self._trusted = httpx2.create_ssl_context()  # which takes longer than most calls
        self._kept = self._transport() if keep_open else None

    async def __call__(
        self, model: str, ask: Callable[[Way, Hearing], T], say: Callable[[str | None], None]
    ) -> T:
        """What `ask` gives in a thread, called again after trouble that may pass.

        Raises:
            ContextTooLarge: the request does not fit into the window of the model.
            EngineError: the model does not answer, or refuses to.
        """
        trying = attempts(self._patience, may_pass)
        try:
            given: T = await trying(partial(self._ask, ask, say))
        except Exception as error:
            tried = trying.statistics["attempt_number"]
            raise failure(error, model, tried, self._patience) from error
        return given

    async def aclose(self) -> None:
        """Part from the providers."""
        if self._kept is not None:
            await self._kept.aclose()

    async def _ask(self, ask: Callable[[Way, Hearing], T], say: Callable[[str | None], None]) -> T:
        """One request, heard while it is answered."""
        say(None)
        inner = self._kept or self._transport()
        way = Way(inner)
        now = asyncio.get_running_loop().time
        with anyio.fail_after(self._patience.timeout) as waiting:

            def hear(words: str) -> None:
                waiting.deadline = now() + self._patience.timeout
                say(words)

            hearing = Hearing(hear)
            try:
                # A thread that is left alone ends by itself: at once, if it goes by the way.
                call = partial(ask, way, hearing)
                return await in_thread(call, threads("autogen", THREADS))
            finally:
                hearing.end()
                with anyio.CancelScope(shield=True):
                    await way.end()
                    if inner is not self._kept:
                        await inner.aclose()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        """What opens connections, and closes them."""
        return httpx2.AsyncHTTPTransport(verify=self._trusted)
