"""Remove runs when their time is over, in small batches."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import anyio

from turnloom.errors import StoreUnavailable
from turnloom.log.ports import Clock
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import EVERY_TENANT, TenantList
from turnloom.runtime.pruning import PruningPorts, Removing
from turnloom.runtime.spec import PrunedRun, Removal

# Runs that are looked at in one batch.
BATCH = 100
# Seconds between two batches, and between two rounds over all runs.
PAUSE = 1.0
INTERVAL = 600.0

# On whose behalf runs are removed.
BY = "retention"

_log = logging.getLogger("turnloom.retention")


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How long runs stay after they ended: for an `age`, or for ever if it is None; failed ones for
    ever with `keep_failed`. `said` is the age as it was written."""

    age: timedelta | None
    said: str = ""
    keep_failed: bool = False

    @property
    def statuses(self) -> frozenset[str]:
        """The ends of runs that are removed."""
        ends = (
            {"finished", "cancelled"} if self.keep_failed else {"finished", "cancelled", "failed"}
        )
        return frozenset(ends)


class RetentionBatch(NamedTuple):
    """The runs that a batch removed, and whether it ended a round over all runs."""

    runs: Sequence[PrunedRun]
    is_done: bool


class Round(NamedTuple):
    """Where a round over all runs is: when it began, the tenant, and the end of the last run that
    was looked at."""

    at: datetime
    tenant: str = ""
    before: datetime | None = None


class Retention:
    """Removes the runs of each tenant whose time is over. `rules` are by tenant; `*` stands for all
    others, which `tenants` lists."""

    def __init__(
        self,
        ports: PruningPorts,
        tenants: TenantList,
        rules: Mapping[str, RetentionRule],
        clock: Clock,
    ) -> None:
        self._ports = ports
        self._tenants = tenants
        self._rules = rules
        self._clock = clock
        self._round: Round | None = None
        self._removed = 0

    async def apply(self, limit: int = BATCH) -> RetentionBatch:
        """Look at a bounded number of runs, from where the last call stopped, and remove those that
        no other run needs.

        Raises:
            StoreUnavailable: the record says what is removed; the next call continues.
        """
        here = self._round or Round(self._clock.now())
        removed: list[PrunedRun] = []
        left = limit
        for tenant in await self._names(here.tenant):
            rule = self._rule(tenant)
            if rule is None or rule.age is None:
                continue
            begin = here.before if tenant == here.tenant else None
            ended = await self._ended(tenant, begin or here.at - rule.age, rule, left)
            record = Removal(here.at, BY, f"retention {rule.said}")
            removing = Removing(self._ports, record)
            for run, _ in ended:
                if pruned := await removing.remove(RunKey(tenant, run)):
                    removed.append(pruned)
            left -= len(ended)
            if left <= 0:
                self._round = Round(here.at, tenant, ended[-1][1])
                self._removed += len(removed)
                return RetentionBatch(removed, is_done=False)
        self._round = None
        if self._removed + len(removed):
            await self._ports.pruner.compact()
        self._removed = 0
        return RetentionBatch(removed, is_done=True)

    async def keep(self, pause: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        """Apply the rules again and again, until cancelled. If the store fails, the next round
        tries again."""
        while True:
            seconds = INTERVAL
            try:
                batch = await self.apply()
                seconds = INTERVAL if batch.is_done else PAUSE
            except StoreUnavailable as error:
                _log.warning("Runs whose time is over cannot be removed: %s", error)
            await pause(seconds)

    def _rule(self, tenant: str) -> RetentionRule | None:
        return self._rules.get(tenant) or self._rules.get(EVERY_TENANT)

    async def _names(self, first: str) -> list[str]:
        """The tenants from one on, sorted."""
        return [name for name in await self._tenants.names() if name >= first]

    async def _ended(
        self, tenant: str, before: datetime, rule: RetentionRule, limit: int
    ) -> list[tuple[str, datetime]]:
        """Some runs of a tenant that ended before an instant, the latest first, with that end."""
        found: list[tuple[str, datetime]] = []
        pruner = self._ports.pruner
        async with aclosing(pruner.ended(tenant, before, rule.statuses)) as ended:
            async for each in ended:
                found.append((each.run, each.ended))
                if len(found) >= limit:
                    break
        return found
