"""How a store in memory is kept: removed runs and their record, tenants, copies of runs."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence, Set
from dataclasses import replace
from datetime import datetime

from turnloom.adapters.memory.index import MemoryIndex
from turnloom.adapters.memory.log import MemoryLog
from turnloom.log.events import ENDS
from turnloom.log.logic import status_of
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.spec import EndedRun, PrunedRun, Removal, RunCopy


class MemoryRemovals:
    """Records of removals by tenant."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._records: dict[tuple[str, datetime, str, str], Removal] = {}
        self._removed: set[RunKey] = set()

    async def add(self, tenant: str, removal: Removal) -> None:
        """Add counts to the record of the same instant, person and purpose, or begin it."""
        self._log.check_open()
        self.note(tenant, removal)

    def note(self, tenant: str, removal: Removal) -> None:
        """Add counts to a record."""
        place = (tenant, removal.at, removal.by, removal.what)
        known = self._records.get(place, Removal(removal.at, removal.by, removal.what))
        others = {
            kind: known.others.get(kind, 0) + removal.others.get(kind, 0)
            for kind in {**known.others, **removal.others}
        }
        self._records[place] = Removal(
            removal.at,
            removal.by,
            removal.what,
            runs=known.runs + removal.runs,
            events=known.events + removal.events,
            artifacts=known.artifacts + removal.artifacts,
            others=others,
        )

    async def recent(self, tenant: str, limit: int) -> Sequence[Removal]:
        """The latest records of a tenant."""
        self._log.check_open()
        own = [each for (of, *_), each in self._records.items() if of == tenant]
        own.sort(key=lambda each: (each.by, each.what))
        return sorted(own, key=lambda each: each.at, reverse=True)[:limit]

    async def remember(self, run: RunKey) -> None:
        """Keep the id of a run that is about to be removed, so that it is not used again."""
        self._log.check_open()
        self._removed.add(run)

    async def is_removed(self, run: RunKey) -> bool:
        """Whether the id of a run is kept in this way."""
        self._log.check_open()
        return run in self._removed


class MemoryPruner:
    """Removes finished runs. `others` remove what is kept of a run beside its log."""

    def __init__(
        self,
        log: MemoryLog,
        index: MemoryIndex,
        removals: MemoryRemovals,
        others: Sequence[Callable[[RunKey], None]],
    ) -> None:
        self._log = log
        self._index = index
        self._removals = removals
        self._others = others

    async def ended(
        self, tenant: str, before: datetime, statuses: Collection[str]
    ) -> AsyncGenerator[EndedRun, None]:
        """The runs of a tenant that ended before a time, latest first."""
        self._log.check_open()
        ids = self._log.held.of(tenant).runs
        lasts = [end for id in [*ids] if (end := await self._end(tenant, id))]
        lasts = [last for last in lasts if last.at < before and status_of(last) in statuses]
        for last in sorted(reversed(lasts), key=lambda each: each.at, reverse=True):
            yield EndedRun(last.run, status_of(last), last.at)

    async def _end(self, tenant: str, run: str) -> Event | None:
        """The last event of a run that ended."""
        ends = await self._log.ends(RunKey(tenant, run))
        return ends[1] if ends and ends[1].kind in ENDS else None

    async def remove(
        self,
        run: RunKey,
        *,
        without: Set[str] = frozenset(),
        dry_run: bool = False,
        record: Removal | None = None,
    ) -> PrunedRun | None:
        """Remove a finished run and all its data, and add that to the record; None if a run that
        stays needs it."""
        last, copy = await self._end(*run), self._log.held.copy(run)
        artifacts = self._index.of_run(run)
        if last is None or copy is None or await self._is_needed(run, artifacts, without, dry_run):
            return None
        events = copy.position - copy.after
        if not dry_run:
            self._remove(run, artifacts)
            if record is not None:
                counts = {"runs": 1, "events": events, "artifacts": len(artifacts)}
                self._removals.note(run.tenant, replace(record, **counts, others={}))
        return PrunedRun(run.id, status_of(last), last.at, events, artifacts=len(artifacts))

    async def _is_needed(
        self, run: RunKey, artifacts: Sequence[str], without: Set[str], dry_run: bool
    ) -> bool:
        """Whether a run that stays took an artifact, or begins with events of the run."""
        held = self._log.held
        branches = set(held.branches_of(run)) - (without if dry_run else frozenset[str]())
        there = held.of(run.tenant).runs.keys() - {run.id} - without
        taken = await self._index.consumptions(run.tenant, artifacts)
        return bool(branches) or any(each.run in there for each in taken)

    def _remove(self, run: RunKey, artifacts: Sequence[str]) -> None:
        for id in artifacts:
            self._index.remove(run.tenant, id)
        self._index.forget_turns(run)
        self._log.held.remove(run)
        self._log.beliefs.forget(run)
        for remove in self._others:
            remove(run)

    async def compact(self) -> None:
        """Do nothing: memory is freed at once."""
        self._log.check_open()


class MemoryTenants:
    """The tenants of a log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def names(self) -> Sequence[str]:
        """The tenants that have runs, sorted."""
        self._log.check_open()
        return self._log.held.tenants()


class MemoryCopies:
    """Whole runs of a log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def read(self, run: RunKey) -> RunCopy | None:
        """The events that a run recorded; None for an unknown run."""
        self._log.check_open()
        return self._log.held.copy(run)

    async def write(self, run: RunKey, copy: RunCopy) -> None:
        """Append all batches of a copy.

        Raises:
            Conflict: the run is at another position, or one of the ids is taken.
            UnknownRun: the origin is not there.
            UsageError: the origin cannot be cut there.
        """
        self._log.write(run, copy)
