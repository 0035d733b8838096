"""Find a text in a run: every frame and event that has it, and where it first entered."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from turnloom.agents.events import TurnStarted
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    HistorySummarised,
    Segment,
)
from turnloom.board.events import ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.explain.logic.artifacts import ArtifactHistory
from turnloom.explain.logic.causes import Causes, is_outside
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.frames import Frames, turn_of
from turnloom.explain.logic.origins import SegmentOrigins, ShownPiece
from turnloom.explain.logic.texts import TextMatch, TextSearch
from turnloom.explain.spec.blame import BlameExplained, TextOrigin, TextPlace
from turnloom.explain.spec.explanations import NOTHING_DECLARED, RunDeclarations
from turnloom.flow.events import StepCompleted, StepStarted
from turnloom.kernel.values import as_object
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event
from turnloom.reaction.events import ArtifactReceived, ArtifactsGiven

# Facts at which a walk along causes ends: a model saw its frame only.
BEGINNINGS = (FrameAssembled, TurnStarted, StepStarted, RunStarted)


class _Shown(NamedTuple):
    """A segment of a frame, or its history, that has the text, and the event behind it."""

    where: str
    reason: str
    origin: int
    match: TextMatch
    messages: int = 0


class TextTrace:
    """A text in one run: its occurrences, and the event that each of them derives from."""

    def __init__(
        self,
        events: Sequence[Event],
        search: TextSearch,
        declared: RunDeclarations = NOTHING_DECLARED,
    ) -> None:
        self._events = {event.seq: event for event in events}
        self._run = events[-1].run
        self._search = search
        self._origins = SegmentOrigins(events, declared)
        self._causes = Causes(events)
        self._artifacts = ArtifactHistory(events)
        # The occurrences: of events, of frames, and the messages that have the text, in log order.
        self._found: dict[int, TextMatch] = {}
        self._frames: dict[int, list[_Shown]] = {}
        self._messages: list[int] = []
        self._turns: dict[int, list[int]] = {}
        self._texts: dict[str, TextMatch | None] = {}
        self._behind: dict[tuple[str, str, str, str], int] = {}
        self._entered: dict[int, int] = {}
        self._seen = Frames()
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        count = len(self._seen.messages)
        self._seen.take(event)
        if isinstance(event.data, FrameAssembled):
            if shown := [*self._shown(event, event.data)]:
                self._frames[event.seq] = shown
            return
        said = self._seen.messages[count:]
        match = self._search.find_in(event.data)
        if any(self._search.find(each.text) for each in said):
            self._messages.append(event.seq)
        if match is not None:
            self._found[event.seq] = match
            self._turns.setdefault(turn_of(event) or 0, []).append(event.seq)

    def _shown(self, at: Event, frame: FrameAssembled) -> Iterator[_Shown]:
        """The segments of a frame that have the text, and the history as a whole."""
        view = self._seen.view_of(frame)
        for segment in view.segments if view else ():
            if (match := self._match(segment)) is not None:
                yield _Shown(
                    f"{segment.kind} {segment.origin}",
                    segment.reason,
                    self._origin(segment, at, frame),
                    match,
                )
        first, last = frame.history.first, frame.history.last
        start = bisect_left(self._messages, first)
        count = bisect_right(self._messages, last) - start
        if count > 0 and frame.history.count:
            seq = self._messages[start]
            match = self._found.get(seq) or TextMatch("", True, self._search.text)
            yield _Shown(f"history event {seq}", "", seq, match, messages=count)

    def _match(self, segment: Segment) -> TextMatch | None:
        """The text in a segment; each text is searched once."""
        if segment.digest not in self._texts:
            text = self._seen.texts.get(segment.digest, "")
            self._texts[segment.digest] = self._search.find(text)
        return self._texts[segment.digest]

    def _origin(self, segment: Segment, at: Event, frame: FrameAssembled) -> int:
        """The event behind a segment, where the run first shows it."""
        key = (segment.kind, segment.origin, segment.reason, segment.digest)
        if key not in self._behind:
            piece = ShownPiece(*key[:3], turn=frame.turn, seq=at.seq)
            self._behind[key] = self._origins.of(piece).seq
        return self._behind[key]

    def entered(self, seq: int) -> int:
        """The event that brought the text into the run, from which this event derives."""
        path: list[int] = []
        while seq not in self._entered:
            path.append(seq)
            before = self._derived_from(self._events[seq])
            if not before:
                self._entered[seq] = seq
                break
            seq = before
        found = self._entered[seq]
        self._entered |= dict.fromkeys(path, found)
        return found

    def _derived_from(self, event: Event) -> int:
        """The nearest earlier event that has the text and led to this one; 0 if there is none."""
        fact = event.data
        if isinstance(fact, HistorySummarised):
            return next((seq for seq in self._messages if fact.first <= seq <= fact.last), 0)
        if isinstance(fact, ContextGathered):
            known = (self._artifacts.origin(item.artifact) for item in fact.items)
            return min((e.seq for e in known if e and e.seq in self._found), default=0)
        if is_outside(event):
            return 0
        if isinstance(fact, StepCompleted):
            return self._before_step(event)
        return self._along_causes(event)

    def _before_step(self, event: Event) -> int:
        """What the agent of a step said with the text, or else the last change of the state with
        it."""
        started = self._causes.nearest(event)
        turn = getattr(started.data, "turn", 0) if started else 0
        said = self._turns.get(turn, ()) if turn else ()
        if place := bisect_left(said, event.seq):
            return said[place - 1]
        changed = self._origins.state("", turn, event.seq)
        while changed and changed.seq not in self._found:
            changed = self._origins.state("", turn, changed.seq)
        return changed.seq if changed else 0

    def _along_causes(self, event: Event) -> int:
        """The nearest event with the text on the way back to the frame, or behind that frame."""
        current = self._causes.nearest(event)
        while current is not None:
            if current.seq in self._frames:
                return min(each.origin for each in self._frames[current.seq])
            if current.seq in self._found:
                return current.seq
            if isinstance(current.data, BEGINNINGS) or is_outside(current):
                return 0
            current = self._causes.nearest(current)
        return 0

    def places(self) -> Iterator[TextPlace]:
        """Every occurrence, in log order."""
        for seq in sorted((*self._found, *self._frames)):
            event = self._events[seq]
            if seq in self._found:
                where, exact, excerpt = self._found[seq]
                agent = getattr(event.data, "agent", None) or getattr(event.data, "author", "")
                turn = getattr(event.data, "turn", 0)
                yield TextPlace(
                    seq,
                    event.kind,
                    where,
                    seq,
                    entered=self.entered(seq),
                    exact=exact,
                    excerpt=excerpt,
                    turn=turn,
                    agent=agent,
                )
            for each in self._frames.get(seq, ()):
                yield TextPlace(
                    seq,
                    event.kind,
                    each.where,
                    each.origin,
                    entered=self.entered(each.origin),
                    exact=each.match.exact,
                    excerpt=each.match.excerpt,
                    turn=event.data.turn,
                    agent=event.data.agent,
                    reason=each.reason,
                    messages=each.messages,
                )

    def entry(self, seq: int) -> TextOrigin:
        """The event that brought the text into the run, with the artifact of another run that it
        brought, if it did."""
        event = self._events[seq]
        match = self._found.get(seq)
        artifact, run = self._foreign(event)
        return TextOrigin(
            self._run,
            seq,
            event.kind,
            event.actor,
            where=match.where if match else "",
            says=describe(event.data),
            artifact=artifact,
            from_run=run,
        )

    def published(self, artifact: str) -> TextOrigin | None:
        """Where the text of an artifact of this run entered; None if the run does not have it."""
        event = self._artifacts.origin(artifact)
        return self.entry(self.entered(event.seq)) if event else None

    def _foreign(self, event: Event) -> tuple[str, str]:
        """The artifact with the text that an event brought from another run, and that run."""
        for id, run in self._brought(event):
            if run and run != self._run:
                return id, run
        return "", ""

    def _brought(self, event: Event) -> Iterator[tuple[str, str]]:
        match event.data:
            case ArtifactReceived(artifact=artifact) | ArtifactPublished(artifact=artifact):
                yield artifact.id, artifact.run or ""
            case ArtifactsGiven(artifacts=artifacts):
                yield from ((each.id, each.run or "") for each in artifacts if self._has(each))
            case ContextGathered(items=items):
                for item in items:
                    text = self._seen.texts.get(item.digest, "")
                    if item.artifact and self._search.find(text):
                        yield item.artifact, _run_in(text)
            case _:
                return

    def _has(self, artifact: Artifact) -> bool:
        fact = ArtifactPublished(artifact)
        return self._search.find_in(fact) is not None


def _run_in(text: str) -> str:
    """The run of an artifact, from its text in a frame."""
    try:
        data = as_object(msgspec.json.decode(text.strip()))
    except msgspec.DecodeError:
        return ""
    return str((data or {}).get("run") or "")


def explain_blame(trace: TextTrace, run: str, text: str) -> BlameExplained:
    """Every place of a run that has a text, and where it entered."""
    places = tuple(trace.places())
    entries = sorted({each.entered for each in places})
    return BlameExplained(run, text, places, tuple(map(trace.entry, entries)))
