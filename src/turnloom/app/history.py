"""The recorded history of runs."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from turnloom.app.access import PROGRAM, Access
from turnloom.errors import TurnloomError, UnknownRun, UsageError
from turnloom.kernel.arguments import as_count, as_name, as_names, as_string
from turnloom.kernel.durations import length
from turnloom.log.spec import LOCAL

if TYPE_CHECKING:
    from os import PathLike

    from pydantic import BaseModel

    from turnloom.agents.spec import Engine
    from turnloom.app.board import Board
    from turnloom.errors import Diagnostic
    from turnloom.events import RunEvent
    from turnloom.explain.logic.state import RunDefinition
    from turnloom.explain.spec.backtest import Backtest
    from turnloom.explain.spec.replay import Replay
    from turnloom.explain.spec.state import StateExplained
    from turnloom.flow.logic.flows import Flow
    from turnloom.kernel.values import Json
    from turnloom.log.events import RunStarted
    from turnloom.log.spec import Event
    from turnloom.runs.form import Form
    from turnloom.runtime.ports import Verifier
    from turnloom.runtime.spec import LoadedWorkflow, PrunedRun, VerifiedRun
    from turnloom.wiring import Parts

T = TypeVar("T")
S = TypeVar("S", bound="BaseModel")

# The purpose of the threads that compute explanations, and their number: each holds a log in
# memory.
EXPLAINING = "explaining"
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Definition:
    """The workflow that a run is pinned to, as this program restores it.

    `form` is `conversation`, `reaction` or `flow`. `files` are the declarations, and `code` the
    digests of the code, from the start of the run; `changed_code` names the files or steps whose
    code has changed since. `engines` are the engines of each agent, in order. `lacking` lists
    agents that cannot answer here, and `unheeded` the settings without effect.
    """

    name: str
    version: str
    form: str
    files: Mapping[str, str]
    code: Mapping[str, str]
    engines: "Mapping[str, tuple[Engine, ...]]"
    user_script: "tuple[Json, ...]"
    changed_code: tuple[str, ...]
    lacking: "tuple[Diagnostic, ...]"
    unheeded: tuple[str, ...]
    _workflow: "Form" = field(repr=False)

    def to_mermaid(self) -> str:
        """A Mermaid flowchart of a conversation or a flow.

        Raises:
            UsageError: it is a board, which has no graph.
        """
        from turnloom.explain.logic.pictures import picture
        from turnloom.reaction.logic.reacting import ReactionForm

        if isinstance(self._workflow, ReactionForm):
            raise UsageError(f"Board {self.name!r} has no ways that could be drawn.")
        return picture(self._workflow)


class History:
    """The recorded history of an app's runs; reading it drives nothing. `app_id` is the run's
    tenant, by default the caller's: runs of other tenants are not found."""

    def __init__(self, parts: "Callable[[], Parts]", access: Access = PROGRAM) -> None:
        self._parts = parts
        self._access = access

    async def events(self, run: str, *, app_id: str | None = None) -> "Sequence[RunEvent]":
        """The events of a run so far.

        Raises:
            UnknownRun: there is no such run.
        """
        key = self._access.key(app_id, run)
        async with self._access.noting("explanation.read", key.id, "explain"):
            events: Sequence[Event] = await self._parts().store.log.read(key)
            if not events:
                raise UnknownRun(run)
        return cast("Sequence[RunEvent]", events)

    async def named(
        self, prefix: str, limit: int = 100, *, app_id: str | None = None
    ) -> "Sequence[str]":
        """At most `limit` ids of runs that begin with a prefix, sorted."""
        most, tenant = as_count(limit, "`limit`", 0), self._access.tenant(app_id, "explain")
        return await self._parts().store.log.named(tenant, as_string(prefix, "`prefix`"), most)

    async def verify(
        self, run: str | None = None, *, app_id: str | None = None
    ) -> "AsyncGenerator[VerifiedRun]":
        """Verify the runs of a tenant, or one of them, against the store's digests.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the store has no `verifier`.
            StoreUnavailable: the store cannot be read, or is damaged as a whole.
        """
        from turnloom.wiring.doors import port_of

        tenant = self._access.tenant(app_id, "explain")
        run = None if run is None else as_name(run, "`run`")
        verifier: Verifier = port_of(self._parts().store, "verifier")
        is_found = run is None
        async for verified in verifier.verify(tenant, run):
            is_found = True
            yield verified
        if not is_found:
            raise UnknownRun(run or "")

    async def prune(
        self,
        older_than: "timedelta | str | None" = None,
        *,
        before: "datetime | None" = None,
        statuses: Collection[str] = ("finished", "failed", "cancelled"),
        by: str | None = None,
        dry_run: bool = False,
        app_id: str | None = None,
    ) -> "AsyncGenerator[PrunedRun]":
        """Remove runs of a tenant that ended longer ago than an age such as `30d`, or before an
        instant, with everything that belongs to them; yields each removed run, and records that
        `by` asked for it. A dry run removes nothing.

        A run stays if a remaining run took one of its artifacts or begins with its events.

        Raises:
            UsageError: it is not said which runs, the store has no `pruner`, or artifacts are kept
                elsewhere.
            StoreUnavailable: the yielded runs are removed; the rest may be removed later.
        """
        from turnloom.runtime.pruning import prune
        from turnloom.runtime.spec import Removal
        from turnloom.wiring.upkeep import pruning_ports

        tenant, parts = self._access.tenant(app_id, "prune"), self._parts()
        now = parts.clock.now()
        until, wanted = _until(older_than, before, now), _statuses(statuses)
        what = f"{', '.join(sorted(wanted))} before {until.isoformat()}"
        person = self._access.person(by, "`by`")
        record = Removal(now, as_name(LOCAL if person is None else person, "`by`"), what)
        ports = pruning_ports(parts)
        runs = prune(ports, tenant, until, statuses=wanted, record=record, dry_run=dry_run)
        async with self._access.noting("run.pruned", what), aclosing(runs):
            async for pruned in runs:
                yield pruned

    async def state(
        self,
        run: str,
        *,
        at: int | None = None,
        agent: str | None = None,
        app_id: str | None = None,
    ) -> "StateExplained":
        """The state of a run at its end, or right after the event `at`: variables, questions, open
        work, position, budget and timers; of a board's run the artifacts, all or those that an
        `agent` may see then. What this program cannot tell is in `missing`.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the run has no such event or agent.
        """
        from turnloom.explain.logic.state import explain_state, up_to
        from turnloom.log.logic import started_of

        seq = None if at is None else as_count(at, "`at`")
        of = None if agent is None else as_string(agent, "`agent`")
        events = await self.events(run, app_id=app_id)
        definition = await self._folded_with(started_of(up_to(events, seq) or events))
        return await off_loop(partial(explain_state, events, definition, seq, of))

    async def _folded_with(self, started: "RunStarted") -> "RunDefinition":
        """What a run is folded with: its workflow, if this program can restore it."""
        from turnloom.board.spec import Reader
        from turnloom.explain.logic.state import RunDefinition, unrestored

        try:
            loaded = await self._parts().definitions.restore(started)
        except TurnloomError as error:
            return unrestored(started, str(error).partition("\n")[0])
        readers = {
            name: staff.reader or Reader(name, staff.labels, started.tenant)
            for name, staff in loaded.staff.items()
        }
        return RunDefinition(loaded.workflow, loaded.guards, readers)

    async def replay(self, run: str, *, app_id: str | None = None) -> "Replay":
        """Decide everything again from the log of a run, with its definition and the present code,
        and compare. No model or tool is called, and nothing is stored.

        Raises:
            UnknownRun: there is no such run.
            DefinitionError: its definition does not pass its check any more.
            PlanChanged: this program declares another plan of its board or flow.
            WorkflowGone: this program cannot restore it, or nothing in it was decided here.
        """
        from turnloom.explain.logic.replay import explain_replay
        from turnloom.runtime.replay.runs import replay

        events: list[Event] = [*await self.events(run, app_id=app_id)]
        key = self._access.key(app_id, run, "explain")
        found = await replay(self._parts().world, key, events)
        return explain_replay(found)

    async def backtest(
        self,
        edited: "str | PathLike[str] | Flow[S] | Board",
        runs: "Sequence[str] | None" = None,
        *,
        last: int | None = None,
        since: "datetime | str | None" = None,
        workflow: str | None = None,
        feedback: str | None = None,
        app_id: str | None = None,
    ) -> "Backtest":
        """Decide recorded runs again with an edited definition: a folder, a flow or a board. What
        came from the world is as recorded. No model or tool is called, and nothing is stored.

        `runs` are ids; or the `last` runs, or those begun `since` an instant or an age such as
        `1h`, of a `workflow`, by default the one of the definition's name, and with `feedback` such
        as `helpful<0.5`.

        Raises:
            UnknownRun: there is no such run.
            DefinitionError: the definition does not pass its check.
            UsageError: it is not said which runs.
        """
        from turnloom.app.backtesting import backtest
        from turnloom.app.choosing import BacktestChoice

        chosen = BacktestChoice(runs, last, since, workflow, feedback=feedback)
        tenant = self._access.tenant(app_id, "explain")
        return await backtest(self._parts(), edited, chosen, tenant)

    async def definition(self, run: str, *, app_id: str | None = None) -> Definition:
        """The workflow that a run is pinned to, with its engines and its scripted user.

        Raises:
            UnknownRun: there is no such run.
            DefinitionError: it does not pass its check any more.
            PlanChanged: this program declares another plan of its board or flow.
            WorkflowGone: this program cannot restore it.
        """
        from turnloom.log.logic import started_of

        started = started_of(await self.events(run, app_id=app_id))
        return _definition(await self._parts().definitions.restore(started))


async def off_loop(compute: Callable[[], T]) -> T:
    """Compute something from a log off the event loop: it may be long."""
    from turnloom.kernel.threads import in_thread, threads

    return await in_thread(compute, threads(EXPLAINING, AT_ONCE))


# The ways a run can end.
_STATUSES = ("finished", "failed", "cancelled")


def _until(
    older_than: "timedelta | str | None", before: "datetime | None", now: datetime
) -> datetime:
    """The instant before which runs must have ended to be removed."""
    if (older_than is None) == (before is None):
        raise UsageError("Say which runs to remove: by `older_than`, or by `before`.")
    if before is None:
        return now - _age(cast("timedelta | str", older_than))
    if not isinstance(cast(object, before), datetime) or before.tzinfo is None:
        raise UsageError(f"`before` is {before!r}. Give a datetime with a time zone.")
    return before


def _age(given: "timedelta | str") -> timedelta:
    try:
        age = given if isinstance(given, timedelta) else length(as_string(given, "`older_than`"))
    except ValueError as error:
        raise UsageError(f"`older_than`: {error}") from error
    if age < timedelta():
        raise UsageError(f"`older_than` is {age}. Give a time that is not below 0.")
    return age


def _statuses(given: Collection[str]) -> frozenset[str]:
    wanted = as_names(given, "`statuses`")
    for each in wanted.difference(_STATUSES):
        raise UsageError(f"No run ends {each!r}. It is {', '.join(_STATUSES)}.")
    return wanted


def _definition(loaded: "LoadedWorkflow") -> Definition:
    form = loaded.workflow
    return Definition(
        form.name,
        form.version,
        form.form,
        loaded.files,
        code=loaded.code,
        engines={agent: staff.engines for agent, staff in loaded.staff.items()},
        user_script=loaded.user_script,
        changed_code=loaded.changed_code,
        lacking=loaded.lacking,
        unheeded=loaded.unheeded,
        _workflow=form,
    )
