"""All runs of a log, page by page."""

from collections.abc import AsyncGenerator

from turnloom.errors import UnknownRun
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey

# How many runs are held at once.
PAGE = 500


async def all_runs(
    log: EventLog, tenant: str, *, unfinished: bool = False
) -> AsyncGenerator[tuple[Event, Event]]:
    """The first and the last event of each run of a tenant, or of each without an end, the run
    begun last coming first."""
    before: str | None = None
    while True:
        page = await log.runs(tenant, PAGE, before=before, unfinished=unfinished)
        for ends in page:
            yield ends
        if len(page) < PAGE:
            return
        before = page[-1][0].run


async def ends_of(log: EventLog, run: RunKey) -> tuple[Event, Event]:
    """The first and the last event of a run.

    Raises:
        UnknownRun: there is no such run.
    """
    ends = await log.ends(run)
    if ends is None:
        raise UnknownRun(run.id)
    return ends
