"""The app as one principal sees it."""

from collections.abc import AsyncGenerator, Callable, Iterable, Set
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, TypeVar, Unpack, overload

from turnloom.app.access import Access
from turnloom.app.board import Board, Readable
from turnloom.app.costs import RunCosts
from turnloom.app.explanations import Explanations
from turnloom.app.feedback import RunFeedback
from turnloom.app.guards import GuardRecords
from turnloom.app.history import History
from turnloom.app.keys import ApiKeys, AuditLog, trail_of
from turnloom.app.run import Run
from turnloom.app.schedules import Schedules
from turnloom.errors import Forbidden, UnknownCollection, UsageError
from turnloom.kernel.arguments import as_count, as_name, as_one_of
from turnloom.runs.principal import Principal

if TYPE_CHECKING:
    from datetime import datetime

    from pydantic import BaseModel

    from turnloom.app.choosing import RunChoice
    from turnloom.app.workflows import Workflows
    from turnloom.assembly.ports import VectorSearch
    from turnloom.assembly.spec import RagCollection
    from turnloom.board.spec import Artifact, BoardHandle, Reader, Visibility
    from turnloom.flow.logic.flows import Flow
    from turnloom.flow.spec.progress import Outcome
    from turnloom.kernel.values import Json
    from turnloom.runtime.runs import Runs
    from turnloom.runtime.spec import RunSummary, WaitingQuestion
    from turnloom.wiring import Parts

S = TypeVar("S", bound="BaseModel")

# Gives the board of a tenant that the program declares under a name, for publishing as a user.
FindBoard = Callable[[str, str, str], Board]


class LoomView:
    """An app as one principal sees it: each call is made in its tenant, as its user, with its role
    and scopes. What it may not see is not found, as if it did not exist.

    `explain`, `history` and `guards` are those of the tenant, for principals with the scope
    `explain`; `keys` and `audit` are for those with the scopes of that name, and `feedback` is
    about runs that the principal may see. `schedules` start runs by themselves. What it starts,
    answers, cancels, explains and manages is in the audit trail.
    """

    def __init__(
        self,
        principal: Principal,
        open: "Callable[[], Parts]",
        serve: "Callable[[], Runs]",
        find_board: FindBoard,
        workflows: "Workflows",
        costs: RunCosts,
        via: str = "",
    ) -> None:
        self.principal = as_one_of(principal, Principal, "The principal")
        self._open = open
        self._serve = serve
        self._find_board = find_board
        self._access = Access(principal, partial(trail_of, open), via)
        self.history = History(open, self._access)
        self.explain = Explanations(self.history, open, costs, self._access)
        self.guards = GuardRecords(self.history, open, self._access)
        self.keys = ApiKeys(open, self._access)
        self.audit = AuditLog(open, self._access)
        self.feedback = RunFeedback(open, self._access)
        self.schedules = Schedules(open, serve, workflows, self._access)

    def __repr__(self) -> str:
        return f"<LoomView of {self.principal}>"

    @overload
    async def start(
        self, workflow: "Flow[S]", state: "S | None" = None, *, id: str | None = None
    ) -> "Run[S]": ...

    @overload
    async def start(
        self, workflow: "str | PathLike[str]", *, id: str | None = None
    ) -> "Run[BaseModel]": ...

    async def start(
        self,
        workflow: "str | PathLike[str] | Flow[S]",
        state: "S | None" = None,
        *,
        id: str | None = None,
    ) -> "Run[S] | Run[BaseModel]":
        """Start a run of the principal's user, as `Loom.start` does. With an `id`, a run that was
        started so before is not started again.

        Raises:
            Forbidden: the principal lacks the scope `runs:write`.
        """
        from turnloom.app.starting import start_run

        who, runs, parts = self.principal, self._serve(), self._open()
        async with self._access.noting("run.started", "", "runs:write") as note:
            key = await start_run(parts, workflow, state, who.user_id, tenant=who.app_id, id=id)
            note.what = key.id
        return Run(key, runs, self._serve, self._access)

    async def run(self, flow: "Flow[S]", state: "S | None" = None) -> "Outcome[S]":
        """Run a flow as the principal's user, as `Loom.run` does. Its outcome has the whole state,
        which is not for the role `user`.

        Raises:
            Forbidden: the principal lacks the scope `runs:write` or `explain`.
        """
        self._access.need("runs:write", "explain")
        from turnloom.app.starting import succeeded

        run = await self.start(flow, state)
        return succeeded(flow.name, await run.outcome())

    async def resume(self, run: str) -> "Run[BaseModel]":
        """Continue a run where its log ends, as `Loom.resume` does.

        Raises:
            Forbidden: the principal lacks the scope `runs:write`.
            UnknownRun: there is no such run that the principal may see.
            RunBusy: another process drives it.
        """
        key = self._access.key(None, run)
        async with self._access.noting("run.resumed", key.id, "runs:write"):
            await self._access.own(self._open().runs.log, key)
            await self._serve().resume(key)
        return self.handle(run)

    def handle(self, run: str) -> "Run[BaseModel]":
        """The handle of a run; its calls are made as this principal, and refuse a run that the
        principal may not see as one that does not exist."""
        return Run(self._access.key(None, run), self._open().runs, self._serve, self._access)

    async def runs(
        self,
        limit: int = 1000,
        *,
        before: str | None = None,
        unfinished: bool = False,
        **which: Unpack["RunChoice"],
    ) -> "list[RunSummary]":
        """At most `limit` runs, the latest first, as `Loom.runs`: those of the tenant or, for the
        role `user`, the user's own.

        Raises:
            Forbidden: the principal lacks the scope `runs:read`, or asks for another user's runs.
            UnknownRun: there is no run `before` that the principal may see.
        """
        self._access.need("runs:read")
        own = self._access.user
        if own is not None:
            if which.get("user", own) != own:
                raise Forbidden(f"{self.principal} sees only their own runs.")
            which["user"] = own
            if before is not None:
                await self._access.own(self._open().runs.log, self._access.key(None, before))
        from turnloom.app.choosing import list_runs

        return await list_runs(
            self._open(),
            self.principal.app_id,
            limit,
            before,
            which=which,
            unfinished=unfinished,
            explains=self._access.explains,
        )

    async def questions(
        self, limit: int = 100, *, before: str | None = None
    ) -> "list[WaitingQuestion]":
        """The open questions that this principal may answer, in all runs of the tenant, those of
        the latest run first. It stops after the run with which there are `limit`; for the next
        page, pass the last run of this one as `before`.

        The cost is proportional to the open runs of the tenant, not to those that ended.

        Raises:
            Forbidden: the principal lacks the scope `runs:read`.
            UnknownRun: there is no run `before`.
        """
        self._access.need("runs:read")
        most = as_count(limit, "`limit`", 0)
        last = None if before is None else as_name(before, "`before`")
        from turnloom.agents.logic.answers import Answerer

        who = self.principal
        by = Answerer(who.user_id, who.role)
        waiting = self._open().runs.questions.waiting
        return await waiting(who.app_id, by, limit=most, before=last)

    def commits(self) -> "AsyncGenerator[None] | None":
        """Yields at once, and then whenever runs may have moved; None if the store gives no such
        signals."""
        return _commits(self._open())

    def board(self, name: str = "board") -> "BoardView":
        """A board of the tenant, to read what the principal may see, and to publish as its user.

        Raises:
            Forbidden: the principal lacks the scope `board`.
        """
        self._access.need("board")
        name = as_name(name, "The name of a board")
        return BoardView(self._open(), self.principal, name, self._find_board)

    def collection(self, collection: "type[RagCollection] | str") -> "VectorSearch":
        """A collection of the tenant, as `Loom.collection` gives it, or a registered one by its
        name. Calls that name another tenant are refused.

        Raises:
            Forbidden: the principal lacks the scope `collections`.
            UnknownCollection: no collection of this name is registered.
            UsageError: the collection is unknown, or its adapter does not separate tenants.
        """
        self._access.need("collections")
        known = self._open().collections
        meant = known.known(collection) if isinstance(collection, str) else collection
        if meant is None:
            raise UnknownCollection(str(collection))
        return known.open_only_for(self.principal.app_id, meant)


class BoardView(Readable):
    """A board as one principal sees it: what the tenant shares with its role, and publishing as its
    user. The program declares the board and its agents."""

    def __init__(self, parts: "Parts", principal: Principal, name: str, find: FindBoard) -> None:
        super().__init__(parts, principal.app_id)
        self.name = name
        self._principal = principal
        self._find = find

    def read_as(self, reader: "Reader") -> "BoardHandle":
        """The board as one reader of the tenant sees it, for developers.

        Raises:
            Forbidden: the principal is a user, or the reader belongs to another tenant.
        """
        from turnloom.board.spec import Reader

        who = as_one_of(reader, Reader, "`reader`")
        if not self._principal.sees_all or who.tenant != self._principal.app_id:
            raise Forbidden(f"{self._principal} cannot read as another reader.")
        return super().read_as(who)

    def value(self, type: str, payload: "Json") -> "BaseModel":
        """A value to publish, from JSON, as `Board.value`."""
        return self._board().value(type, payload)

    async def publish(
        self,
        value: "BaseModel",
        *,
        tags: "Set[str] | Iterable[str]" = frozenset(),
        visibility: "Visibility | None" = None,
        correlation_id: str | None = None,
        id: str | None = None,
    ) -> "Artifact":
        """Publish a value as the principal's user, as `Board.publish`.

        Raises:
            UsageError: this program declares no such board for the tenant.
        """
        board = self._board()
        return await board.publish(
            value, tags=tags, visibility=visibility, correlation_id=correlation_id, id=id
        )

    def now(self) -> "datetime":
        """The instant by which visibilities open."""
        return self._parts.clock.now()

    def opening_of(self, artifact: "Artifact") -> "datetime | None":
        """The instant after its creation at which an artifact becomes visible to the principal;
        None if it is visible from then on."""
        from turnloom.board.logic.matching import visible_from

        at = visible_from(artifact.visibility, self._reader())
        return at if at is not None and at > artifact.created_at else None

    async def next_opening(self, after: "datetime") -> "datetime | None":
        """The next instant after another one at which artifacts become visible to the tenant."""
        found = await self._parts.artifacts.upcoming(self.app_id, after, 1)
        return found[0] if found else None

    def commits(self) -> "AsyncGenerator[None] | None":
        """Yields at once, and then whenever there may be further artifacts; None if the store gives
        no such signals."""
        return _commits(self._parts)

    def _board(self) -> Board:
        return self._find(self.app_id, self.name, self._principal.user_id)

    def _public(self) -> "BoardHandle":
        return super().read_as(self._reader())

    def _reader(self) -> "Reader":
        from turnloom.board.spec import Reader

        role = "developer" if self._principal.sees_all else "user"
        return Reader(tenant=self.app_id, role=role)


def _commits(parts: "Parts") -> "AsyncGenerator[None] | None":
    signals = getattr(parts.store.log, "commits", None)
    return None if signals is None else signals()


def unknown_board(name: str) -> UsageError:
    """The error for a board that this program does not declare for a tenant."""
    return UsageError(
        f"This program declares no board {name!r} for this tenant. Declare it: "
        f"`app.board({name!r}, app_id=…)`."
    )
