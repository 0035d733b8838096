"""Ending runs that nobody can go on with: their code is gone, or is not what they are pinned to."""

from turnloom.flow.logic.flowing import Flowing
from turnloom.log.events import ENDS, CancelRequested, RunCancelled
from turnloom.log.ports import Clock
from turnloom.log.spec import Event, Fact
from turnloom.runtime.service.driver import Stores

# What is said of a flow that ends without its code.
UNDONE = "(without its code: nothing was made up for)"


async def give_up(stores: Stores, clock: Clock, run: str, by: str, reason: str) -> bool:
    """Put on record that a run was cancelled, without any of its code; whether it was still going.

    Raises:
        RunBusy: somebody goes on with it after all.
    """
    async with stores.claims.claim(run):
        events = await stores.log.read(run)
        last = events[-1]
        if last.kind in ENDS:
            return False
        if any(event.kind == CancelRequested.kind for event in events):
            facts: list[tuple[str, Fact]] = []
        else:
            facts = [("cancel", CancelRequested(by, reason))]
        if events[0].data.form == Flowing.form:
            reason = f"{reason} {UNDONE}".lstrip()
        facts.append(("end", RunCancelled(by, reason)))
        now = clock.now()
        batch = [
            Event(id, run, last.seq + n, now, fact.kind, by, fact, last.seq, fact.version)
            for n, (id, fact) in enumerate(facts, 1)
        ]
        await stores.log.append(run, batch, last.seq)
    return True
