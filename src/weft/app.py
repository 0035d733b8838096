"""The public face: an app over one store, and runs as handles.

It is light to import: what an app consists of is imported when the app is first used.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from weft.errors import UnknownRun, UsageError

if TYPE_CHECKING:
    from weft.agents.spec import Engine, Question
    from weft.assembly.ports import VectorSearch
    from weft.assembly.spec import RagCollection
    from weft.explain.spec.asked import Explanation
    from weft.log.spec import Event
    from weft.runtime.service.runs import Runs
    from weft.runtime.spec import Delivery, Delta, Loaded, Summary
    from weft.variables.service import Index
    from weft.wiring import Parts


class Weft:
    """An app: runs in one store, driven in this process. Opens nothing before it is used.

    `store`, `documents` and `vectors` are where runs are kept, where database variables are looked
    up, and where collections are; `engine` answers for agents that choose none. With
    `strict=False`, a workflow whose context variables are invalid begins without them.
    """

    def __init__(
        self,
        *,
        store: str | None = None,
        slots: int | None = None,
        documents: str | None = None,
        documents_timeout: float | None = None,
        strict: bool | None = None,
        vectors: str | None = None,
        engine: "Engine | None" = None,
    ) -> None:
        self._asked = {
            "store": store,
            "slots": slots,
            "documents": documents,
            "documents_timeout": documents_timeout,
            "strict": strict,
            "vectors": vectors,
        }
        self._engine = engine
        self._parts: Parts | None = None
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
            MissingContext: a variable that it requires has no value; nothing was begun.
        """
        runs = self._serve()
        return Run(await runs.start(workflow, user=user_id, tenant=app_id), runs)

    async def resume(self, run: str) -> "Run":
        """Go on with a run where its log ends, in this process.

        Raises:
            UnknownRun: there is no such run.
            RunBusy: another process drives it.
        """
        runs = self._serve()
        await runs.resume(run)
        return Run(run, runs)

    def run(self, run: str) -> "Run":
        """The handle of a run that is in the store, without driving it here."""
        return Run(run, self._open().runs)

    async def runs(self, limit: int | None = None) -> "list[Summary]":
        """The runs of the store, the one begun last coming first."""
        return await self._open().runs.summaries(limit)

    async def log(self, run: str) -> "Sequence[Event]":
        """What the log of a run holds by now.

        Raises:
            UnknownRun: there is no such run.
        """
        events: Sequence[Event] = await self._open().store.log.read(run)
        if not events:
            raise UnknownRun(run)
        return events

    async def definition(self, run: str) -> "Loaded":
        """The workflow that a run is pinned to, with its engines and its scripted user."""
        return await self._open().definitions.restore((await self.log(run))[0].data)

    async def explain(
        self,
        run: str,
        turn: int | None = None,
        variable: str | None = None,
        route: int | None = None,
        agent: str | None = None,
        at: int | None = None,
    ) -> "Explanation":
        """Why a turn saw what it saw, a variable is what it is, or a route went where it went.

        With none of them named, the run's timeline. `agent` counts the turns of that agent;
        `at` is the event as of which a variable is explained.

        Raises:
            UsageError: more than one thing is asked for, or the run does not have it.
        """
        events = await self.log(run)
        asking: Any = import_module("weft.explain.logic.asking")
        asked = asking.Asked(turn, variable, route, agent, at)
        return asking.explain(events, asked, await _wiring().declared(events[0].data))

    async def index(self, workflow: str) -> "AsyncGenerator[Index]":
        """Make the indexes that the database variables of a workflow are looked up by.

        Each is given once it is there; one that was there before stays as it is.

        Raises:
            DefinitionError: the workflow does not pass its check; nothing was made.
            DocumentsUnavailable: the documents do not answer, in time or at all.
        """
        parts = self._open()
        loaded = await parts.definitions.load(workflow)
        indexing: Any = import_module("weft.variables.service")
        variables = loaded.workflow.variables
        async for index in indexing.index(parts.documents, variables, loaded.database):
            yield index

    def register(
        self,
        collection: "type[RagCollection]",
        adapter: "VectorSearch | Callable[[], VectorSearch]",
    ) -> None:
        """Have a collection filled and searched through an adapter, or through what makes one.

        Raises:
            UsageError: it is no collection, another one has its name, or it is in use.
        """
        self._open().collections.register(collection, adapter)

    def collection(self, collection: "type[RagCollection]") -> "VectorSearch":
        """What fills and searches a collection: as it was registered, else as the settings say.

        Raises:
            UsageError: it is no collection, or a package is missing.
        """
        return self._open().collections.open(collection)

    async def aclose(self) -> None:
        """Stop driving, and close the store. What was going on can be resumed."""
        self._closed = True
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait({self._serving})
        if self._parts is not None:
            await self._parts.aclose()

    def _open(self) -> "Parts":
        if self._closed:
            raise UsageError("This app is closed. Make another one.")
        parts = self._parts
        if parts is None:
            parts = self._parts = _wiring().assemble(self._asked, self._engine)
        return parts

    def _serve(self) -> "Runs":
        """Drive runs in this process from now on."""
        parts = self._open()
        if self._serving is None:
            self._serving = asyncio.create_task(parts.runs.serve(parts.settings.slots))
        return parts.runs


def _identity(user: str | None, tenant: str | None) -> Any:
    spec: Any = import_module("weft.runtime.spec")
    return spec.Identity(user, tenant)


def _wiring() -> Any:
    return import_module("weft.wiring")


class Run:
    """One execution of a workflow."""

    def __init__(self, id: str, runs: "Runs") -> None:
        self.id = id
        self._runs = runs

    def events(self, after: int = 0) -> "AsyncGenerator[Event]":
        """Its events from a position on, live, up to its end."""
        return self._runs.events(self.id, after)

    async def question(
        self, *, user_id: str | None = None, app_id: str | None = None
    ) -> "Question | None":
        """What it asks and waits for, if it does.

        `user_id` and `app_id` say who wants to know, where that is not settled otherwise.

        Raises:
            NotYours: the run belongs to somebody else.
        """
        return await self._runs.question(self.id, _identity(user_id, app_id))

    async def answer(
        self,
        question: str | None,
        value: Any,
        *,
        user_id: str | None = None,
        app_id: str | None = None,
    ) -> "Delivery":
        """Answer one of its questions (`None`: the open one), and say what became of it.

        `user_id` and `app_id` say who answers, where that is not settled otherwise.

        Raises:
            NotYours: the run belongs to somebody else.
            QuestionExpired: it comes too late.
            UsageError: there is no such question, or this is no answer to it.
        """
        who = _identity(user_id, app_id)
        return await self._runs.answer(self.id, question, value, who=who)

    def listening(self, listener: "Callable[[Delta], None]") -> "AbstractContextManager[None]":
        """Let a listener hear answers while they are made in this process, piece by piece."""
        return self._runs.listening(self.id, listener)

    async def cancel(self, *, by: str = "local", reason: str = "") -> bool:
        """End it now; whether it was still going."""
        return await self._runs.cancel(self.id, by=by, reason=reason)

    async def finished(self) -> "Event":
        """The event that ended it, once it is there."""
        return [event async for event in self.events()][-1]
