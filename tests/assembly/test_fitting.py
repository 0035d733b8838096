"""Fitting: never over budget, nothing lost, no room wasted, and worth more goes first."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from turnloom.assembly.logic import estimate
from turnloom.assembly.logic.assembled import Edges, edges_of
from turnloom.assembly.logic.composing import MARK, RankedItem, Room, fit, trimmed
from turnloom.errors import ContextTooLarge

SEPARATORS = {True: "\n\n", False: "\n---\n"}

Count = Callable[[str], int]


def words(text: str) -> int:
    return len(text.split()) + text.count("\n")


def uneven(text: str) -> int:
    """A count that does not always grow with the text, as those of tokenizers may not."""
    return estimate(text) + sum(map(ord, text)) % 3


counts = st.sampled_from([estimate, words, uneven])


class Scales:
    """Weighs items with what stands before and behind them, and knows what all of them weigh."""

    def __init__(self, items: Sequence[RankedItem], count: Count) -> None:
        self.items = items
        self.count = count

    def __call__(self, number: int, content: str, edges: Edges) -> int:
        lead = "" if edges.first else SEPARATORS[edges.opens]
        head = "# head\n" if edges.opens else ""
        foot = "\n#" if edges.closes else ""
        return self.count(f"{lead}{head}{content}{foot}")

    def total(self, shown: Sequence[str | None]) -> int:
        row = [(n, content) for n, content in enumerate(shown) if content is not None]
        edges = edges_of([self.items[n].segment for n, _ in row])
        return sum(self(n, content, each) for (n, content), each in zip(row, edges, strict=True))


@st.composite
def rows(draw: st.DrawFn) -> list[RankedItem]:
    """Items of a few segments, as a composition ranks them."""
    items: list[RankedItem] = []
    for segment in range(draw(st.integers(0, 4))):
        priority, count = draw(st.integers(-2, 2)), draw(st.integers(1, 4))
        ranks = range(count) if draw(st.booleans()) else range(count - 1, -1, -1)
        for rank in ranks:
            items.append(
                RankedItem(segment, draw(st.text(min_size=1, max_size=60)), priority, rank)
            )
    return items


rooms = st.builds(
    Room, st.integers(1, 120), st.dictionaries(st.integers(0, 3), st.integers(1, 15), max_size=2)
)


def fitted(items: Sequence[RankedItem], count: Count, room: Room) -> list[str | None]:
    minimums = {n: least for n, least in room.minimums.items() if n in {i.segment for i in items}}
    try:
        return fit(items, Scales(items, count), room._replace(minimums=minimums))
    except ContextTooLarge:
        assume(False)
        raise


def ranking(items: Sequence[RankedItem]) -> list[int]:
    return sorted(range(len(items)), key=lambda n: (-items[n].priority, items[n].rank, n))


@given(rows(), counts, rooms)
def test_it_is_never_over_budget_and_always_the_same(
    items: list[RankedItem], count: Count, room: Room
) -> None:
    shown = fitted(items, count, room)
    assert Scales(items, count).total(shown) <= room.max_tokens
    assert fitted(items, count, room) == shown


@given(rows(), counts, rooms)
def test_everything_is_shown_whole_or_as_a_beginning_or_not_at_all(
    items: list[RankedItem], count: Count, room: Room
) -> None:
    shown = fitted(items, count, room)
    assert len(shown) == len(items)
    for item, content in zip(items, shown, strict=True):
        if content is not None and content != item.content:
            assert content.endswith(MARK)
            assert item.content.startswith(content.removesuffix(MARK)) and content != MARK


@given(rows(), counts, rooms)
def test_nothing_is_left_out_that_would_still_have_room(
    items: list[RankedItem], count: Count, room: Room
) -> None:
    shown = fitted(items, count, room)
    for n, item in enumerate(items):
        if shown[n] != item.content:
            more = [item.content if m == n else content for m, content in enumerate(shown)]
            assert Scales(items, count).total(more) > room.max_tokens, "it would have had room"


@given(rows(), st.integers(1, 120))
def test_nothing_gives_way_to_what_is_worth_less(items: list[RankedItem], room: int) -> None:
    """What is left out would not have had room either if nothing behind it were there."""
    shown = fitted(items, estimate, Room(room))
    order = ranking(items)
    for place, n in enumerate(order):
        if shown[n] != items[n].content:
            before = [m for m in order[:place] if items[m].priority > items[n].priority]
            alike = [m for m in order[:place] if shown[m] == items[m].content]
            kept = {m: shown[m] for m in (*before, *alike)} | {n: items[n].content}
            row = [kept.get(m) for m in range(len(items))]
            assert Scales(items, estimate).total(row) > room


def test_room_is_used_behind_what_does_not_fit() -> None:
    items = [
        RankedItem(0, "a" * 76, 1),
        RankedItem(0, "b" * 400, 1, 1),
        RankedItem(0, "c" * 40, 1, 2),
        RankedItem(1, "d"),
    ]
    shown = fit(items, Scales(items, estimate), Room(40))
    assert shown == ["a" * 76, None, "c" * 40, "d"]


@given(rows(), counts, rooms)
def test_whole_items_go_before_a_part_of_one(
    items: list[RankedItem], count: Count, room: Room
) -> None:
    shown = fitted(items, count, room._replace(minimums={}))
    for n, item in enumerate(items):
        if shown[n] not in (None, item.content):
            others = [
                m for m, other in enumerate(items) if other.segment == item.segment and m != n
            ]
            assert all(shown[m] is None for m in others)


@given(rows(), counts, rooms)
def test_minimums_are_kept(items: list[RankedItem], count: Count, room: Room) -> None:
    shown = fitted(items, count, room)
    alone = Scales(items, count)
    for segment, least in room.minimums.items():
        own = [n for n, item in enumerate(items) if item.segment == segment]
        if all(shown[n] == items[n].content for n in own):
            continue
        nearest = min((n for n in own if shown[n] != items[n].content), key=lambda n: items[n].rank)
        more = list[str | None]([None] * len(items))
        for n in own:
            if shown[n] is not None and n != nearest:
                more[n] = shown[n]
        more[nearest] = items[nearest].content
        assert alone.total(more) + 3 > least, "it could have been shown whole"


def test_what_must_be_shown_must_have_room() -> None:
    items = [RankedItem(0, "x" * 400), RankedItem(1, "y" * 400)]
    with pytest.raises(ContextTooLarge, match="50"):
        fit(items, Scales(items, estimate), Room(50, {0: 40, 1: 40}))
    shown = fit(items, Scales(items, estimate), Room(100, {0: 40, 1: 40}))
    assert all(each and each.endswith(MARK) and len(each) > 120 for each in shown)


def test_a_minimum_keeps_what_is_worth_less() -> None:
    items = [RankedItem(0, "first " * 40, 9), RankedItem(1, "second")]
    weigh = Scales(items, estimate)
    assert fit(items, weigh, Room(40))[1] is None
    shown = fit(items, weigh, Room(40, {1: 10}))
    assert shown[1] == "second" and shown[0] is not None


@given(st.text(max_size=20), st.integers(0, 20))
def test_a_trimmed_text_is_a_beginning_of_it(text: str, length: int) -> None:
    found = trimmed(text, length)
    if found is not None:
        assert text.startswith(found.removesuffix(MARK)) and len(found) <= length + 1


@pytest.mark.parametrize(
    ("text", "cuts"),
    [
        ("abc", ["a", "ab", "abc"]),
        ("e\u0301a", [None, "e\u0301", "e\u0301a"]),
        ("👩\u200d🚀!", [None, None, "👩\u200d🚀", "👩\u200d🚀!"]),
        ("👍🏽x", [None, "👍🏽", "👍🏽x"]),
        ("🇩🇪🇫🇷", [None, "🇩🇪", "🇩🇪", "🇩🇪🇫🇷"]),
        ("a\r\nb", ["a", "a", "a\r\n", "a\r\nb"]),
        ("❤\ufe0fa", [None, "❤\ufe0f", "❤\ufe0fa"]),
    ],
)
def test_no_character_is_split(text: str, cuts: list[str | None]) -> None:
    found = [trimmed(text, length) for length in range(1, len(text) + 1)]
    assert found == [None if each is None else f"{each}{MARK}" for each in cuts]


def test_a_long_row_is_fitted_in_no_time() -> None:
    items = [RankedItem(n % 50, f"item {n} " * 5, n % 3, n // 50) for n in range(5_000)]
    items.sort(key=lambda item: item.segment)
    shown = fit(items, Scales(items, estimate), Room(2_000))
    assert Scales(items, estimate).total(shown) <= 2_000
