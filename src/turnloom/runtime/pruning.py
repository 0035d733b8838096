"""Remove runs that ended long ago."""

from collections.abc import AsyncGenerator, Collection
from datetime import datetime

from turnloom.log.events import RunStarted
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.ports import Pruner
from turnloom.runtime.spec import PrunedRun


async def prune(
    log: EventLog,
    pruner: Pruner,
    tenant: str,
    before: datetime,
    statuses: Collection[str],
    *,
    dry_run: bool = False,
) -> AsyncGenerator[PrunedRun]:
    """Remove runs of a tenant that ended before an instant, or say which would be, each when it
    is removed; the space that they took is given back at the end.

    Those that end last come first, so that a run goes before those whose artifacts it took. A run
    that is needed by others is tried again after them.

    Raises:
        StoreUnavailable: what was given is removed, and the rest may be later.
    """
    gone: set[str] = set()
    needed: list[RunKey] = []
    async for run in _removable(log, pruner, tenant, before, statuses=statuses):
        pruned = await pruner.remove(run, without=gone, dry_run=dry_run)
        if pruned is None:
            needed.append(run)
            continue
        if dry_run:
            gone.add(run.id)
        yield pruned
    for run in needed:
        pruned = await pruner.remove(run, without=gone, dry_run=dry_run)
        if pruned is not None:
            if dry_run:
                gone.add(run.id)
            yield pruned
    if not dry_run:
        await pruner.compact()


async def _removable(
    log: EventLog, pruner: Pruner, tenant: str, before: datetime, statuses: Collection[str]
) -> AsyncGenerator[RunKey]:
    async for ended in pruner.ended(tenant, before, statuses):
        run = RunKey(tenant, ended.run)
        ends = await log.ends(run)
        if ends is not None and not _leads_to_others(ends[0]):
            yield run


def _leads_to_others(first: Event) -> bool:
    """Whether later runs are found through this one: runs of a named correlation, and collecting
    runs, are counted from the first."""
    started = first.data
    if not isinstance(started, RunStarted):
        return True
    return bool(started.collects) or started.correlation not in ("", first.run)
