"""Composing: what sources came to, without doubles, fitted and written, as context and pieces."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from turnloom.assembly.events import Withheld
from turnloom.assembly.logic.assembled import AssembledContext, Trait, narrowed, ranks_of, traits_of
from turnloom.assembly.logic.fitting import MARK, Item, Room, fit
from turnloom.assembly.logic.rendering import Edges, edges_of, item_text, turn_of
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.messages import Piece
from turnloom.assembly.spec.segments import ContextSegment, Fields
from turnloom.assembly.spec.sources import Share
from turnloom.kernel.digests import digest

# The tokens of a text that has this digest.
Count = Callable[[str, str], int]


class Draft(NamedTuple):
    """What a source came to: a segment, and what is not in it; nothing without a segment."""

    share: Share
    segment: ContextSegment | None
    withheld: tuple[Withheld, ...] = ()


class Composed(NamedTuple):
    """Context, and the same in pieces: they make exactly its text."""

    context: AssembledContext
    pieces: tuple[Piece, ...]


class Line(NamedTuple):
    """An item on its way into the context: of which draft and segment, which of its items, and
    which other drafts have the same."""

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
        """What it is called when it is left out."""
        origin, label = self.segment.origin, self.trait.label
        return f"{origin}: {label}" if label else origin


class Press:
    """Writes items, and remembers those of the last time: what stays is not written anew."""

    def __init__(self, format: ContextFormat, count: Count) -> None:
        self.format = format
        self._count = count
        # By the ids of segments, which are held here, so that these stay theirs.
        self._known: dict[int, _Plates] = {}

    def load(self, drafts: Sequence[Draft]) -> list[Line]:
        """Begin with these drafts, and forget all others: their items in the order in which they
        are to stand."""
        known = self._known
        self._known = {
            id(each.segment): known.get(id(each.segment)) or _Plates(_lines(n, each), {})
            for n, each in enumerate(drafts)
            if each.segment is not None
        }
        rows = [each.lines for each in self._known.values() if each.lines]
        rows.sort(key=lambda lines: turn_of(lines[0].segment, self.format))
        return [line for lines in rows for line in lines]

    def piece(self, line: Line, content: str, edges: Edges) -> Piece:
        """An item with this content as a piece of a frame."""
        if content != line.item["content"]:
            return self._write(line, {**line.item, "content": content}, edges)
        pieces = self._known[id(line.segment)].pieces
        found = pieces.get((line.number, edges))
        if found is None:
            found = pieces[line.number, edges] = self._write(line, line.item, edges)
        return found

    def _write(self, line: Line, item: Fields, edges: Edges) -> Piece:
        segment = line.segment
        text = item_text(segment, item, edges, self.format)
        key = digest(text)
        tokens = self._count(text, key)
        return Piece(segment.kind, segment.origin, text, key, tokens, line.trait.reason)


class _Plates(NamedTuple):
    """The items of a segment, and those that were written whole."""

    lines: Sequence[Line]
    pieces: dict[tuple[int, Edges], Piece]


def _lines(n: int, draft: Draft) -> list[Line]:
    segment, priority = draft.segment, draft.share.priority
    if segment is None:
        return []
    items = zip(segment.items, ranks_of(segment), traits_of(segment), strict=True)
    return [
        Line(n, segment, number, item, item["content"], priority, rank, trait)
        for number, (item, rank, trait) in enumerate(items)
    ]


def compose(drafts: Sequence[Draft], budget: Budget | None, press: Press) -> Composed:
    """The context that drafts make; what is not in it is withheld, with the reason.

    Raises:
        ContextTooLarge: there is no room for what must be shown at least.
    """
    withheld = [[*each.withheld] for each in drafts]
    lines = _once(press.load(drafts), withheld)
    shown: list[Line] = []
    for line, content in zip(lines, _fitted(lines, drafts, budget, press), strict=True):
        if content == line.content:
            shown.append(line)
            continue
        withheld[line.draft].append(_over_budget(line, content))
        if content is not None:
            shown.append(line._replace(content=content))
    pieces = _pieces(shown, press)
    left_out = tuple(each for some in withheld for each in some)
    return Composed(_context(shown, pieces, left_out), pieces)


def _once(lines: Sequence[Line], withheld: Sequence[list[Withheld]]) -> list[Line]:
    """The first of lines that are the same, as important as the most important of them."""
    kept: dict[object, Line] = {}
    for place, line in enumerate(lines):
        key = line.trait.key or place
        first = kept.setdefault(key, line)
        if first is not line:
            most, shared = max(first.priority, line.priority), (*first.shared, line.draft)
            kept[key] = first._replace(priority=most, shared=shared)
            told = Withheld(line.called, "duplicate", f"the same as {first.called}")
            withheld[line.draft].append(told)
    return list(kept.values())


def _fitted(
    lines: Sequence[Line], drafts: Sequence[Draft], budget: Budget | None, press: Press
) -> Sequence[str | None]:
    """What is shown of each line."""
    whole = [line.content for line in lines]
    if budget is None or sum(each.tokens for each in _pieces(lines, press)) <= budget.max_tokens:
        return whole

    def weigh(number: int, content: str, edges: Edges) -> int:
        return press.piece(lines[number], content, edges).tokens

    minimums = {n: each.share.min_tokens for n, each in enumerate(drafts) if each.share.min_tokens}
    items = [
        Item(each.draft, each.content, each.priority, each.rank, each.shared) for each in lines
    ]
    return fit(items, weigh, Room(budget.max_tokens, minimums))


def _pieces(lines: Sequence[Line], press: Press) -> tuple[Piece, ...]:
    edges = edges_of([line.draft for line in lines])
    return tuple(map(press.piece, lines, (line.content for line in lines), edges))


def _context(
    shown: Sequence[Line], pieces: Sequence[Piece], withheld: tuple[Withheld, ...]
) -> AssembledContext:
    segments: list[ContextSegment] = []
    pairs = zip(shown, pieces, strict=True)
    for _, some in groupby(pairs, key=lambda pair: pair[0].draft):
        own = list(some)
        contents = {line.number: line.content for line, _ in own}
        tokens = sum(piece.tokens for _, piece in own)
        segments.append(narrowed(own[0][0].segment, contents, tokens))
    return AssembledContext(tuple(segments), withheld, sum(each.tokens for each in segments))


def _over_budget(line: Line, content: str | None) -> Withheld:
    whole = len(line.content)
    if content is None:
        return Withheld(line.called, "over_budget", f"{whole} characters")
    shown = len(content.removesuffix(MARK))
    detail = f"{shown} of {whole} characters are shown"
    return Withheld(line.called, "over_budget", detail)
