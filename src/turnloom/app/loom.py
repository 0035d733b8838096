"""An app over one store."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, Unpack, overload

from turnloom.app.access import PROGRAM
from turnloom.app.arguments import as_path
from turnloom.app.board import Board
from turnloom.app.costs import RunCosts
from turnloom.app.explanations import Explanations
from turnloom.app.feedback import RunFeedback
from turnloom.app.guards import GuardRecords
from turnloom.app.history import History
from turnloom.app.keys import ApiKeys, AuditLog, Authentication
from turnloom.app.run import Run
from turnloom.app.schedules import Schedules
from turnloom.app.serving import Serving
from turnloom.app.upkeep import Upkeep
from turnloom.app.view import LoomView, unknown_board
from turnloom.app.workflows import Workflows
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_name, as_string
from turnloom.log.spec import LOCAL
from turnloom.runs.principal import as_user

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import BaseModel

    from turnloom.agents.spec import Component, Engine
    from turnloom.app.choosing import RunChoice
    from turnloom.assembly.ports import Vectors, VectorSearch
    from turnloom.assembly.spec import RagCollection
    from turnloom.flow.logic.flows import Flow
    from turnloom.flow.spec.progress import Outcome
    from turnloom.guards.ports import BeliefStore
    from turnloom.guards.spec import Guards
    from turnloom.kernel.values import Json
    from turnloom.log.ports import Clock
    from turnloom.runs.principal import Principal
    from turnloom.runtime.observers import ObserverQueue
    from turnloom.runtime.ports import Artifacts, Entropy, Observer, Scheduler, Store
    from turnloom.runtime.runs import Runs
    from turnloom.runtime.spec import RunSummary
    from turnloom.variables.ports import DocumentStore, Environment
    from turnloom.variables.service import LookupIndex
    from turnloom.wiring import Parts, Setup
    from turnloom.wiring.servers import Connect


S = TypeVar("S", bound="BaseModel")


class LoomSettings(TypedDict, total=False):
    """Settings that a program gives its app. The others come from the environment, `turnloom.toml`
    or the defaults."""

    store: "str | PathLike[str] | Store | None"
    listen_url: str | None
    artifacts: "str | Artifacts | None"
    slots: int | None
    tenant_slots: int | None
    documents: "str | PathLike[str] | DocumentStore | None"
    documents_timeout: float | None
    strict: bool | None
    vectors: "str | PathLike[str] | Vectors | None"
    beliefs: "str | BeliefStore | None"
    model: str | None
    engine: "str | Engine | None"
    scheduler: "str | Scheduler | None"
    observer_queue: int | None
    observer_drain: float | None
    lease: float | None
    sweep: float | None
    window: int | None
    durability: Literal["effect", "turn"] | None
    synchronous: Literal["normal", "full"] | None
    retention: str | None
    keep_failed: bool | None
    tenants: dict[str, dict[str, str | bool]] | None
    clock: "Clock | None"
    entropy: "Entropy | None"
    environment: "Environment | None"
    connect: "Connect | None"
    observers: "Sequence[Observer]"
    components: "Sequence[Component]"


class Loom:
    """An app: runs in one store, driven in this process, or by workers if the scheduler spreads
    drives over processes. It opens nothing before it is used.

    `store` keeps runs, and `listen_url` is its direct URL where a pooler stands before PostgreSQL.
    `documents` holds the data of database variables. `artifacts` and `beliefs` are stored beside
    the runs unless given, `vectors` stores collections, and `scheduler`
    drives runs. Each is a URL, or your own object that implements its port in `turnloom.ports`.
    `engine` answers for agents without an engine of their own, or `model` is asked; an engine given
    by name asks the models that are named. With `strict=False`, a workflow starts without its
    invalid context variables. `clock`, `entropy` and `environment` replace the system's, and
    `connect` replaces the tool servers that folders declare. `observers` see every event after it
    is stored, and `components` wrap every turn and call, the first one outermost. You close the
    objects that you pass.

    `explain` says why a run went as it did; `history` reads its log, and `guards` what guards know.
    `upkeep` takes care of the store. `workflows` are those that the app serves by name, and
    `serving` is for processes that serve them. `auth` says who calls, `keys` manages API keys,
    `audit` is the record of what principals did, `feedback` what people think of runs, and
    `schedules` starts runs by themselves.

    Attributes:
        observers: The queue of each observer, and how much of it was dropped.

    Raises:
        UsageError: a setting is unknown or names nothing, or an object lacks a member.
    """

    def __init__(self, **settings: Unpack[LoomSettings]) -> None:
        unknown = settings.keys() - LoomSettings.__annotations__.keys()
        if unknown:
            known = ", ".join(LoomSettings.__annotations__)
            raise UsageError(f"Unknown setting {min(unknown)!r}. Known settings: {known}.")
        from turnloom.wiring import set_up

        self._setup: Setup = set_up(settings)
        self.observers: Sequence[ObserverQueue] = self._setup.observers
        self._parts: Parts | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closed = False
        self._boards: dict[tuple[str, str], Callable[[str], Board]] = {}
        self.history = History(self._open)
        self._costs = RunCosts()
        self.explain = Explanations(self.history, self._open, self._costs)
        self.guards = GuardRecords(self.history, self._open)
        self.workflows = Workflows(self._open)
        self.serving = Serving(
            self._open,
            self._serve,
            self.workflows,
            self._declared_boards,
            is_driving=self._is_driving,
        )
        self.auth = Authentication(self._open)
        self.keys = ApiKeys(self._open)
        self.audit = AuditLog(self._open)
        self.feedback = RunFeedback(self._open)
        self.schedules = Schedules(self._open, self._serve, self.workflows)
        self.upkeep = Upkeep(self._open)

    async def __aenter__(self) -> "Loom":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.aclose()

    @overload
    async def start(
        self,
        workflow: "Flow[S]",
        state: "S | None" = None,
        *,
        user_id: str = LOCAL,
        app_id: str | None = None,
        at: "datetime | str | None" = None,
    ) -> "Run[S]": ...

    @overload
    async def start(
        self,
        workflow: "str | PathLike[str]",
        *,
        user_id: str = LOCAL,
        app_id: str | None = None,
        at: "datetime | str | None" = None,
    ) -> "Run[BaseModel]": ...

    async def start(
        self,
        workflow: "str | PathLike[str] | Flow[S]",
        state: "S | None" = None,
        *,
        user_id: str = LOCAL,
        app_id: str | None = None,
        at: "datetime | str | None" = None,
    ) -> "Run[S] | Run[BaseModel]":
        """Start a run of the workflow in a folder, or of a flow with a state, and drive it in this
        process, or leave that to workers. With `at`, an instant or a time from now such as `1h`,
        it is planned: a process that serves `schedules` starts it then, and until then there is no
        such run.

        Raises:
            DefinitionError: the workflow does not pass its check; nothing was started.
            InvalidUpdate: it is not a state of the flow; nothing was started.
            MissingContext: a required variable has no value; nothing was started.
        """
        from turnloom.app.starting import start_run

        user, tenant = as_user(user_id, "`user_id`"), PROGRAM.tenant(app_id)
        if at is not None:
            key = await self.schedules.plan(workflow, state, (user, tenant), at)
            return Run(key, self._open().runs, self._serve)
        runs, parts = self._serve(), self._open()
        return Run(await start_run(parts, workflow, state, user, tenant=tenant), runs, self._serve)

    async def resume(self, run: str, *, app_id: str | None = None) -> "Run[BaseModel]":
        """Continue a run of a tenant where its log ends, in this process or by workers.

        Raises:
            UnknownRun: there is no such run.
            RunBusy: another process drives it; if that process does not respond, this waits for
                the end of its lease.
        """
        runs, key = self._serve(), PROGRAM.key(app_id, run)
        await runs.resume(key)
        return Run(key, runs, self._serve)

    def handle(self, run: str, *, app_id: str | None = None) -> "Run[BaseModel]":
        """The handle of a run in the store; this does not drive the run."""
        return Run(PROGRAM.key(app_id, run), self._open().runs, self._serve)

    async def run(
        self,
        flow: "Flow[S]",
        state: "S | None" = None,
        *,
        user_id: str = LOCAL,
        app_id: str | None = None,
    ) -> "Outcome[S]":
        """Run a flow with a state until it ends or waits for a person.

        Raises:
            DefinitionError: the flow does not pass its check; nothing was started.
            InvalidUpdate: it is not a state of the flow; nothing was started.
            FlowFailed: the run failed, or was cancelled.
        """
        from turnloom.app.starting import succeeded

        run = await self.start(flow, state, user_id=user_id, app_id=app_id)
        return succeeded(flow.name, await run.outcome())

    def board(
        self,
        name: str = "board",
        *,
        user_id: str = LOCAL,
        app_id: str | None = None,
        variables: "Mapping[str, Json] | None" = None,
        hooks: "Sequence[Mapping[str, Json]]" = (),
        guards: "Guards | Mapping[str, Json] | None" = None,
        max_turns: int = 1000,
    ) -> "Board":
        """A board: its agents react to published artifacts, and publish artifacts themselves.

        `variables`, `hooks` and `guards` are those of a workflow folder, in Python; hooks contain
        their functions. One publish triggers at most `max_turns` turns.

        Raises:
            UsageError: this app has a board of that name already.
        """
        parts, user = self._open(), as_user(user_id, "`user_id`")
        name, tenant = as_name(name, "The name of a board"), PROGRAM.tenant(app_id)
        declared = parts.declare_board(
            name, tenant, max_turns, variables or {}, hooks=hooks, guards=guards
        )
        runs = parts.runs.board(name, partial(parts.boards.load, name), user=user, tenant=tenant)

        def publishing_as(user: str) -> Board:
            return Board(declared, runs.as_user(user), parts, self._serve)

        self._boards[tenant, name] = publishing_as
        return Board(declared, runs, parts, self._serve)

    async def runs(
        self,
        limit: int = 1000,
        *,
        before: str | None = None,
        unfinished: bool = False,
        app_id: str | None = None,
        **which: Unpack["RunChoice"],
    ) -> "list[RunSummary]":
        """At most `limit` runs of a tenant, the latest first; with `unfinished`, only open ones.
        For the next page, pass the last run of this one as `before`.

        `status`, `workflow` and `user` filter the runs, `since` and `until` their start: instants,
        or ages such as `1h`.

        Raises:
            UnknownRun: there is no run `before`.
            UsageError: a status is unknown, or a time has no zone.
        """
        from turnloom.app.choosing import list_runs

        return await list_runs(
            self._open(), PROGRAM.tenant(app_id), limit, before, which=which, unfinished=unfinished
        )

    async def index(self, workflow: "str | PathLike[str]") -> "AsyncGenerator[LookupIndex]":
        """Create the indexes for the database variables of a workflow.

        Each is yielded once it exists; an existing one stays as it is.

        Raises:
            DefinitionError: the workflow does not pass its check; nothing was created.
            DocumentsUnavailable: the document store does not answer in time.
        """
        from turnloom.variables.service import index as make_indexes

        parts = self._open()
        loaded = await parts.definitions.load(as_path(workflow, "The place of the workflow"))
        variables = loaded.workflow.variables
        async for index in make_indexes(parts.documents, variables, loaded.database):
            yield index

    def register_flow(self, flow: "Flow[S]", *, entry: "str | PathLike[str]" = "") -> None:
        """Register a flow, so that its runs can be resumed here.

        `entry` is the file that builds it. Programs that do not register the flow import that file
        to continue runs started from now on; without it, they refuse with `UnknownFlow`.

        Raises:
            DefinitionError: the flow does not pass its check.
        """
        self._open().flows.declare(flow, as_path(entry, "`entry`"))

    def register_collection(
        self,
        collection: "type[RagCollection]",
        adapter: "VectorSearch | Callable[[], VectorSearch]",
    ) -> None:
        """Register an adapter for a collection, or a function that creates one.

        Raises:
            UsageError: it is not a collection, its name is taken, or it is in use.
        """
        self._open().collections.register(collection, adapter)

    def collection(
        self, collection: "type[RagCollection]", *, app_id: str | None = None
    ) -> "VectorSearch":
        """The collection of a tenant: as it was registered, or else as the settings say. A search
        that names a reader uses the reader's tenant.

        Raises:
            UsageError: the collection is unknown, a package is missing, or the registered adapter
                does not separate tenants.
        """
        return self._open().collections.open_for(PROGRAM.tenant(app_id), collection)

    def as_principal(self, principal: "Principal", *, via: str = "") -> LoomView:
        """The app as a principal sees it: each call is made in its tenant, as its user, with its
        role and scopes. `via` names its credential in the audit trail.

        Raises:
            UsageError: it is not a `Principal`.
        """
        means = as_string(via, "`via`")
        return LoomView(
            principal,
            self._open,
            self._serve,
            self._board_of,
            workflows=self.workflows,
            costs=self._costs,
            via=means,
        )

    def _is_driving(self) -> bool:
        return self._serving is not None and not self._serving.done()

    def _declared_boards(self) -> list[Board]:
        return [as_user(LOCAL) for as_user in self._boards.values()]

    def _board_of(self, tenant: str, name: str, user: str) -> Board:
        """A declared board of a tenant, for publishing as a user."""
        found = self._boards.get((tenant, name))
        if found is None:
            raise unknown_board(name)
        return found(user)

    async def aclose(self) -> None:
        """Stop driving, and close the store. Open runs can be resumed.

        Raises:
            Exception: whatever driving failed with.
        """
        try:
            for act in self.serving.closing:
                await act()
        finally:
            self._closed = True
            try:
                await self._stop()
            finally:
                if self._parts is not None:
                    await self._parts.aclose()

    async def _stop(self) -> None:
        if self._serving is None:
            return
        self._serving.cancel()
        await asyncio.wait({self._serving})
        error = None if self._serving.cancelled() else self._serving.exception()
        if isinstance(error, Exception):  # others ended the program where they were raised
            raise error

    def _open(self) -> "Parts":
        if self._closed:
            raise UsageError("This app is closed. Make another one.")
        parts = self._parts
        if parts is None:
            from turnloom.wiring import assemble

            parts = self._parts = assemble(self._setup)
        return parts

    def _serve(self) -> "Runs":
        """Drive runs in this process from now on, unless workers do."""
        parts = self._open()
        if self._serving is None and not parts.runs.is_shared:
            self._serving = asyncio.create_task(
                parts.runs.serve(parts.settings.slots, parts.limits.tenants)
            )
        return parts.runs
