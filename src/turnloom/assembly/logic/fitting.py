"""Fitting: what is shown when not everything can be.

Items are ranked: by priority, then by how soon their segment can do without them, then as they
are declared. In that order each is shown that there is room for. Of a priority, whole items go
before parts of others, and both go before anything of a lower priority. So nothing is left out that
there would still be room for.
"""

import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from turnloom.assembly.logic.rendering import Edges
from turnloom.errors import ContextTooLarge

# Stands where a text was cut.
MARK = "…"

# The tokens of an item, by its number, when it has this content and these edges.
Weigh = Callable[[int, str, Edges], int]


class Item(NamedTuple):
    """Something to be shown: of which segment, and what; rank 0 goes last of its segment. Segments
    that it is shared with have it too, and count on it."""

    segment: int
    content: str
    priority: int = 0
    rank: int = 0
    shared: tuple[int, ...] = ()


class Room(NamedTuple):
    """How many tokens there may be, and how many are kept for some of the segments."""

    max_tokens: int
    minimums: Mapping[int, int] = {}


def fit(items: Sequence[Item], weigh: Weigh, room: Room) -> list[str | None]:
    """What is shown of each item: all of it, a beginning of it, or nothing.

    An item is trimmed only where its segment would else show nothing.

    Raises:
        ContextTooLarge: there is no room for what is kept for segments.
    """
    shown = _Shown(items, weigh)
    for segment, least in room.minimums.items():
        for number, content in _minimum(items, weigh, segment, least).items():
            # Of what segments share, the one that keeps more of it counts.
            shown.put(number, max(content, shown.contents.get(number, ""), key=len))
    if shown.tokens > room.max_tokens:
        raise ContextTooLarge(
            f"What must be shown at least has {shown.tokens} tokens, and there is room for "
            f"{room.max_tokens}. Lower `min_tokens` of some sources, or raise `max_tokens`."
        )
    ranking = sorted(range(len(items)), key=lambda n: (-items[n].priority, items[n].rank, n))
    for _, alike in groupby(ranking, key=lambda n: items[n].priority):
        _fill(shown, [*alike], room.max_tokens)
    _top_up(shown, ranking, room.max_tokens)
    return [shown.contents.get(number) for number in range(len(items))]


def _fill(shown: "_Shown", numbers: Sequence[int], room: int) -> None:
    """Show of items of one priority what there is room for: all that fit, then parts of others."""
    left = [number for number in numbers if not _show(shown, number, room)]
    for number in left:
        if shown.is_bare(number):
            _trim(shown, number, room)


def _top_up(shown: "_Shown", numbers: Sequence[int], room: int) -> None:
    """Show what has room after all: with others between them, items may weigh less."""
    left = [number for number in numbers if not shown.is_whole(number)]
    while True:
        still = [number for number in left if not _show(shown, number, room)]
        if len(still) == len(left):
            return
        left = still


def _minimum(items: Sequence[Item], weigh: Weigh, segment: int, least: int) -> dict[int, str]:
    """What of a segment is shown in any case: whole items, and a beginning of the next one."""
    alone = _Shown(items, weigh, follows=True)
    own = [n for n, item in enumerate(items) if segment in (item.segment, *item.shared)]
    for number in sorted(own, key=lambda n: (items[n].rank, n)):
        if not _show(alone, number, least):
            _trim(alone, number, least)
            break
    return alone.contents


def _show(shown: "_Shown", number: int, room: int) -> bool:
    """Show an item whole if there is room for it; whether it is shown so."""
    if shown.is_whole(number):
        return True
    before = shown.contents.get(number)
    shown.put(number, shown.items[number].content)
    if shown.tokens <= room:
        return True
    shown.put(number, before)
    return False


def _trim(shown: "_Shown", number: int, room: int) -> None:
    """Show the longest beginning of an item that there is room for, if any."""
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
    """A beginning of a text of at most so many characters, and a mark; none if it is empty."""
    while length and _is_inside(text, length):
        length -= 1
    return f"{text[:length]}{MARK}" if length else None


def _is_inside(text: str, at: int) -> bool:
    """Whether a place is inside of what people take for one character."""
    if at >= len(text):
        return False
    before, behind = text[at - 1], text[at]
    if before == "\u200d" or behind == "\u200d" or (before, behind) == ("\r", "\n"):
        return True
    if "\U0001f3fb" <= behind <= "\U0001f3ff" or unicodedata.category(behind)[0] == "M":
        return True
    return _is_regional(behind) and _regionals_before(text, at) % 2 == 1


def _is_regional(mark: str) -> bool:
    """Whether this is half a flag."""
    return "\U0001f1e6" <= mark <= "\U0001f1ff"


def _regionals_before(text: str, at: int) -> int:
    start = at
    while start and _is_regional(text[start - 1]):
        start -= 1
    return at - start


class _Shown:
    """The items that are shown, with what they weigh where they stand.

    `follows`: something else stands before them.
    """

    def __init__(self, items: Sequence[Item], weigh: Weigh, *, follows: bool = False) -> None:
        self.items = items
        self.contents: dict[int, str] = {}
        self.tokens = 0
        self._weigh = weigh
        self._follows = follows
        self._numbers: list[int] = []
        self._weights: dict[int, int] = {}
        self._of_segment: dict[int, int] = {}

    def is_whole(self, number: int) -> bool:
        """Whether all of an item is shown."""
        return self.contents.get(number) == self.items[number].content

    def is_bare(self, number: int) -> bool:
        """Whether nothing of the item's segment is shown, unless it is a part of this item."""
        others = self._of_segment.get(self.items[number].segment, 0)
        return others - (number in self.contents) == 0

    def put(self, number: int, content: str | None) -> None:
        """Show this of an item, or nothing of it; its neighbours weigh anew."""
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
