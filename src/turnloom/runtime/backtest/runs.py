"""Backtest runs of a store."""

from functools import partial

from turnloom.errors import UsageError
from turnloom.kernel.threads import in_thread, threads
from turnloom.log.logic import started_of
from turnloom.log.spec import Event
from turnloom.reaction.logic.reacting import ReactionForm
from turnloom.runs.undriven import refuse_undriven
from turnloom.runtime.backtest.backtesting import backtest_all
from turnloom.runtime.backtest.spec import BacktestedRun, EditedThreshold, RecordedCase
from turnloom.runtime.boards import collecting
from turnloom.runtime.drive.plans import plan_of
from turnloom.runtime.ports import Plans
from turnloom.runtime.spec import LoadedWorkflow

# The purpose of the threads that backtest runs, and their number: each holds a log in memory.
BACKTESTING = "backtesting"
AT_ONCE = 4


async def backtest(
    loaded: LoadedWorkflow,
    events: list[Event],
    plans: Plans,
    pinned: LoadedWorkflow | None = None,
    *,
    has_components: bool = False,
    threshold: EditedThreshold | None = None,
) -> BacktestedRun:
    """Decide a recorded run again with an edited definition, or an edited threshold of one of its
    searches. Nothing is read but its log and its plan.

    Raises:
        UsageError: the definition is of another form, or lacks what the run collects for.
        WorkflowGone: nothing in the run was decided here.
    """
    edited = _fitting(loaded, events)
    plan = await plan_of(plans, started_of(events[:1]))
    text = plan.text if plan else ""
    case = RecordedCase(
        edited,
        events,
        has_components=has_components,
        plan=text,
        pinned=pinned,
        threshold=threshold,
    )
    (found,) = await in_thread(partial(backtest_all, [case]), threads(BACKTESTING, AT_ONCE))
    return found


def _fitting(loaded: LoadedWorkflow, events: list[Event]) -> LoadedWorkflow:
    """The edited definition for a run: of a run that collects, the part that collects."""
    started, form = started_of(events[:1]), loaded.workflow.form
    refuse_undriven(started)
    if started.form != form:
        raise UsageError(
            f"This run of {started.workflow!r} is a {started.form}, and {loaded.workflow.name!r} "
            f"is a {form}. Choose runs of the definition that was edited."
        )
    if not started.collects:
        return loaded
    board = loaded.workflow
    assert isinstance(board, ReactionForm)
    known = {each.id for member in board.plan.members.values() for each in member.subscriptions}
    if started.collects not in known:
        raise UsageError(
            f"This run collects for subscription {started.collects!r}, which board "
            f"{board.name!r} no longer has."
        )
    return collecting(loaded, started.collects)
