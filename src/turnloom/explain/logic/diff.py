"""Compare the frames of two turns: what was added, is gone or changed, and because of what."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from turnloom.agents.events import TurnStarted
from turnloom.assembly.events import (
    ContextGathered,
    FrameAssembled,
    HistorySummarised,
    Withheld,
)
from turnloom.board.events import ArtifactConsumed
from turnloom.errors import UsageError
from turnloom.explain.logic.causes import Causes, is_outside
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.origins import SegmentOrigins, ShownPiece, artifact_in
from turnloom.explain.logic.turn import explain_turn, find_turn
from turnloom.explain.logic.words import word_diff
from turnloom.explain.spec.diff import ChangeCause, SegmentChange, TurnDiff, TurnPlace, WordChange
from turnloom.explain.spec.explanations import NOTHING_DECLARED, RunDeclarations
from turnloom.explain.spec.turn import ShownSegment, TurnExplained
from turnloom.log.events import Pin, RunRetried, RunStarted
from turnloom.log.spec import Event
from turnloom.variables.events import ContextSuppressed

# Facts of the later turn itself: their causes say why it was taken.
_IN_TURN = (FrameAssembled, HistorySummarised, ContextGathered, ArtifactConsumed)

# Links of a chain of causes that are kept, at most.
LINKS = 10

_SOURCE = re.compile(r"context\[\d+\] ")


class ComparedRun(NamedTuple):
    """The log of a run with a turn to compare, and the declarations of the run."""

    events: Sequence[Event]
    declared: RunDeclarations = NOTHING_DECLARED


class Item(NamedTuple):
    """A segment, or a message of the history; `seq` is the event of a message."""

    kind: str
    origin: str
    reason: str
    text: str
    tokens: int
    seq: int = 0


class _Side(NamedTuple):
    """One of the two turns: its explanation, its items, and the origins of its segments."""

    run: ComparedRun
    turn: TurnExplained
    items: list[Item]
    origins: SegmentOrigins

    @property
    def seq(self) -> int:
        """The event that recorded the frame; the end of the log without a frame."""
        return self.turn.seq or self.run.events[-1].seq

    @property
    def place(self) -> TurnPlace:
        """The turn of this side."""
        return TurnPlace(self.turn.run, self.turn.turn, self.turn.agent, self.turn.seq)

    def origin(self, item: Item) -> Event:
        """The event behind an item."""
        if item.seq:
            return self.origins.event(item.seq)
        piece = ShownPiece(item.kind, item.origin, item.reason, self.turn.turn, seq=self.seq)
        return self.origins.of(piece)


def previous_turn(events: Sequence[Event], turn: int) -> int:
    """The turn before this one of the same agent.

    Raises:
        UsageError: there is no such turn, or it is the first one of its agent.
    """
    agent = find_turn(events, turn).data.agent
    started = (event.data for event in events if isinstance(event.data, TurnStarted))
    earlier = [fact.turn for fact in started if fact.agent == agent and fact.turn < turn]
    if not earlier:
        raise UsageError(
            f"Turn {turn} is the first turn of {agent!r} in this run. Name a turn to compare it "
            "with, of this run or of another one."
        )
    return earlier[-1]


def explain_diff(before: ComparedRun, old: int, after: ComparedRun, new: int) -> TurnDiff:
    """Compare turn `old` of one run with turn `new` of the same or another run.

    Raises:
        UsageError: there is no such turn.
    """
    a, b = _side(before, old), _side(after, new)
    pairs = _pairs(a.items, b.items, a.turn.run == b.turn.run)
    changed = [pair for pair in pairs if a.items[pair[0]].text != b.items[pair[1]].text]
    return TurnDiff(
        a.place,
        b.place,
        tuple(_Comparison(a, b).changes(pairs)),
        same=len(pairs) - len(changed),
        reordered=[new for _, new in pairs] != sorted(new for _, new in pairs),
        tokens_before=a.turn.tokens,
        tokens_after=b.turn.tokens,
    )


def _side(run: ComparedRun, turn: int) -> _Side:
    explained = explain_turn(run.events, turn)
    items = [item for segment in explained.segments for item in _items(segment)]
    return _Side(run, explained, items, SegmentOrigins(run.events, run.declared))


def _items(segment: ShownSegment) -> Iterator[Item]:
    """A segment as one item, or the history as one item per message."""
    if not segment.messages:
        text, tokens = segment.text, segment.tokens
        yield Item(segment.kind, segment.origin, segment.reason, text, tokens=tokens)
    total = sum(len(each.text) for each in segment.messages) or 1
    for each in segment.messages:
        tokens = round(segment.tokens * len(each.text) / total)
        origin = f"event {each.seq}"
        yield Item("history", origin, each.author, each.text, tokens=tokens, seq=each.seq)


def _pairs(old: Sequence[Item], new: Sequence[Item], is_one_run: bool) -> list[tuple[int, int]]:
    """The items that belong together: equal ones first, then those with the same name, then those
    in the same place. Sorted by the earlier frame."""
    pairs: dict[int, int] = _messages(old, new, is_one_run)
    for key in (_equal, _name, _place):
        taken = {*pairs.values()}
        free: dict[Hashable, list[int]] = defaultdict(list)
        for number, item in enumerate(new):
            if number not in taken and (known := key(item)) is not None:
                free[known].append(number)
        for number, item in enumerate(old):
            if number not in pairs and (left := free.get(key(item))):
                pairs[number] = left.pop(0)
    return sorted(pairs.items())


def _messages(old: Sequence[Item], new: Sequence[Item], is_one_run: bool) -> dict[int, int]:
    """The messages of the history in both frames: by their events, in one run, else by what was
    said, in order."""
    one = [number for number, item in enumerate(old) if item.seq]
    other = [number for number, item in enumerate(new) if item.seq]
    if is_one_run:
        places = {new[number].seq: number for number in other}
        return {n: places[old[n].seq] for n in one if old[n].seq in places}
    said = (
        [(old[n].reason, old[n].text) for n in one],
        [(new[n].reason, new[n].text) for n in other],
    )
    blocks = SequenceMatcher(None, *said).get_matching_blocks()
    return {one[a + n]: other[b + n] for a, b, size in blocks for n in range(size)}


def _equal(item: Item) -> Hashable:
    return None if item.seq else (_role(item), item.text)


def _name(item: Item) -> Hashable:
    name = _NAMES.get(item.kind)
    return (_role(item), name(item)) if name and name(item) and not item.seq else None


def _place(item: Item) -> Hashable:
    named = _NAMES.get(item.kind)
    return None if item.seq or (named and named(item)) else _role(item)


def _role(item: Item) -> Hashable:
    """What a segment is in its frame, without the name of the agent and the number of a source."""
    kind, origin = item.kind, item.origin
    if kind in ("instruction", "prompt"):
        return kind, origin.startswith("context_variables.")
    if kind == "input" and origin != "input":
        return kind, ""
    return kind, _SOURCE.sub("", origin)


def _passage(item: Item) -> str:
    return item.reason.partition(" scores ")[0]


# Kinds of segments that a frame may have several of in one place, and their names.
_NAMES: Mapping[str, Callable[[Item], str]] = {
    "artifact": lambda item: artifact_in(item.reason),
    "context.artifact": lambda item: artifact_in(item.reason),
    "context.history": lambda item: item.reason.partition(" of events ")[0],
    "context.retrieval": _passage,
    "context.variables": lambda item: item.reason,
    "input": lambda item: artifact_in(item.origin),
}


class _Comparison:
    """Two turns, and the events behind what differs."""

    def __init__(self, a: _Side, b: _Side) -> None:
        self._a, self._b = a, b
        self._causes = Causes(b.run.events)

    def changes(self, pairs: Sequence[tuple[int, int]]) -> Iterator[SegmentChange]:
        """Yield every change in the order of the later frame; what is gone follows what it
        followed."""
        partners, kept = dict(pairs), {new for _, new in pairs}
        placed: list[tuple[float, SegmentChange]] = []
        last = -1.0
        for number, item in enumerate(self._a.items):
            if (partner := partners.get(number)) is None:
                placed.append((last + 0.5, self._gone(item)))
                continue
            last = float(partner)
            if (now := self._b.items[partner]).text != item.text:
                placed.append((last, self._changed(item, now)))
        for number, item in enumerate(self._b.items):
            if number not in kept:
                placed.append((number, self._added(item)))
        yield from (change for _, change in sorted(placed, key=lambda each: each[0]))

    def _added(self, item: Item) -> SegmentChange:
        """A segment that the earlier frame does not have; a variable that had a value then was not
        exposed to its agent."""
        a, b = self._a, self._b
        had = a.origins.value(_variable(item), a.seq) if _variable(item) else None
        if had and not _left_out(item, a.turn.withheld) and not getattr(had.data, "removed", False):
            return _change("added", None, item, self._cause(b.origins.definition(b.seq)))
        said = f"said by {item.reason}" if item.seq else ""
        return _change("added", None, item, self._cause(b.origin(item), said))

    def _changed(self, was: Item, now: Item) -> SegmentChange:
        """A changed segment; a text that the budget cut follows from the frame."""
        b, left_out = self._b, _left_out(now, self._b.turn.withheld)
        is_cut = left_out is not None and left_out.reason == "over_budget"
        if left_out and is_cut and left_out not in self._a.turn.withheld:
            cause = self._cause(b.origins.event(b.seq), _withheld(left_out))
            return _change("changed", was, now, cause, withheld=_withheld(left_out))
        return _change("changed", was, now, self._cause(b.origin(now)))

    def _gone(self, item: Item) -> SegmentChange:
        """A segment that the later frame does not have, and why."""
        left_out = _left_out(item, self._b.turn.withheld)
        event = self._removal(item, left_out)
        why = _withheld(left_out) if left_out else ""
        cause = self._cause(event, why if event.seq == self._b.seq else "")
        return _change("gone", item, None, cause, withheld=why)

    def _removal(self, item: Item, left_out: Withheld | None) -> Event:
        """The event that removed an item from the later frame."""
        origins, seq, turn = self._b.origins, self._b.seq, self._b.turn.turn
        frame = origins.event(seq)
        if left_out and left_out.reason != "suppressed":
            summary = origins.summary(turn, seq) if "summarised" in left_out.detail else None
            return summary or frame
        match item.kind:
            case "variable" | "context.variables":
                event = origins.value(_variable(item), seq)
                is_without = event and (left_out or getattr(event.data, "removed", False))
                return event if event and is_without else origins.definition(seq)
            case "input" | "artifact" | "context":
                return origins.consumed(turn) or frame
            case "instruction" | "message":
                return origins.hooked(item.kind, turn, seq) or origins.definition(seq)
            case "tool" | "output" | "prompt" | "context.literal":
                return origins.definition(seq)
            case _:
                return frame

    def _cause(self, event: Event, says: str = "") -> ChangeCause:
        """An event behind a change, with its chain back to the other frame, unless `says` says it
        all."""
        a, b = self._a, self._b
        since = a.turn.seq if a.turn.run == b.turn.run else 0
        ends = says or isinstance(event.data, _IN_TURN) or is_outside(event)
        chain = [link for link in (() if ends else self._causes.of(event)) if link.seq > since]
        words = says or _definition_words(a, b, event) or describe(event.data)
        return ChangeCause(b.turn.run, event.seq, event.kind, words, causes=tuple(chain[:LINKS]))


def _change(
    change: Literal["added", "gone", "changed"],
    was: Item | None,
    now: Item | None,
    cause: ChangeCause,
    *,
    withheld: str = "",
) -> SegmentChange:
    shown = now or was
    assert shown is not None
    before, after = was.text if was else "", now.text if now else ""
    if was and now:
        words = word_diff(before, after)
    else:
        words = (WordChange("added" if now else "gone", shown.text),)
    said_by = f" ({shown.reason})" if shown.seq else ""
    return SegmentChange(
        change,
        shown.kind,
        f"{shown.origin}{said_by}",
        before,
        after=after,
        tokens_before=was.tokens if was else 0,
        tokens_after=now.tokens if now else 0,
        words=words,
        cause=cause,
        withheld=withheld,
    )


def _variable(item: Item) -> str:
    """The variable that a segment shows; empty for other kinds of segments."""
    match item.kind:
        case "variable":
            return item.origin.removeprefix("context_variables.")
        case "context.variables":
            return item.reason.removeprefix("variable ")
        case _:
            return ""


def _left_out(item: Item, withheld: Sequence[Withheld]) -> Withheld | None:
    """The entry of a frame that withholds an item."""
    names = {item.origin, f"{item.origin}: {_passage(item)}"}
    if item.kind == "context.variables":
        names.add(f"context_variables.{_variable(item)}")
    for each in withheld:
        span = re.fullmatch(r".*: events (\d+) to (\d+)", each.origin)
        said = item.seq or _said(item)
        if each.origin in names or (span and said and int(span[1]) <= said <= int(span[2])):
            return each
    return None


def _said(item: Item) -> int:
    """The event of a message that a source shows."""
    found = re.match(r"said in event (\d+)", item.reason)
    return int(found[1]) if found else 0


def _withheld(each: Withheld) -> str:
    return f"{each.reason}: {each.detail}" if each.detail else each.reason


def _definition_words(a: _Side, b: _Side, event: Event) -> str:
    """Name what differs between the definitions of two frames, if the event is a definition."""
    match event.data:
        case RunStarted() | RunRetried():
            pass
        case ContextSuppressed(reason=reason):
            return reason
        case _:
            return ""
    old, new = _pin(a), _pin(b)
    edited = [
        name
        for name in dict.fromkeys((*old.files, *new.files, *old.code, *new.code))
        if (old.files.get(name), old.code.get(name)) != (new.files.get(name), new.code.get(name))
    ]
    if edited:
        return f"the definition was edited: {', '.join(edited)}"
    if old.definition != new.definition:
        return "the definition was edited"
    if a.turn.agent != b.turn.agent:
        return f"declared for {b.turn.agent}, not for {a.turn.agent}"
    return ""


def _pin(side: _Side) -> RunStarted | Pin:
    """The definition that the run was pinned to when it took the turn."""
    pinned = side.origins.definition(side.seq).data
    if isinstance(pinned, RunRetried) and pinned.pin:
        return pinned.pin
    return side.run.events[0].data
