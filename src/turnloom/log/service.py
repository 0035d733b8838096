"""Reading the runs of a log."""

from collections.abc import AsyncGenerator

from turnloom.errors import UnknownRun
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey

# The number of runs read at once.
PAGE = 500


async def all_runs(
    log: EventLog, tenant: str, *, unfinished: bool = False
) -> AsyncGenerator[tuple[Event, Event]]:
    """The first and the last event of each run of a tenant, or of each unfinished one, newest run
    first."""
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
        UnknownRun: the run does not exist.
    """
    ends = await log.ends(run)
    if ends is None:
        raise UnknownRun(run.id)
    return ends
