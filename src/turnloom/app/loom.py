"""An app over one store."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from turnloom.app.board import Board
from turnloom.app.run import Run
from turnloom.errors import FlowFailed, UnknownRun, UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from turnloom.agents.spec import Engine
    from turnloom.assembly.ports import VectorSearch
    from turnloom.assembly.spec import RagCollection
    from turnloom.explain.spec.asked import Explanation
    from turnloom.flow.logic.flows import Flow
    from turnloom.flow.spec.outcomes import Outcome
    from turnloom.guards.spec import Guards
    from turnloom.log.ports import Clock
    from turnloom.log.spec import Event
    from turnloom.runtime.ports import Entropy, Scheduler, Store
    from turnloom.runtime.service.runs import Runs
    from turnloom.runtime.spec import Loaded, Summary
    from turnloom.variables.ports import DocumentStore, Environment
    from turnloom.variables.service import Index
    from turnloom.wiring import Parts
    from turnloom.wiring.servers import Connect


S = TypeVar("S", bound="BaseModel")


class Asked(TypedDict, total=False):
    """Settings that a program gives its app; the others are as the environment or `turnloom.toml`
    say, or else as they are by default."""

    store: "str | Store | None"
    artifacts: str | None
    slots: int | None
    documents: "str | DocumentStore | None"
    documents_timeout: float | None
    strict: bool | None
    vectors: str | None
    beliefs: str | None
    model: str | None
    engine: "str | Engine | None"
    scheduler: "Scheduler | None"
    clock: "Clock | None"
    entropy: "Entropy | None"
    environment: "Environment | None"
    connect: "Connect | None"


# What an object of a program's own is known by that stands in for a setting.
_KNOWN_BY = {
    "store": "log",
    "documents": "newest",
    "engine": "__call__",
    "scheduler": "wake",
    "clock": "now",
    "entropy": "token",
    "environment": "get",
    "connect": "__call__",
}


class Loom:
    """An app: runs in one store, driven in this process. Opens nothing before it is used.

    `store` and `documents` are where runs are kept and where database variables are looked up;
    `artifacts` and `beliefs` are where artifacts and what is known of agents are kept if not beside
    the runs, `vectors` where collections are;
    `engine` answers, or `model` is asked, for agents that choose no engine; an engine that is named
    asks the models that are. With `strict=False`, a workflow whose context variables are invalid
    begins without them. `store`, `documents` and `engine` are named, or objects of your own; so are
    `scheduler`, `clock`, `entropy` and `environment`, in place of this process and the system's.
    `connect` gives the server of tools for each that a folder declares, in place of a real one.
    Objects of your own are yours to close.
    """

    def __init__(self, **settings: Unpack[Asked]) -> None:
        unknown = settings.keys() - Asked.__annotations__.keys()
        if unknown:
            known = ", ".join(Asked.__annotations__)
            raise UsageError(f"There is no setting {min(unknown)!r}. There is: {known}.")
        self._objects = {name: each for name, each in settings.items() if _is_object(name, each)}
        self._asked = {n: each for n, each in settings.items() if n not in self._objects}
        self._parts: Parts | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closed = False

    async def __aenter__(self) -> "Loom":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def start(
        self,
        workflow: "str | Flow[S]",
        state: "S | None" = None,
        *,
        user_id: str = "local",
        app_id: str = "local",
    ) -> "Run":
        """Begin a run of the workflow in a folder, or of a flow with its first state, and drive it
        in this process.

        Raises:
            DefinitionError: the workflow does not pass its check; nothing was begun.
            InvalidUpdate: it is no state of the flow; nothing was begun.
            MissingContext: a variable that it requires has no value; nothing was begun.
        """
        runs = self._serve()
        if isinstance(workflow, str):
            return Run(await runs.start(workflow, user=user_id, tenant=app_id), runs)
        loaded = self._open().flows.declare(workflow)
        given: Any = state if state is not None else workflow.state()
        beginnings: Any = import_module("turnloom.runtime.service.beginnings")
        what = beginnings.FlowGiven(loaded, given)
        return Run(await runs.start(what, user=user_id, tenant=app_id), runs)

    async def resume(self, run: str) -> "Run":
        """Go on with a run where its log ends, in this process.

        Raises:
            UnknownRun: there is no such run.
            RunBusy: another process drives it.
        """
        runs = self._serve()
        await runs.resume(run)
        return Run(run, runs)

    @overload
    def run(self, run: str) -> "Run": ...

    @overload
    def run(
        self, run: "Flow[S]", state: "S | None" = None, *, user_id: str = ..., app_id: str = ...
    ) -> "Coroutine[Any, Any, Outcome]": ...

    def run(
        self,
        run: "str | Flow[Any]",
        state: Any = None,
        *,
        user_id: str = "local",
        app_id: str = "local",
    ) -> "Run | Coroutine[Any, Any, Outcome]":
        """The handle of a run that is in the store, without driving it here; or, of a flow with its
        first state, what becomes of a run of it, once that ends or waits for a person.

        Raises:
            FlowFailed: the run of the flow failed, or was cancelled.
        """
        if isinstance(run, str):
            return Run(run, self._open().runs)
        return self._run(run, state, user_id, app_id)

    async def _run(self, flow: "Flow[Any]", state: Any, user: str, tenant: str) -> "Outcome":
        run = await self.start(flow, state, user_id=user, app_id=tenant)
        outcome = await run.outcome()
        if outcome.status in ("failed", "cancelled"):
            raise FlowFailed(_told(flow.name, outcome), outcome)
        return outcome

    def board(
        self,
        name: str = "board",
        *,
        user_id: str = "local",
        app_id: str = "local",
        variables: "Mapping[str, Any] | None" = None,
        hooks: "Sequence[Mapping[str, Any]]" = (),
        guards: "Guards | Mapping[str, Any] | None" = None,
        max_turns: int = 1000,
    ) -> "Board":
        """A board: agents on it are woken by what is published, and publish themselves.

        `variables`, `hooks` and `guards` are what a workflow folder declares, in Python; the
        functions of hooks stand in them. One publish sets off at most `max_turns` turns.

        Raises:
            UsageError: this app has a board of that name already.
        """
        parts = self._open()
        declared = parts.declare_board(name, max_turns, variables or {}, hooks, guards)
        runs = parts.runs.board(name, partial(parts.boards.load, name), user=user_id, tenant=app_id)
        return Board(declared, runs, parts, self._serve)

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
        asking: Any = import_module("turnloom.explain.logic.asking")
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
        indexing: Any = import_module("turnloom.variables.service")
        variables = loaded.workflow.variables
        async for index in indexing.index(parts.documents, variables, loaded.database):
            yield index

    @overload
    def register(self, what: "Flow[Any]") -> None: ...

    @overload
    def register(
        self,
        what: "type[RagCollection]",
        adapter: "VectorSearch | Callable[[], VectorSearch]",
    ) -> None: ...

    def register(self, what: Any, adapter: Any = None) -> None:
        """Have a collection filled and searched through an adapter, or through what makes one; or
        know a flow, so that runs of it can be resumed here.

        Raises:
            DefinitionError: the flow does not pass its check.
            UsageError: it is neither, another collection has its name, or it is in use.
        """
        if isinstance(what, type) or adapter is not None:
            self._open().collections.register(what, adapter)
        else:
            self._open().flows.declare(what)

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
            wiring = _wiring()
            parts = self._parts = wiring.assemble(self._asked, wiring.Doors(**self._objects))
        return parts

    def _serve(self) -> "Runs":
        """Drive runs in this process from now on."""
        parts = self._open()
        if self._serving is None:
            self._serving = asyncio.create_task(parts.runs.serve(parts.settings.slots))
        return parts.runs


def _is_object(name: str, given: object) -> bool:
    """Whether a setting is an object of the program's own."""
    return name in _KNOWN_BY and hasattr(given, _KNOWN_BY[name])


def _told(flow: str, outcome: "Outcome") -> str:
    failure = outcome.failure
    step = f"step {failure.step!r}" if failure and failure.step else ""
    where = failure and failure.what or step
    why = f": {failure.error}: {failure.message}" if failure else ""
    how = "failed" if outcome.status == "failed" else "was cancelled"
    return f"Run {outcome.run_id!r} of flow {flow!r} {how}{where and f' in {where}'}{why}"


def _wiring() -> Any:
    return import_module("turnloom.wiring")
