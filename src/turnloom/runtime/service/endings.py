"""How runs end that do not go on: what is to run afterwards runs, and knows how it ended."""

from turnloom.agents.events import TurnFinished
from turnloom.log.events import RunCancelled, RunFailed
from turnloom.runtime.service.hooks import HookRunner
from turnloom.runtime.service.journal import Journal


async def end_failed(journal: Journal, hooks: HookRunner) -> None:
    """End a run that cannot go on."""
    await hooks.after_chat("failed")
    failure = journal.state.failure
    assert failure is not None
    journal.record("end", RunFailed(failure.error, failure.message))


async def end_cancelled(journal: Journal, hooks: HookRunner) -> None:
    """End the open turn of a run that is to end, and the run."""
    wish = journal.state.cancel
    assert wish is not None
    hooks.give_up()
    for turn in [*journal.state.open.values()]:
        await hooks.after_agent(turn.number, turn.agent)
        journal.record(f"t{turn.number}/end", TurnFinished(turn.number, turn.agent, "cancelled"))
    await hooks.after_chat("cancelled")
    journal.record("end", RunCancelled(wish.by, wish.reason))
