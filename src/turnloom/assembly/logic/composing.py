"""Compose context: remove duplicates, fit the budget, order and render."""

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from turnloom.assembly.events import Withheld
from turnloom.assembly.logic.assembled import (
    AssembledContext,
    Edges,
    Trait,
    edges_of,
    item_text,
    narrowed,
    ranks_of,
    traits_of,
    turn_of,
)
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.providers import Piece
from turnloom.assembly.spec.segments import ContextSegment, Fields
from turnloom.assembly.spec.sources import Share
from turnloom.errors import ContextTooLarge
from turnloom.kernel.digests import digest

# Marks the end of a truncated text.
MARK = "…"

# The tokens of an item, by its index, with this content and these edges.
Weigh = Callable[[int, str, Edges], int]


class RankedItem(NamedTuple):
    """An item to show: its segment and content; rank 0 is dropped last. Segments in `shared` have
    the same item."""

    segment: int
    content: str
    priority: int = 0
    rank: int = 0
    shared: tuple[int, ...] = ()


class Room(NamedTuple):
    """The token limit, and the tokens guaranteed to segments."""

    max_tokens: int
    minimums: Mapping[int, int] = {}


def fit(items: Sequence[RankedItem], weigh: Weigh, room: Room) -> list[str | None]:
    """The shown content of each item: all of it, a prefix, or None.

    An item is truncated only if its segment would otherwise show nothing.

    Raises:
        ContextTooLarge: the guaranteed tokens exceed the limit.
    """
    shown = _Shown(items, weigh)
    for segment, least in room.minimums.items():
        for number, content in _minimum(items, weigh, segment, least).items():
            # For shared items, the segment that keeps more of it counts.
            shown.put(number, max(content, shown.contents.get(number, ""), key=len))
    if shown.tokens > room.max_tokens:
        raise ContextTooLarge(
            f"The guaranteed context has {shown.tokens} tokens, but the limit is "
            f"{room.max_tokens}. Lower `min_tokens` of some sources, or raise `max_tokens`."
        )
    ranking = sorted(range(len(items)), key=lambda n: (-items[n].priority, items[n].rank, n))
    for _, alike in groupby(ranking, key=lambda n: items[n].priority):
        _fill(shown, [*alike], room.max_tokens)
    _top_up(shown, ranking, room.max_tokens)
    return [shown.contents.get(number) for number in range(len(items))]


def _fill(shown: "_Shown", numbers: Sequence[int], room: int) -> None:
    """Show items of one priority: all that fit, then prefixes of others."""
    left = [number for number in numbers if not _show(shown, number, room)]
    for number in left:
        if shown.is_bare(number):
            _trim(shown, number, room)


def _top_up(shown: "_Shown", numbers: Sequence[int], room: int) -> None:
    """Show items that fit after all: with other neighbours, items may cost fewer tokens."""
    left = [number for number in numbers if not shown.is_whole(number)]
    while True:
        still = [number for number in left if not _show(shown, number, room)]
        if len(still) == len(left):
            return
        left = still


def _minimum(items: Sequence[RankedItem], weigh: Weigh, segment: int, least: int) -> dict[int, str]:
    """The guaranteed part of a segment: whole items, and a prefix of the next one."""
    alone = _Shown(items, weigh, follows=True)
    own = [n for n, item in enumerate(items) if segment in (item.segment, *item.shared)]
    for number in sorted(own, key=lambda n: (items[n].rank, n)):
        if not _show(alone, number, least):
            _trim(alone, number, least)
            break
    return alone.contents


def _show(shown: "_Shown", number: int, room: int) -> bool:
    """Show a whole item if it fits; return whether it is shown."""
    if shown.is_whole(number):
        return True
    before = shown.contents.get(number)
    shown.put(number, shown.items[number].content)
    if shown.tokens <= room:
        return True
    shown.put(number, before)
    return False


def _trim(shown: "_Shown", number: int, room: int) -> None:
    """Show the longest prefix of an item that fits, if any."""
    whole, best = shown.items[number].content, shown.contents.get(number)
    low, high = len(best or MARK) - len(MARK), len(whole) - 1
    while low < high:
        middle = (low + high + 1) // 2
        content = trimmed(whole, middle)
        shown.put(number, content)
        if shown.tokens <= room:
            low, best = middle, content
        else:
            high = middle - 1
    shown.put(number, best)


def trimmed(text: str, length: int) -> str | None:
    """A prefix of a text with at most `length` characters, and a mark; None if it is empty."""
    while length and _is_inside(text, length):
        length -= 1
    return f"{text[:length]}{MARK}" if length else None


def _is_inside(text: str, at: int) -> bool:
    """Whether a position is inside a grapheme cluster."""
    if at >= len(text):
        return False
    before, behind = text[at - 1], text[at]
    if before == "\u200d" or behind == "\u200d" or (before, behind) == ("\r", "\n"):
        return True
    if "\U0001f3fb" <= behind <= "\U0001f3ff" or unicodedata.category(behind)[0] == "M":
        return True
    return _is_regional(behind) and _regionals_before(text, at) % 2 == 1


def _is_regional(mark: str) -> bool:
    """Whether this is half of a flag emoji."""
    return "\U0001f1e6" <= mark <= "\U0001f1ff"


def _regionals_before(text: str, at: int) -> int:
    start = at
    while start and _is_regional(text[start - 1]):
        start -= 1
    return at - start


class _Shown:
    """The shown items, with their tokens in context.

    `follows`: they are preceded by something else.
    """

    def __init__(self, items: Sequence[RankedItem], weigh: Weigh, *, follows: bool = False) -> None:
        self.items = items
        self.contents: dict[int, str] = {}
        self.tokens = 0
        self._weigh = weigh
        self._follows = follows
        self._numbers: list[int] = []
        self._weights: dict[int, int] = {}
        self._of_segment: dict[int, int] = {}

    def is_whole(self, number: int) -> bool:
        """Whether an item is shown completely."""
        return self.contents.get(number) == self.items[number].content

    def is_bare(self, number: int) -> bool:
        """Whether no other item of the item's segment is shown."""
        others = self._of_segment.get(self.items[number].segment, 0)
        return others - (number in self.contents) == 0

    def put(self, number: int, content: str | None) -> None:
        """Set or remove the shown content of an item, and recount its neighbours."""
        place = bisect_left(self._numbers, number)
        segment = self.items[number].segment
        if content is None:
            if self.contents.pop(number, None) is not None:
                del self._numbers[place]
                self._of_segment[segment] -= 1
                self.tokens -= self._weights.pop(number)
            self._weigh_between(place - 1, place)
            return
        if number not in self.contents:
            self._numbers.insert(place, number)
            self._of_segment[segment] = self._of_segment.get(segment, 0) + 1
        self.contents[number] = content
        self._weigh_between(place - 1, place + 1)

    def _weigh_between(self, first: int, last: int) -> None:
        for place in range(max(first, 0), min(last + 1, len(self._numbers))):
            number = self._numbers[place]
            weight = self._weigh(number, self.contents[number], self._edges(place))
            self.tokens += weight - self._weights.get(number, 0)
            self._weights[number] = weight

    def _edges(self, place: int) -> Edges:
        segment = self._segment_at(place)
        opens = self._segment_at(place - 1) != segment
        closes = self._segment_at(place + 1) != segment
        return Edges(place == 0 and not self._follows, opens, closes)

    def _segment_at(self, place: int) -> int | None:
        if 0 <= place < len(self._numbers):
            return self.items[self._numbers[place]].segment
        return None


# Counts the tokens of a text with this digest.
Count = Callable[[str, str], int]


class SegmentDraft(NamedTuple):
    """The draft of a source: a segment, if any, and what was withheld."""

    share: Share
    segment: ContextSegment | None
    withheld: tuple[Withheld, ...] = ()


class ComposedContext(NamedTuple):
    """Context, and the pieces that make up its text."""

    context: AssembledContext
    pieces: tuple[Piece, ...]


class ContextLine(NamedTuple):
    """An item of the context: its draft, segment and index, and other drafts with the same item."""

    draft: int
    segment: ContextSegment
    number: int
    item: Fields
    content: str
    priority: int
    rank: int
    trait: Trait
    shared: tuple[int, ...] = ()

    @property
    def called(self) -> str:
        """Its name when it is withheld."""
        origin, label = self.segment.origin, self.trait.label
        return f"{origin}: {label}" if label else origin


class PieceWriter:
    """Renders items, and caches those of the previous call."""

    def __init__(self, format: ContextFormat, count: Count) -> None:
        self.format = format
        self._count = count
        # Keyed by the ids of segments, which are kept alive here.
        self._known: dict[int, _RenderedItems] = {}

    def load(self, drafts: Sequence[SegmentDraft]) -> list[ContextLine]:
        """Load these drafts, forget all others, and return their items in order."""
        known = self._known
        self._known = {
            id(each.segment): known.get(id(each.segment)) or _RenderedItems(_lines(n, each), {})
            for n, each in enumerate(drafts)
            if each.segment is not None
        }
        rows = [each.lines for each in self._known.values() if each.lines]
        rows.sort(key=lambda lines: turn_of(lines[0].segment, self.format))
        return [line for lines in rows for line in lines]

    def piece(self, line: ContextLine, content: str, edges: Edges) -> Piece:
        """An item with this content as a piece of a frame."""
        if content != line.item["content"]:
            return self._write(line, {**line.item, "content": content}, edges)
        pieces = self._known[id(line.segment)].pieces
        found = pieces.get((line.number, edges))
        if found is None:
            found = pieces[line.number, edges] = self._write(line, line.item, edges)
        return found

    def _write(self, line: ContextLine, item: Fields, edges: Edges) -> Piece:
        segment = line.segment
        text = item_text(segment, item, edges, self.format)
        key = digest(text)
        tokens = self._count(text, key)
        return Piece(
            segment.kind, segment.origin, text, key, tokens=tokens, reason=line.trait.reason
        )


class _RenderedItems(NamedTuple):
    """The items of a segment, and their rendered pieces."""

    lines: Sequence[ContextLine]
    pieces: dict[tuple[int, Edges], Piece]


def _lines(n: int, draft: SegmentDraft) -> list[ContextLine]:
    segment, priority = draft.segment, draft.share.priority
    if segment is None:
        return []
    items = zip(segment.items, ranks_of(segment), traits_of(segment), strict=True)
    return [
        ContextLine(
            n,
            segment,
            number,
            item,
            content=item["content"],
            priority=priority,
            rank=rank,
            trait=trait,
        )
        for number, (item, rank, trait) in enumerate(items)
    ]


def compose(
    drafts: Sequence[SegmentDraft], budget: Budget | None, writer: PieceWriter
) -> ComposedContext:
    """Compose drafts into context; everything else is withheld, with a reason.

    Raises:
        ContextTooLarge: the guaranteed tokens exceed the limit.
    """
    withheld = [[*each.withheld] for each in drafts]
    lines = _once(writer.load(drafts), withheld)
    fitted = [*zip(lines, _fitted(lines, drafts, budget, writer), strict=True)]
    shown = [line._replace(content=content) for line, content in fitted if content is not None]
    pieces = _pieces(shown, writer)
    if budget is not None:
        free = budget.max_tokens - sum(each.tokens for each in pieces)
        for line, content in fitted:
            if content != line.content:
                withheld[line.draft].append(_over_budget(line, content, free, writer))
    left_out = tuple(each for some in withheld for each in some)
    return ComposedContext(_context(shown, pieces, left_out), pieces)


def _once(lines: Sequence[ContextLine], withheld: Sequence[list[Withheld]]) -> list[ContextLine]:
    """Lines without duplicates; each has the highest priority of its duplicates."""
    kept: dict[object, ContextLine] = {}
    for place, line in enumerate(lines):
        key = line.trait.key or place
        first = kept.setdefault(key, line)
        if first is not line:
            most, shared = max(first.priority, line.priority), (*first.shared, line.draft)
            kept[key] = first._replace(priority=most, shared=shared)
            entry = Withheld(line.called, "duplicate", f"the same as {first.called}")
            withheld[line.draft].append(entry)
    return list(kept.values())


def _fitted(
    lines: Sequence[ContextLine],
    drafts: Sequence[SegmentDraft],
    budget: Budget | None,
    writer: PieceWriter,
) -> Sequence[str | None]:
    """The shown content of each line."""
    whole = [line.content for line in lines]
    if budget is None or sum(each.tokens for each in _pieces(lines, writer)) <= budget.max_tokens:
        return whole

    def weigh(number: int, content: str, edges: Edges) -> int:
        return writer.piece(lines[number], content, edges).tokens

    minimums = {n: each.share.min_tokens for n, each in enumerate(drafts) if each.share.min_tokens}
    items = [
        RankedItem(each.draft, each.content, each.priority, each.rank, shared=each.shared)
        for each in lines
    ]
    return fit(items, weigh, Room(budget.max_tokens, minimums))


def _pieces(lines: Sequence[ContextLine], writer: PieceWriter) -> tuple[Piece, ...]:
    edges = edges_of([line.draft for line in lines])
    return tuple(map(writer.piece, lines, (line.content for line in lines), edges))


def _context(
    shown: Sequence[ContextLine], pieces: Sequence[Piece], withheld: tuple[Withheld, ...]
) -> AssembledContext:
    segments: list[ContextSegment] = []
    pairs = zip(shown, pieces, strict=True)
    for _, some in groupby(pairs, key=lambda pair: pair[0].draft):
        own = list(some)
        contents = {line.number: line.content for line, _ in own}
        tokens = sum(piece.tokens for _, piece in own)
        segments.append(narrowed(own[0][0].segment, contents, tokens))
    return AssembledContext(tuple(segments), withheld, sum(each.tokens for each in segments))


def _over_budget(
    line: ContextLine, content: str | None, free: int, writer: PieceWriter
) -> Withheld:
    if content is None:
        (piece,) = _pieces([line], writer)
        return Withheld(line.called, "over_budget", f"{piece.tokens} tokens, {free} free")
    shown = len(content.removesuffix(MARK))
    detail = f"{shown} of {len(line.content)} characters are shown"
    return Withheld(line.called, "over_budget", detail)
