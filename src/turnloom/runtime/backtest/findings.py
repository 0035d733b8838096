"""What a backtest of one run has found so far."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from turnloom.agents.spec import RunState
from turnloom.assembly.events import FrameAssembled, Segment
from turnloom.log.spec import Event
from turnloom.runtime.backtest.comparing import (
    parts_of,
    recorded_sides,
    shown_texts,
    sides_of,
    unknown_in,
    unknown_origins,
    whole_frame,
)
from turnloom.runtime.backtest.spec import (
    Certainty,
    ComparedPart,
    EditedFrame,
    EndPoint,
    Part,
    PartDifference,
)

Key = tuple[Part, str]


class Findings:
    """Differences of one run, counted; the first one and the last frame are kept. Everything after
    the first changed frame is `assumed`."""

    def __init__(self) -> None:
        self.is_assumed = False
        self.has_other_values = False
        self.end: EndPoint | None = None
        self.first: PartDifference | None = None
        self.last_frame: PartDifference | None = None
        self.compared: Counter[str] = Counter()
        self.counts: Counter[tuple[Part, Certainty]] = Counter()
        # What frames depend on that is unknown: by turn, and in every turn.
        self.unknown: defaultdict[int, list[str]] = defaultdict(list)

    @property
    def certainty(self) -> Certainty:
        """How sure a difference is that is found now."""
        return "assumed" if self.is_assumed else "certain"

    def compare(
        self, recorded: Event | None, decided: Event | None, seq: int, state: RunState
    ) -> None:
        """Note how the two sides of an event differ; one of them may be missing."""
        before, after = _by_name(recorded), _by_name(decided)
        for key in dict.fromkeys((*before, *after)):
            self.compared[key[0]] += 1
            one, other = before.get(key), after.get(key)
            unknown = self._unknown(key, decided, other, state)
            if unknown or one is None or other is None or one.value != other.value:
                sure = "undecided" if unknown else self.certainty
                self.count(
                    PartDifference(
                        key[0],
                        sure,
                        key[1],
                        seq,
                        turn=_turn(decided) or _turn(recorded),
                        recorded=recorded,
                        decided=decided,
                        before=one.value if one else None,
                        after=other.value if other else None,
                        unknown=unknown,
                    )
                )

    def compare_gone(self, recorded: Event, certainty: Certainty) -> None:
        """Note that the edited definition does not lead to a recorded event."""
        for part, name, value in parts_of(recorded.data):
            self.compared[part] += 1
            self.count(
                PartDifference(
                    part,
                    certainty,
                    name,
                    recorded.seq,
                    turn=_turn(recorded),
                    recorded=recorded,
                    before=value,
                )
            )

    def count(self, found: PartDifference) -> None:
        """Count a difference."""
        self.counts[found.part, found.certainty] += 1
        if found.part == "value":
            self.has_other_values = True
        if found.part == "frame":
            self.is_assumed = True
            self.last_frame = found
        if self.first is None or found.seq < self.first.seq:
            self.first = found

    def undecide(self, name: str, seq: int, turn: int, unknown: tuple[str, ...]) -> None:
        """Note a route that depends on something unknown."""
        self.compared["route"] += 1
        self.count(PartDifference("route", "undecided", name, seq, turn=turn, unknown=unknown))

    def first_in_full(self, events: Sequence[Event], state: RunState) -> PartDifference | None:
        """The first difference; of a frame, with the segments of both sides."""
        first = self.first
        if first is None or first.part != "frame":
            return first
        before = recorded_sides(events, first.recorded.data) if first.recorded else ()
        after = ()
        if first.decided is not None:
            frame: FrameAssembled = first.decided.data
            after = sides_of(frame, _segments(frame, state), shown_texts(frame, state.texts))
        return replace(first, segments=(before, after))

    def last_in_full(self, written: Sequence[Event]) -> EditedFrame | None:
        """The last frame that differs, as the edited definition decides it."""
        last = self.last_frame
        if last is None or last.decided is None:
            return None
        return EditedFrame(whole_frame(written, last.decided.data), last.certainty, last.unknown)

    def _unknown(
        self, key: Key, decided: Event | None, other: ComparedPart | None, state: RunState
    ) -> tuple[str, ...]:
        """What a decided part depends on that is unknown."""
        if decided is None or other is None:
            return ()
        if key[0] != "frame":
            return unknown_in(other.value)
        frame: FrameAssembled = decided.data
        origins = unknown_origins(_segments(frame, state), shown_texts(frame, state.texts))
        return tuple(dict.fromkeys((*self.unknown[frame.turn], *self.unknown[0], *origins)))


def _segments(frame: FrameAssembled, state: RunState) -> Sequence[Segment]:
    if frame.segments or frame.view not in state.views:
        return frame.segments
    return state.views[frame.view][1]


def _by_name(event: Event | None) -> dict[Key, ComparedPart]:
    if event is None:
        return {}
    return {(each.part, each.name): each for each in parts_of(event.data)}


def _turn(event: Event | None) -> int:
    return getattr(event.data, "turn", 0) if event is not None else 0
