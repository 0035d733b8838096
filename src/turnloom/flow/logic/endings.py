"""The end of a flow that does not go on: why it does not, and what is still to be done."""

from collections.abc import Sequence

import msgspec

from turnloom.flow.events import FlowStopped
from turnloom.flow.logic.walking import FAILURE, enter, failed
from turnloom.flow.spec.nodes import FlowPlan
from turnloom.flow.spec.progress import Progress, StepFailure, Undoing

# Why a flow does not go on, unless a guard says it in words of its own.
FAILED, CANCELLED, TIMED_OUT = "step failed", "cancelled", "timed out"


def stop(plan: FlowPlan, progress: Progress, fact: FlowStopped) -> None:
    """Let nothing go on; what was done is made up for: first what failed, if it began, then what
    is cut off and has acted, then the others, the one completed last coming first."""
    stuck = failed(progress)
    own = [each.broken for each in stuck if each.broken is not None]
    open = [step.done for step in progress.steps.values() if step.acted and step.done is not None]
    cut_off = [each for each in reversed(open) if each not in own]
    left = [*own, *cut_off, *reversed(progress.completed)]
    failure = _failure([each.failed for each in stuck if each.failed is not None], fact)
    progress.undoing = Undoing(failure, fact.cause, progress.begun, left)
    rescue(plan, progress, progress.undoing)


def _failure(failures: Sequence[StepFailure], fact: FlowStopped) -> StepFailure:
    """Why a flow does not go on: what failed in it, or what else stopped it. What a guard stopped
    is told in the guard's words, whether a step was being taken then or not."""
    if fact.cause in (FAILED, CANCELLED, TIMED_OUT):
        return failures[0] if failures else StepFailure("", fact.error, fact.message)
    at = next((each for each in failures if each.message == fact.message), StepFailure("", "", ""))
    return msgspec.structs.replace(at, error=fact.error, message=fact.message)


def rescue(plan: FlowPlan, progress: Progress, undoing: Undoing) -> None:
    """When all is cut off and made up for, let whatever the whole flow has for failures come."""
    if undoing.left or undoing.is_handled or progress.steps:
        return
    root = progress.strands[""]
    progress.strands, progress.going, progress.failed = {"": root}, {"": None}, []
    root.paths, root.open = [], 0
    if FAILURE in plan.paths and undoing.cause != CANCELLED:
        undoing.is_handled = True
        root.frames, root.failures, root.asking = [], [], None
        root.step = root.attempt = 0
        enter(plan, progress, root, FAILURE, prefix="!/")
