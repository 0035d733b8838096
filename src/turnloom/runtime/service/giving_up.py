"""Cancelling runs whose definition cannot be restored, without any of their code."""

from collections.abc import Iterator, Sequence

from turnloom.flow.events import StepCompensated, StepCompleted
from turnloom.flow.logic.salvaging import LOST, undoable_in
from turnloom.log.events import CancelRequested, RunCancelled
from turnloom.log.ports import Clock
from turnloom.log.spec import Event, RunKey
from turnloom.runs.undriven import Undriven
from turnloom.runtime.logic import ENDED, fresh
from turnloom.runtime.service.driver import Stores
from turnloom.runtime.service.journal import Journal, telling
from turnloom.runtime.service.observers import Observers
from turnloom.runtime.service.pinning import plan_of
from turnloom.runtime.spec import Loaded, Stop


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
        plan = await plan_of(stores.plans, events[0].data)
        for number, fact in enumerate(_lost(events, plan.text if plan else "{}")):
            journal.record(f"lost/{number}", fact)
        journal.record("end", RunCancelled(by, reason), by)
        await journal.commit()
    return True


def _lost(events: Sequence[Event], plan: str) -> Iterator[StepCompensated]:
    """The steps that the plan of a flow makes up for and that are not, the last one first."""
    undoable, facts = undoable_in(plan), [event.data for event in events]
    undone = {fact.place for fact in facts if isinstance(fact, StepCompensated)}
    for fact in reversed(facts):
        if not isinstance(fact, StepCompleted) or fact.cached or fact.step not in undoable:
            continue
        if fact.place not in undone:
            message = f"The code is not there that makes up for step {fact.step!r}."
            yield StepCompensated(
                fact.step, fact.place, fact.number, "", error=LOST, message=message
            )
