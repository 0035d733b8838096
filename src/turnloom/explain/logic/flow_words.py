"""What happens in flows in a few words."""

from collections.abc import Callable
from typing import Any

from turnloom.explain.spec.text import counted, moment, one_line
from turnloom.flow import events as flow
from turnloom.flow.logic.approvals import APPROVED, DEFERRED, EXPIRED
from turnloom.kernel.values import preview
from turnloom.log.spec import Fact


def _began(fact: flow.StepStarted) -> str:
    again = f", attempt {fact.attempt}" if fact.attempt > 1 else ""
    if fact.undoes:
        return f"{fact.step} began to make up for {fact.undoes}{again}"
    return f"step {fact.place} began{again}"


def changed(fact: flow.StepCompleted) -> str:
    """What a step changed, and how sure it is of that."""
    what = f"changed {preview(fact.update)}" if fact.update else "changed nothing"
    known = ", as was known from before" if fact.cached else ""
    unsure = f", and is not sure enough: {fact.confidence}" if fact.is_unsure else ""
    return f"{what}{known}{unsure}"


def fault(fact: Any) -> str:
    """What went wrong, on one line."""
    return one_line(f"{fact.error}: {fact.message}" if fact.message else fact.error)


def _retried(fact: flow.StepRetried) -> str:
    when = f", at {moment(fact.due)}" if fact.due else ""
    return f"attempt {fact.attempt} of step {fact.place} failed, and there is another{when}: "


def _compensated(fact: flow.StepCompensated) -> str:
    if fact.error:
        return f"{fact.by} failed to make up for {fact.place}: {fault(fact)}"
    return f"{fact.by} made up for {fact.place}"


def _taken(fact: flow.BranchTaken) -> str:
    led = f"takes the path of {fact.case}" if fact.path else "takes no path"
    return f"{fact.place} {led}, for {preview(fact.value)}"


def _joined(fact: flow.ForkJoined) -> str:
    ends = ", ".join(f"{each.name} {each.status}" for each in fact.paths)
    return f"the paths of {fact.place} are one again: {ends}"


def _passed(fact: flow.LoopPassed) -> str:
    holds = "holds" if fact.held else "does not hold"
    return f"pass {fact.number} of {fact.place} is over, and its condition {holds}"


def _ended(fact: flow.LoopEnded) -> str:
    return f"{fact.place} ended after pass {fact.passes}: {fact.reason}"


def _decided(fact: flow.ApprovalDecided) -> str:
    if fact.outcome == DEFERRED:
        said = f"{fact.approver} wants more time for {fact.place}"
    elif fact.outcome == EXPIRED:
        then = f", so {fact.to} is asked" if fact.to else ""
        said = f"{fact.approver} did not decide on {fact.place} in time{then}"
    else:
        verb = "approved of" if fact.outcome == APPROVED else "rejected"
        said = f"{fact.approver} {verb} {fact.place} ({fact.option})"
    return f"{said}: {one_line(fact.instructions)}" if fact.instructions else said


def _stopped(fact: flow.FlowStopped) -> str:
    return f"the flow does not go on: {fault(fact)}"


FLOW_WORDS: dict[type[Fact], Callable[[Any], str]] = {
    flow.StateGiven: lambda fact: f"the state is {preview(fact.state)}",
    flow.StateMigrated: lambda fact: f"the state is now {preview(fact.states.get(''))}",
    flow.StepStarted: _began,
    flow.StepCompleted: lambda fact: f"step {fact.place} {changed(fact)}",
    flow.StepRetried: lambda fact: f"{_retried(fact)}{fault(fact)}",
    flow.StepFailed: lambda fact: f"{fact.what or f'step {fact.place}'} failed: {fault(fact)}",
    flow.StepRecovered: lambda fact: f"the failure of {fact.place} is handled: the flow goes on",
    flow.StepHandled: lambda fact: f"the failure of {fact.place} is handled, and stands",
    flow.StepSkipped: lambda fact: f"step {fact.place} was stopped: {fact.reason}",
    flow.StepCompensated: _compensated,
    flow.BranchTaken: _taken,
    flow.ForkOpened: lambda fact: f"{fact.place} opens {counted(len(fact.paths), 'path')}",
    flow.ForkFailed: lambda fact: (
        f"{fact.path} failed, so {fact.place} is not joined: {fault(fact)}"
    ),
    flow.ForkJoined: _joined,
    flow.LoopPassed: _passed,
    flow.LoopEnded: _ended,
    flow.ApprovalDecided: _decided,
    flow.FlowStopped: _stopped,
}
