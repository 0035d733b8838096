"""Stopping a flow: the cause, and the compensation that follows."""

from collections.abc import Sequence

import msgspec

from turnloom.flow.events import FlowStopped
from turnloom.flow.logic.walking import FAILURE, enter, failed
from turnloom.flow.spec.nodes import FlowPlan
from turnloom.flow.spec.progress import CompensationState, Progress, StepFailure

# The causes of a stop, other than those of guards.
FAILED, CANCELLED, TIMED_OUT = "step failed", "cancelled", "timed out"


def stop(plan: FlowPlan, progress: Progress, fact: FlowStopped) -> None:
    """Stop everything, and queue the compensation: first the step that failed, if it began, then
    open steps that have acted, then the completed ones, last first."""
    stuck = failed(progress)
    own = [each.broken for each in stuck if each.broken is not None]
    open = [step.done for step in progress.steps.values() if step.acted and step.done is not None]
    cut_off = [each for each in reversed(open) if each not in own]
    left = [*own, *cut_off, *reversed(progress.completed)]
    failure = _failure([each.failed for each in stuck if each.failed is not None], fact)
    progress.undoing = CompensationState(failure, fact.cause, progress.begun, left)
    rescue(plan, progress, progress.undoing)


def _failure(failures: Sequence[StepFailure], fact: FlowStopped) -> StepFailure:
    """Why a flow was stopped: a step that failed, or another cause. A stop by a guard has the
    guard's error, whether or not a step was open."""
    if fact.cause in (FAILED, CANCELLED, TIMED_OUT):
        return failures[0] if failures else StepFailure("", fact.error, fact.message)
    at = next((each for each in failures if each.message == fact.message), StepFailure("", "", ""))
    return msgspec.structs.replace(at, error=fact.error, message=fact.message)


def rescue(plan: FlowPlan, progress: Progress, undoing: CompensationState) -> None:
    """Once everything is stopped and compensated, begin the flow's path for failures."""
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
