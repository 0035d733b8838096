"""Cancelling runs whose definition cannot be restored: their code is gone, or is another one."""

from turnloom.flow.logic.flowing import Flowing
from turnloom.log.events import CancelRequested, RunCancelled
from turnloom.log.ports import Clock
from turnloom.runs.undriven import Undriven
from turnloom.runtime.logic import ENDED, fresh
from turnloom.runtime.service.driver import Stores
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.spec import Loaded

# What is said of a flow that ends without its code.
UNDONE = "(without its code: nothing was made up for)"


async def give_up(stores: Stores, clock: Clock, run: str, by: str, reason: str) -> bool:
    """Cancel a run without any of its code; whether it was still open.

    Raises:
        RunBusy: another process drives it after all.
    """
    async with stores.claims.claim(run):
        form = Undriven("")
        journal = Journal(stores.log, clock, Loaded(form, {}, "", "", {}, {}), fresh(run, form))
        journal.catch_up(await stores.log.read(run))
        state = journal.state
        if state.status in ENDED:
            return False
        if state.cancel is None:
            journal.record("cancel", CancelRequested(by, reason), by)
        if state.form == Flowing.form:
            reason = f"{reason} {UNDONE}".lstrip()
        journal.record("end", RunCancelled(by, reason), by)
        await journal.commit()
    return True
