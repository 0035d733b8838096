"""Reading the runs of a log."""

from collections.abc import AsyncGenerator
from typing import cast

from turnloom.errors import UnknownRun, UsageError
from turnloom.log.ports import BranchingLog, EventLog
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey

# The number of runs read at once.
PAGE = 500


async def all_runs(
    log: EventLog, tenant: str, *, unfinished: bool = False, which: RunFilter = EVERY_RUN
) -> AsyncGenerator[tuple[Event, Event]]:
    """The first and the last event of each run of a tenant, of each unfinished one, or of each that
    a filter selects, newest run first."""
    before: str | None = None
    while True:
        page = await log.runs(tenant, PAGE, before=before, unfinished=unfinished, which=which)
        for ends in page:
            yield ends
        if len(page) < PAGE:
            return
        before = page[-1][1].run  # a branch begins with events of another run


async def ends_of(log: EventLog, run: RunKey) -> tuple[Event, Event]:
    """The first and the last event of a run.

    Raises:
        UnknownRun: the run does not exist.
    """
    ends = await log.ends(run)
    if ends is None:
        raise UnknownRun(run.id)
    return ends


def branching(log: EventLog, what: str) -> BranchingLog:
    """The log, if its runs can branch; `what` needs it.

    Raises:
        UsageError: the log lacks the methods of `BranchingLog`.
    """
    if not (hasattr(log, "branch") and hasattr(log, "batch_end")):
        raise UsageError(
            f"{what} needs a log whose runs can branch, and the log of this store cannot. Add "
            "`branch` and `batch_end` of `turnloom.ports.BranchingLog` to it."
        )
    return cast(BranchingLog, log)
