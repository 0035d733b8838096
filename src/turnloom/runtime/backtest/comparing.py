"""The parts of facts that a backtest compares: values, routes and frames."""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from turnloom.assembly.events import ContextGathered, FrameAssembled, RetrievalSearched, Segment
from turnloom.assembly.logic.frames import texts_of
from turnloom.assembly.logic.retrieval import found_texts
from turnloom.board.events import ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.conversation.events import RouteDecided
from turnloom.flow.events import (
    ApprovalDecided,
    BranchTaken,
    ForkFailed,
    ForkJoined,
    ForkOpened,
    LoopEnded,
    LoopPassed,
    StepCompleted,
    StepFailed,
    StepHandled,
    StepRecovered,
    StepSkipped,
)
from turnloom.guards.events import BudgetExceededFact, LoopDetectedFact, SelectionMade
from turnloom.log.events import RunCancelled, RunFailed, RunFinished
from turnloom.log.spec import Event, Fact
from turnloom.reaction.events import ArtifactOffered, LimitReached
from turnloom.runtime.backtest.spec import ComparedPart, FrameSide
from turnloom.variables.events import ContextChanged, ContextLoaded, ContextRefused
from turnloom.variables.spec.unknown import TOKEN, Unknown

# Stands for a variable that was removed.
REMOVED = "removed"


def parts_of(fact: Fact) -> Sequence[ComparedPart]:
    """The compared parts of a fact; most facts have none."""
    read = _PARTS.get(fact.__class__)
    return () if read is None else tuple(read(fact))


def _changed(fact: ContextChanged) -> Iterator[ComparedPart]:
    yield ComparedPart("value", fact.name, REMOVED if fact.removed else fact.value)


def _refused(fact: ContextRefused) -> Iterator[ComparedPart]:
    yield ComparedPart("value", fact.name, f"refused: {fact.reason}")


def _loaded(fact: ContextLoaded) -> Iterator[ComparedPart]:
    for each in fact.values:
        yield ComparedPart("value", each.name, each.value)


def _route(fact: RouteDecided) -> Iterator[ComparedPart]:
    yield ComparedPart("route", f"after {fact.source or 'the start'}", fact.target)


def _frame(fact: FrameAssembled) -> Iterator[ComparedPart]:
    yield ComparedPart("frame", fact.agent, fact.digest)


def _completed(fact: StepCompleted) -> Iterator[ComparedPart]:
    yield ComparedPart("value", fact.step, [fact.update, fact.reduced])
    yield ComparedPart("route", f"{fact.step} is unsure", fact.is_unsure)


def _failed(fact: StepFailed) -> Iterator[ComparedPart]:
    yield ComparedPart("route", f"{fact.step} fails", [fact.error, fact.handler])


def _branch(fact: BranchTaken) -> Iterator[ComparedPart]:
    yield ComparedPart("route", fact.branch, fact.case or fact.path)


def _opened(fact: ForkOpened) -> Iterator[ComparedPart]:
    yield ComparedPart("route", fact.fork, list(fact.paths))


def _joined(fact: ForkJoined) -> Iterator[ComparedPart]:
    ends = [[each.name, each.status] for each in fact.paths]
    yield ComparedPart("route", f"{fact.fork} joins", ends)
    yield ComparedPart("value", fact.fork, fact.reduced)


def _fork_failed(fact: ForkFailed) -> Iterator[ComparedPart]:
    yield ComparedPart("route", fact.fork, f"{fact.path} failed")


def _passed(fact: LoopPassed) -> Iterator[ComparedPart]:
    yield ComparedPart("route", f"{fact.loop} pass {fact.number}", fact.held)


def _ended(fact: LoopEnded) -> Iterator[ComparedPart]:
    yield ComparedPart("route", f"{fact.loop} ends", [fact.passes, fact.reason])


def _approval(fact: ApprovalDecided) -> Iterator[ComparedPart]:
    yield ComparedPart("route", fact.approval, [fact.outcome, fact.path, fact.to])


def _stopped(fact: StepSkipped | StepHandled | StepRecovered) -> Iterator[ComparedPart]:
    yield ComparedPart("route", fact.step, fact.kind)


def _offered(fact: ArtifactOffered) -> Iterator[ComparedPart]:
    verdicts = {each.subscription: each.verdict for each in fact.to}
    for subscription, verdict in verdicts.items():
        yield ComparedPart("route", subscription, verdict)


def _artifact(fact: ArtifactPublished | ArtifactMade) -> Iterator[ComparedPart]:
    yield ComparedPart("value", fact.artifact.type, _content(fact.artifact))


def _content(artifact: Artifact) -> Any:
    shown = {
        "id": artifact.id,
        "payload": artifact.payload,
        "tags": sorted(artifact.tags),
        "visibility": artifact.visibility,
        "partition": artifact.partition,
    }
    return msgspec.to_builtins(shown)


def _selected(fact: SelectionMade) -> Iterator[ComparedPart]:
    yield ComparedPart("route", "selection", fact.chosen)


def _limit(fact: BudgetExceededFact | LimitReached | LoopDetectedFact) -> Iterator[ComparedPart]:
    yield ComparedPart("route", "guards", fact.kind)


def _finished(fact: RunFinished) -> Iterator[ComparedPart]:
    yield ComparedPart("route", "end", "finished")


def _run_failed(fact: RunFailed) -> Iterator[ComparedPart]:
    yield ComparedPart("route", "end", f"failed: {fact.error}")


def _cancelled(fact: RunCancelled) -> Iterator[ComparedPart]:
    yield ComparedPart("route", "end", "cancelled")


_PARTS: dict[type, Any] = {
    ContextChanged: _changed,
    ContextRefused: _refused,
    ContextLoaded: _loaded,
    RouteDecided: _route,
    FrameAssembled: _frame,
    StepCompleted: _completed,
    StepFailed: _failed,
    BranchTaken: _branch,
    ForkOpened: _opened,
    ForkJoined: _joined,
    ForkFailed: _fork_failed,
    LoopPassed: _passed,
    LoopEnded: _ended,
    ApprovalDecided: _approval,
    StepSkipped: _stopped,
    StepHandled: _stopped,
    StepRecovered: _stopped,
    ArtifactOffered: _offered,
    ArtifactPublished: _artifact,
    ArtifactMade: _artifact,
    SelectionMade: _selected,
    BudgetExceededFact: _limit,
    LimitReached: _limit,
    LoopDetectedFact: _limit,
    RunFinished: _finished,
    RunFailed: _run_failed,
    RunCancelled: _cancelled,
}


def unknown_in(value: object) -> tuple[str, ...]:
    """What an unknown value depends on; empty if it is known."""
    return (f"{value.what}: {value.why}",) if isinstance(value, Unknown) else ()


def recorded_sides(events: Sequence[Event], frame: FrameAssembled) -> list[FrameSide]:
    """The segments of a recorded frame, and the messages that it showed."""
    segments = whole_frame(events, frame).segments
    wanted = {each.digest for each in segments}
    texts: dict[str, str] = {}
    for event in events:
        texts.update((key, text) for key, text in recorded_texts(event.data) if key in wanted)
    return sides_of(frame, segments, texts)


def whole_frame(events: Sequence[Event], frame: FrameAssembled) -> FrameAssembled:
    """A frame with its segments and what was withheld, also if it refers to an earlier one."""
    first = next((each.data for each in events if each.seq == frame.as_in), None)
    if not isinstance(first, FrameAssembled):
        return frame
    return msgspec.structs.replace(frame, segments=first.segments, withheld=first.withheld)


def sides_of(
    frame: FrameAssembled, segments: Sequence[Segment], texts: Mapping[str, str]
) -> list[FrameSide]:
    """The segments of a frame, and the messages that it shows."""
    return [*_sides(segments, texts), _history(frame)]


def shown_texts(frame: FrameAssembled, known: Mapping[str, str]) -> Mapping[str, str]:
    """Texts by digest: those that a run knew before, and those of a frame."""
    own = dict(recorded_texts(frame))
    return ChainMap(own, cast(dict[str, str], known)) if own else known


def unknown_origins(segments: Sequence[Segment], texts: Mapping[str, str]) -> list[str]:
    """The origins of segments that show something unknown."""
    return [each.origin for each in segments if TOKEN in texts.get(each.digest, "")]


def _sides(segments: Sequence[Segment], texts: Mapping[str, str]) -> Iterator[FrameSide]:
    for each in segments:
        yield FrameSide(each.origin, texts.get(each.digest, ""))


def _history(frame: FrameAssembled) -> FrameSide:
    return FrameSide("messages", f"{frame.history.count} messages ({frame.history.digest[:12]})")


def recorded_texts(fact: Fact) -> Iterator[tuple[str, str]]:
    """The texts that a fact has, with their digests."""
    match fact:
        case FrameAssembled(segments=segments):
            yield from ((each.digest, each.text) for each in segments if each.text is not None)
        case ContextGathered():
            yield from texts_of(fact).items()
        case RetrievalSearched():
            yield from found_texts(fact).items()
        case _:
            pass
