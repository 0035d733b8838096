"""The public face: an app over one store, and runs as handles."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import Any

from weft import wiring
from weft.agents.spec import Engine
from weft.errors import UnknownRun, UsageError
from weft.explain.logic.asking import explain
from weft.explain.spec.asked import Asked, Explanation
from weft.kernel.values import Json
from weft.log.events import ENDS
from weft.log.spec import Event
from weft.runtime.service.runs import Runs
from weft.runtime.spec import Delivery, Loaded, Summary


class Weft:
    """An app: runs in one store, driven in this process. Opens nothing before it is used."""

    def __init__(
        self, *, store: str | None = None, slots: int | None = None, engine: Engine | None = None
    ) -> None:
        self._asked = (store, slots)
        self._definitions = wiring.Folders(engine)
        self._store: Any = None
        self._runs: Runs | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> "Weft":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def start(self, workflow: str, *, user_id: str = "local", app_id: str = "local") -> "Run":
        """Begin a run of the workflow in a folder, and drive it in this process.

        Raises:
            DefinitionError: the workflow does not pass its check; nothing was begun.
        """
        self._serve()
        run = await self._open().start(workflow, user=user_id, tenant=app_id)
        return Run(run, self._open())

    async def resume(self, run: str) -> "Run":
        """Go on with a run where its log ends, in this process.

        Raises:
            UnknownRun: there is no such run.
            RunBusy: another process drives it.
        """
        self._serve()
        await self._open().resume(run)
        return Run(run, self._open())

    def run(self, run: str) -> "Run":
        """The handle of a run that is in the store, without driving it here."""
        return Run(run, self._open())

    async def runs(self, limit: int | None = None) -> list[Summary]:
        """The runs of the store, the one begun last coming first."""
        return await self._open().summaries(limit)

    async def log(self, run: str) -> Sequence[Event]:
        """What the log of a run holds by now.

        Raises:
            UnknownRun: there is no such run.
        """
        self._open()
        events: Sequence[Event] = await self._store.log.read(run)
        if not events:
            raise UnknownRun(run)
        return events

    async def definition(self, run: str) -> Loaded:
        """The workflow that a run is pinned to, with its engines and its scripted user."""
        return await self._definitions.restore((await self.log(run))[0].data)

    async def explain(
        self,
        run: str,
        turn: int | None = None,
        variable: str | None = None,
        route: int | None = None,
        agent: str | None = None,
        at: int | None = None,
    ) -> Explanation:
        """Why a turn saw what it saw, a variable is what it is, or a route went where it went.

        With none of them named, the run's timeline. `agent` counts the turns of that agent;
        `at` is the event as of which a variable is explained.

        Raises:
            UsageError: more than one thing is asked for, or the run does not have it.
        """
        return explain(await self.log(run), Asked(turn, variable, route, agent, at))

    async def aclose(self) -> None:
        """Stop driving, and close the store. What was going on can be resumed."""
        self._closed = True
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait({self._serving})
        if self._store is not None:
            await self._store.aclose()

    def _open(self) -> Runs:
        if self._closed:
            raise UsageError("This app is closed. Make another one.")
        if self._runs is None:
            self._settings = wiring.settings(*self._asked)
            self._store = wiring.open_store(self._settings)
            self._runs = Runs(wiring.world(self._store, self._definitions))
        return self._runs

    def _serve(self) -> None:
        """Drive runs in this process from now on."""
        runs = self._open()
        if self._serving is None:
            self._serving = asyncio.create_task(runs.serve(self._settings.slots))


class Run:
    """One execution of a workflow."""

    def __init__(self, id: str, runs: Runs) -> None:
        self.id = id
        self._runs = runs

    def events(self, after: int = 0) -> AsyncGenerator[Event]:
        """Its events from a position on, live, up to its end."""
        return self._runs.events(self.id, after)

    async def answer(self, question: str | None, value: Json, *, by: str = "local") -> Delivery:
        """Answer one of its questions (`None`: the open one), and say what became of it."""
        return await self._runs.answer(self.id, question, value, by=by)

    async def cancel(self, *, by: str = "local", reason: str = "") -> bool:
        """End it now; whether it was still going."""
        return await self._runs.cancel(self.id, by=by, reason=reason)

    async def finished(self) -> Event:
        """The event that ended it, once it is there."""
        async for event in self.events():
            if event.kind in ENDS:
                return event
        raise UsageError(f"Run {self.id!r} has no end.")
