"""Cancelling runs whose definition cannot be restored: their code is gone, or is another one."""

from turnloom.flow.events import StepStarted
from turnloom.log.events import CancelRequested, RunCancelled
from turnloom.log.ports import Clock
from turnloom.log.spec import RunKey
from turnloom.runs.undriven import Undriven
from turnloom.runtime.logic import ENDED, fresh
from turnloom.runtime.service.driver import Stores
from turnloom.runtime.service.journal import Journal, telling
from turnloom.runtime.service.observers import Observers
from turnloom.runtime.spec import Loaded, Stop

# What is said of a run whose steps are not made up for, as their code is not there.
UNDONE = "(without its code: nothing was made up for)"


async def give_up(
    stores: Stores, clock: Clock, observers: Observers, run: RunKey, stop: Stop
) -> bool:
    """Cancel a run without any of its code; whether it was still open.

    Raises:
        RunBusy: another process drives it after all.
    """
    async with stores.claims.claim(run) as fence:
        form = Undriven("")
        events = await stores.log.read(run)
        watch = observers.watch(run, events[0].data) if observers else None
        log = telling(stores.log, watch)
        journal = Journal(log, clock, Loaded(form, {}, "", "", {}, {}), fresh(run, form))
        journal.fence = fence
        journal.catch_up(events)
        state = journal.state
        if state.status in ENDED:
            return False
        by, reason = stop.by, stop.reason
        if state.cancel is None:
            journal.record("cancel", CancelRequested(by, reason), by)
        if any(event.kind == StepStarted.kind for event in events):
            reason = f"{reason} {UNDONE}".lstrip()
        journal.record("end", RunCancelled(by, reason), by)
        await journal.commit()
    return True
