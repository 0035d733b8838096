"""What a store in memory keeps beside its runs: keys, the audit trail, feedback, schedules."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from turnloom.access.logic.tokens import is_chosen
from turnloom.access.spec import EVERY_ENTRY, ApiKey, AuditEntry, AuditFilter, StoredKey
from turnloom.adapters.memory.log import MemoryLog
from turnloom.errors import UnknownRun
from turnloom.feedback.logic import is_chosen as is_wanted
from turnloom.feedback.logic import refuse_more
from turnloom.feedback.spec import Feedback, FeedbackFilter
from turnloom.log.spec import RunKey
from turnloom.schedules.spec import Firing, PlannedStart


class MemoryKeys:
    """API keys by id."""

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._keys: dict[str, StoredKey] = {}

    async def add(self, key: StoredKey) -> bool:
        """Store a key; returns False if its id is taken."""
        self._check_open()
        return self._keys.setdefault(key.key.id, key) is key

    async def lookup(self, id: str) -> StoredKey | None:
        """The key of this id."""
        self._check_open()
        return self._keys.get(id)

    async def any(self, now: datetime) -> bool:
        """Whether a tenant has a key that is in force."""
        self._check_open()
        return any(each.key.status(now) == "valid" for each in self._keys.values())

    async def list(self, tenant: str, limit: int, *, before: str | None = None) -> Sequence[ApiKey]:
        """Keys of a tenant, latest first."""
        self._check_open()
        own = [each.key for each in self._keys.values() if each.key.tenant == tenant]
        if before is not None:
            ids = [key.id for key in own]
            own = own[: ids.index(before)] if before in ids else []
        return own[::-1][:limit]

    async def revoke(self, tenant: str, id: str, at: datetime) -> ApiKey | None:
        """Revoke a key of a tenant; the first revocation stands."""
        self._check_open()
        found = self._of(tenant, id)
        if found is not None and found.key.revoked is None:
            found = self._keys[id] = found._replace(
                key=msgspec.structs.replace(found.key, revoked=at)
            )
        return found and found.key

    async def touch(self, tenant: str, id: str, at: datetime) -> None:
        """Note a use of a key; an earlier one changes nothing."""
        self._check_open()
        found = self._of(tenant, id)
        if found is not None and (found.key.last_used is None or found.key.last_used < at):
            self._keys[id] = found._replace(key=msgspec.structs.replace(found.key, last_used=at))

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all keys of a person; returns how many there were."""
        self._check_open()
        own = [
            id
            for id, each in self._keys.items()
            if (each.key.tenant, each.key.user) == (tenant, user)
        ]
        for id in () if dry_run else own:
            del self._keys[id]
        return len(own)

    def _of(self, tenant: str, id: str) -> StoredKey | None:
        found = self._keys.get(id)
        return found if found is not None and found.key.tenant == tenant else None


class MemoryAudit:
    """Entries by tenant."""

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._entries: dict[str, list[AuditEntry]] = defaultdict(list)

    async def append(self, tenant: str, entry: AuditEntry) -> int:
        """Add an entry; returns its position."""
        self._check_open()
        own = self._entries[tenant]
        own.append(msgspec.structs.replace(entry, tenant=tenant, position=len(own) + 1))
        return len(own)

    async def entries(
        self,
        tenant: str,
        limit: int,
        *,
        before: int | None = None,
        which: AuditFilter = EVERY_ENTRY,
    ) -> Sequence[AuditEntry]:
        """Entries of a tenant that a filter selects, latest first."""
        self._check_open()
        own = self._entries.get(tenant, [])
        end = len(own) if before is None else max(before - 1, 0)
        return [each for each in reversed(own[:end]) if is_chosen(each, which)][:limit]


class MemoryFeedback:
    """Feedback by run."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._given: dict[RunKey, dict[tuple[int | None, str, str], Feedback]] = {}

    async def give(self, run: RunKey, feedback: Feedback) -> None:
        """Store feedback on a run, replacing the earlier one of its author, name and turn.

        Raises:
            UnknownRun: the run does not exist.
            UsageError: the run has too much feedback.
        """
        self._log.check_open()
        if await self._log.ends(run) is None:
            raise UnknownRun(run.id)
        own = self._given.setdefault(run, {})
        place = (feedback.turn, feedback.name, feedback.who)
        if place not in own:
            refuse_more(run.id, len(own))
        own.pop(place, None)
        own[place] = feedback

    async def of_run(self, run: RunKey) -> Sequence[Feedback]:
        """The feedback on a run, oldest first."""
        self._log.check_open()
        return [*self._given.get(run, {}).values()]

    async def chosen(
        self, tenant: str, runs: Collection[str], which: FeedbackFilter
    ) -> frozenset[str]:
        """Those of some runs with feedback that a filter selects."""
        self._log.check_open()
        given = {run: self._given.get(RunKey(tenant, run), {}).values() for run in runs}
        return frozenset(
            run for run, own in given.items() if any(is_wanted(each, which) for each in own)
        )

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all feedback of a person; returns how much there was."""
        self._log.check_open()
        count = 0
        for run, own in self._given.items():
            for place in [place for place in own if run.tenant == tenant and place[2] == user]:
                count += 1
                if not dry_run:
                    del own[place]
        return count

    def remove(self, run: RunKey) -> None:
        """Remove the feedback on a run that is removed."""
        self._given.pop(run, None)


class MemorySchedules:
    """Firings of schedules, and planned starts."""

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._firings: dict[str, dict[str, Firing]] = defaultdict(dict)
        self._planned: dict[RunKey, PlannedStart] = {}

    async def firings(self, tenant: str) -> Mapping[str, Firing]:
        """The last firings of a tenant's schedules, by name."""
        self._check_open()
        return dict(self._firings.get(tenant, {}))

    async def begin(self, tenant: str, schedule: str, at: datetime) -> Firing:
        """The last firing of a schedule; the first call sets where it counts from."""
        self._check_open()
        return self._firings[tenant].setdefault(schedule, Firing(at))

    async def record(self, tenant: str, schedule: str, firing: Firing) -> None:
        """Store the last firing of a schedule, unless a later one is stored."""
        self._check_open()
        last = self._firings[tenant].get(schedule)
        if last is None or last.at < firing.at:
            self._firings[tenant][schedule] = firing

    async def plan(self, tenant: str, start: PlannedStart) -> bool:
        """Store a planned start; returns False if there is one of this run."""
        self._check_open()
        own = msgspec.structs.replace(start, tenant=tenant)
        return self._planned.setdefault(RunKey(tenant, start.run), own) is own

    async def planned(self, tenant: str, limit: int) -> Sequence[PlannedStart]:
        """Planned starts of a tenant, the next one first."""
        self._check_open()
        own = [each for each in self._planned.values() if each.tenant == tenant]
        return sorted(own, key=_order)[:limit]

    async def due(self, now: datetime, limit: int) -> Sequence[PlannedStart]:
        """Planned starts of all tenants that are due, oldest first."""
        self._check_open()
        return [each for each in self._open() if each.at <= now][:limit]

    async def upcoming(self) -> datetime | None:
        """The instant of the next planned start."""
        self._check_open()
        return next((each.at for each in self._open()), None)

    async def settle(self, run: RunKey, error: str = "") -> bool:
        """Remove a planned start, or keep it as failed."""
        self._check_open()
        found = self._planned.pop(run, None)
        if found is not None and error:
            self._planned[run] = msgspec.structs.replace(found, error=error)
        return found is not None

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all planned starts of a person; returns how many there were."""
        self._check_open()
        own = [
            run for run, each in self._planned.items() if (run.tenant, each.user) == (tenant, user)
        ]
        for run in () if dry_run else own:
            del self._planned[run]
        return len(own)

    def _open(self) -> list[PlannedStart]:
        return sorted((each for each in self._planned.values() if not each.error), key=_order)


def _order(start: PlannedStart) -> tuple[datetime, str, str]:
    return start.at, start.tenant, start.run
