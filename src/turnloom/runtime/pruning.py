"""Remove runs that ended long ago, or everything that is kept of a person."""

from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from turnloom.board.spec import FilterConfig, Reader
from turnloom.errors import UnknownKind, UsageError
from turnloom.kernel.durations import NEVER
from turnloom.log.events import ENDS, RunStarted
from turnloom.log.logic import BROKEN
from turnloom.log.ports import EventLog
from turnloom.log.service import all_runs
from turnloom.log.spec import RunFilter, RunKey
from turnloom.runtime.ports import Artifacts, PersonalData, Pruner, Removals
from turnloom.runtime.spec import PrunedRun, Removal

# The open runs that an error names.
NAMED = 5


# Why a run stays that cannot be read.
UNREADABLE = "it cannot be read, so that it is not known whose it is"


@dataclass(frozen=True, slots=True)
class PruningPorts:
    """The ports of a store from which runs are removed. Without `removals`, there is no record, and
    runs that later ones are counted from stay."""

    log: EventLog
    pruner: Pruner
    artifacts: Artifacts | None = None
    removals: Removals | None = None


async def prune(
    ports: PruningPorts,
    tenant: str,
    before: datetime,
    statuses: Collection[str],
    *,
    record: Removal | None = None,
    dry_run: bool = False,
) -> AsyncGenerator[PrunedRun]:
    """Remove runs of a tenant that ended before an instant, or say which would be, each when it
    is removed; the space that they took is given back at the end.

    Those that end last come first, so that a run goes before those whose artifacts it took. A run
    that is needed by others is tried again after them.

    Raises:
        StoreUnavailable: what was given is removed, and the rest may be later.
    """
    removing = Removing(ports, record, dry_run=dry_run)
    async for ended in ports.pruner.ended(tenant, before, statuses):
        if pruned := await removing.remove(RunKey(tenant, ended.run)):
            yield pruned
    async for pruned in removing.retry():
        yield pruned
    if not dry_run:
        await ports.pruner.compact()


class Removing:
    """Removes runs one by one, and keeps those that others need, to try them again."""

    def __init__(
        self, ports: PruningPorts, record: Removal | None = None, *, dry_run: bool = False
    ) -> None:
        self._ports = ports
        self._record = record
        self._dry_run = dry_run
        # What a dry run would have removed.
        self._gone: set[str] = set()
        # Runs that were needed, with those that do not count.
        self._needed: dict[RunKey, frozenset[str]] = {}

    async def remove(self, run: RunKey, without: frozenset[str] = frozenset()) -> PrunedRun | None:
        """Remove a run, unless one that is not among `without` needs it.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ports, record = self._ports, self._record if self._ports.removals else None
        if await _is_counted(ports.log, run):
            if ports.removals is None:  # the count would begin again
                return None
            if not self._dry_run:
                await ports.removals.remember(run)
        pruned = await ports.pruner.remove(
            run, without=without | self._gone, dry_run=self._dry_run, record=record
        )
        if pruned is None:
            self._needed[run] = without
            return None
        self._needed.pop(run, None)
        if self._dry_run:
            self._gone.add(run.id)
        return pruned

    async def retry(self) -> AsyncGenerator[PrunedRun]:
        """Try those again that were needed, as long as one of them can be removed."""
        is_progress = True
        while is_progress:
            is_progress = False
            for run, without in [*self._needed.items()]:
                if pruned := await self.remove(run, without):
                    is_progress = True
                    yield pruned


async def _is_counted(log: EventLog, run: RunKey) -> bool:
    """Whether later runs are counted from this one: runs of a named correlation, and collecting
    runs. A run that cannot be read may be one."""
    try:
        ends = await log.ends(run)
    except UnknownKind:
        return True
    if ends is None:
        return False
    first, started = ends[0], ends[0].data
    if not isinstance(started, RunStarted):
        return True
    return bool(started.collects) or started.correlation not in ("", first.run)


@dataclass(frozen=True, slots=True)
class ErasedPerson:
    """What was removed of a person, and the runs that stay, each with the reason."""

    removal: Removal
    kept: Mapping[str, str]


async def erase(
    ports: PruningPorts,
    tenant: str,
    user: str,
    personal: Mapping[str, PersonalData],
    *,
    record: Removal,
    dry_run: bool = False,
) -> ErasedPerson:
    """Remove everything that is kept of a person of a tenant: their runs with all that belongs to
    them, and what the `personal` ports keep. Artifacts go although runs of others took them; what
    those runs recorded of them stays. A repeated call removes the rest.

    Raises:
        UsageError: a run of the person is open; nothing was removed.
        StoreUnavailable: the record says what is removed, and the rest may be later.
    """
    theirs = [last async for _, last in all_runs(ports.log, tenant, which=RunFilter(user=user))]
    _refuse_open([last.run for last in theirs if last.kind not in ENDS], user)
    if not dry_run and ports.removals is not None:
        await ports.removals.add(tenant, record)
    removing = Removing(ports, record, dry_run=dry_run)
    kept: dict[str, str] = {}
    done: list[PrunedRun] = []
    own = {last.run for last in theirs}
    for last in theirs:
        run = RunKey(tenant, last.run)
        takers = await _takers(ports, run) - own
        if still_open := await _open_among(ports.log, tenant, takers):
            kept[run.id] = f"run {still_open[0]!r} of another person is open and took its artifacts"
        elif pruned := await removing.remove(run, frozenset(takers)):
            done.append(pruned)
    done += [pruned async for pruned in removing.retry()]
    others = {
        name: await port.erase(tenant, user, dry_run=dry_run) for name, port in personal.items()
    }
    if not dry_run:
        if ports.removals is not None:
            await ports.removals.add(tenant, replace(record, others=others))
        await ports.pruner.compact()
    gone = {each.run for each in done}
    kept |= {run: "another run needs it" for run in sorted(own - gone - kept.keys())}
    broken = all_runs(ports.log, tenant, which=RunFilter(frozenset({BROKEN})))
    kept |= {last.run: UNREADABLE async for _, last in broken}
    return ErasedPerson(_counted(record, done, others), kept)


def _refuse_open(runs: Sequence[str], user: str) -> None:
    if not runs:
        return
    some = ", ".join(runs[:NAMED]) + (", …" if len(runs) > NAMED else "")
    raise UsageError(
        f"{len(runs)} runs of {user!r} are open: {some}. Cancel each with `turnloom cancel RUN`, "
        "and repeat this. Nothing was removed."
    )


def _counted(record: Removal, runs: Iterable[PrunedRun], others: Mapping[str, int]) -> Removal:
    removed = [*runs]
    return replace(
        record,
        runs=len(removed),
        events=sum(each.events for each in removed),
        artifacts=sum(each.artifacts for each in removed),
        others=others,
    )


async def _takers(ports: PruningPorts, run: RunKey) -> set[str]:
    """The runs that took artifacts of a run."""
    artifacts, takers = ports.artifacts, set[str]()
    reader, cursor = Reader(tenant=run.tenant, role="developer"), None
    while artifacts is not None:
        page = await artifacts.query(FilterConfig(runs={run.id}), reader, NEVER, cursor=cursor)
        ids = [each.id for each in page.items]
        takers.update(each.run for each in await artifacts.consumptions(run.tenant, ids))
        cursor = page.cursor
        if cursor is None:
            break
    return takers


async def _open_among(log: EventLog, tenant: str, runs: Iterable[str]) -> list[str]:
    """Those of some runs that have not ended."""
    found: list[str] = []
    for run in sorted(runs):
        try:
            ends = await log.ends(RunKey(tenant, run))
        except UnknownKind:
            continue
        if ends is not None and ends[1].kind not in ENDS:
            found.append(run)
    return found
