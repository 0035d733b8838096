"""The rows of a timeline that flows add: steps with their attempts, and where the flow went."""

from typing import Any

from turnloom.explain.logic.flow_words import changed, fault
from turnloom.explain.logic.rows import Handlers, Rows
from turnloom.explain.logic.words import words
from turnloom.explain.spec.text import moment
from turnloom.flow import events as flow
from turnloom.log.spec import Event


def _on_started(rows: Rows, event: Event, fact: flow.StepStarted) -> None:
    key = f"s{fact.number}"
    if fact.turn:
        rows.place(f"t{fact.turn}", key)
    if key in rows:
        return  # another attempt
    what = "compensation" if fact.undoes else "step"
    rows.add(key, event, what, fact.place, note=f"by {fact.step}" if fact.undoes else "")


def _on_retried(rows: Rows, event: Event, fact: flow.StepRetried) -> None:
    again = f", again at {moment(fact.due)}" if fact.due else ""
    rows.fill(f"s{fact.number}", note=f"attempt {fact.attempt} failed: {fault(fact)}{again}")


def _end(rows: Rows, event: Event, fact: Any, note: str) -> None:
    """Complete the row of a step; how many attempts it took is said if they were several."""
    attempt = getattr(fact, "attempt", 1)
    rows.close(f"s{fact.number}", event, f"{note}, attempt {attempt}" if attempt > 1 else note)


def _on_completed(rows: Rows, event: Event, fact: flow.StepCompleted) -> None:
    if fact.cached:  # it did not begin
        rows.add(event.id, event, "step", fact.place, note=changed(fact))
    _end(rows, event, fact, changed(fact))


def _on_failed(rows: Rows, event: Event, fact: flow.StepFailed) -> None:
    if not fact.number:  # it did not begin
        note = f"{fact.what} failed: {fault(fact)}".lstrip()
        rows.add(event.id, event, "step", fact.place, note=note)
    _end(rows, event, fact, f"failed: {fault(fact)}")


def _on_skipped(rows: Rows, event: Event, fact: flow.StepSkipped) -> None:
    _end(rows, event, fact, f"stopped: {fact.reason}")


def _on_compensated(rows: Rows, event: Event, fact: flow.StepCompensated) -> None:
    failed = f", failed: {fault(fact)}" if fact.error else ""
    _end(rows, event, fact, f"by {fact.by}{failed}")


def _told(what: str) -> Any:
    """A row of its own for an event, which says what happened in words."""

    def add(rows: Rows, event: Event, fact: Any) -> None:
        rows.add(event.id, event, what, getattr(fact, "place", "flow"), note=words(event))

    return add


FLOW_HANDLERS: Handlers = {
    flow.StepStarted.kind: _on_started,
    flow.StepRetried.kind: _on_retried,
    flow.StepCompleted.kind: _on_completed,
    flow.StepFailed.kind: _on_failed,
    flow.StepSkipped.kind: _on_skipped,
    flow.StepCompensated.kind: _on_compensated,
    flow.StepRecovered.kind: _told("recovered"),
    flow.StepHandled.kind: _told("handled"),
    flow.BranchTaken.kind: _told("branch"),
    flow.ForkOpened.kind: _told("fork"),
    flow.ForkFailed.kind: _told("fork"),
    flow.ForkJoined.kind: _told("join"),
    flow.LoopPassed.kind: _told("loop"),
    flow.LoopEnded.kind: _told("loop"),
    flow.ApprovalDecided.kind: _told("approval"),
    flow.FlowStopped.kind: _told("stop"),
}
