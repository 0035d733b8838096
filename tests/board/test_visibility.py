"""Who may see what, from when, and the same after a round trip."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given

from tests.board.strategies import instants, readers, visibilities
from turnloom.board.logic.matching import ALWAYS, may_see, visible_from
from turnloom.board.logic.rows import read_visibility, rows_of
from turnloom.board.spec import After, Labelled, Private, Public, Reader, Tenant, Visibility
from turnloom.board.spec.artifacts import KINDS
from turnloom.errors import InvalidArtifact
from turnloom.testing.contracts.artifacts.samples import ANN, BOB, NOON, SECOND, SEEN_BY, UNNAMED
from turnloom.testing.contracts.artifacts.samples import artifact as sample


def stored(visibility: Visibility) -> Visibility | None:
    [row] = rows_of("acme", [sample("a", visibility=visibility)])
    return read_visibility(row.visibility)


@given(visibilities, readers, instants())
def test_a_round_trip_keeps_it_and_decides_the_same(
    visibility: Visibility, reader: Reader, now: datetime
) -> None:
    again = stored(visibility)
    assert again == visibility and hash(again) == hash(visibility)
    assert may_see(again, reader, now) == may_see(visibility, reader, now)


@given(visibilities, readers, instants(), instants())
def test_an_instant_never_shows_anything_earlier(
    visibility: Visibility, reader: Reader, at: datetime, now: datetime
) -> None:
    delayed = After(at, visibility)
    assert may_see(delayed, reader, now) == (at <= now and may_see(visibility, reader, now))


@given(visibilities, readers, instants(), instants())
def test_what_may_be_seen_stays_so(
    visibility: Visibility, reader: Reader, now: datetime, then: datetime
) -> None:
    early, late = sorted((now, then))
    assert may_see(visibility, reader, early) <= may_see(visibility, reader, late)


@given(visibilities, readers, instants())
def test_it_can_be_seen_from_the_instant_that_is_told(
    visibility: Visibility, reader: Reader, now: datetime
) -> None:
    begin = visible_from(visibility, reader)
    assert may_see(visibility, reader, now) == (begin is not None and begin <= now)


def test_every_kind_is_in_the_union_and_has_a_sample() -> None:
    """The contract suites of stores take the same samples."""
    assert (
        {*Public.__bases__[0].__subclasses__()} == {*KINDS} == {type(each) for each, _ in SEEN_BY}
    )


def test_each_kind_is_open_to_whom_it_says() -> None:
    for visibility, readers_ in SEEN_BY:
        for reader in (ANN, BOB, UNNAMED):
            assert may_see(visibility, reader, NOON) == (reader in readers_), visibility
    assert visible_from(Public(), UNNAMED) == ALWAYS
    assert visible_from(After(NOON, After(NOON - SECOND)), UNNAMED) == NOON
    assert visible_from(After(NOON, Tenant("globex")), BOB) is None


class Everyone(msgspec.Struct, frozen=True):
    """A kind that somebody made up."""


@pytest.mark.parametrize("strange", [None, "public", {"kind": "public"}, Everyone(), Public])
def test_what_is_no_visibility_shows_nothing(strange: object) -> None:
    assert not may_see(strange, ANN, NOON)
    assert visible_from(strange, ANN) is None
    with pytest.raises(InvalidArtifact):
        After(NOON, strange)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        "public",
        '"public"',
        '{"kind":"everyone"}',
        '{"kind":"Public"}',
        '{"kind":"public","or":"anyone"}',
        '{"kind":"tenant"}',
        '{"kind":"tenant","tenant_id":""}',
        '{"kind":"tenant","tenant_id":5}',
        '{"kind":"labelled","labels":[]}',
        '{"kind":"labelled","labels":"staff"}',
        '{"kind":"private","agents":[]}',
        '{"kind":"private"}',
        '{"kind":"after","at":"2020-01-01T00:00:00Z","then":{"kind":"everyone"}}',
        '{"kind":"after","at":"2020-01-01T00:00:00","then":{"kind":"public"}}',
        '{"kind":"after","at":0,"then":{"kind":"public"}}',
        '{"kind":"public"',
        '{"kind":"after","at":"2020-01-01T00:00:00Z","then":' * 5000,
    ],
)
def test_a_visibility_that_cannot_be_read_shows_nothing(text: str) -> None:
    assert read_visibility(text) is None
    assert not may_see(read_visibility(text), ANN, NOON)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Tenant(""), "Tenant.tenant_id"),
        (lambda: Tenant(None), "None"),
        (lambda: Labelled(set()), "Labelled.labels"),
        (lambda: Labelled({""}), "Labelled.labels"),
        (lambda: Private(set()), "Private.agents"),
        (lambda: Private("bob"), "'bob'"),
        (lambda: Private(None), "None"),
        (lambda: Private({"a\0"}), "Private.agents"),
        (lambda: After(NOON.replace(tzinfo=None)), "After.at"),
        (lambda: After("2026-01-01T00:00:00Z"), "'2026-01-01T00:00:00Z'"),
        (lambda: After(datetime.max.replace(tzinfo=timezone(-SECOND))), "After.at"),
        (lambda: Reader("a", "staff"), "'staff'"),
    ],
)
def test_what_would_say_nothing_cannot_be_made(make: Callable[[], object], named: str) -> None:
    with pytest.raises(InvalidArtifact, match=named):
        make()


def test_an_instant_is_the_same_in_every_zone() -> None:
    summer = ZoneInfo("Europe/Berlin")
    ambiguous = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=summer)
    assert After(ambiguous) == After(datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    assert stored(After(ambiguous)) == After(ambiguous)
    odd = datetime(2026, 1, 1, tzinfo=timezone(timedelta(minutes=53, seconds=28)))
    assert stored(After(odd)) == After(odd)


def test_nesting_that_no_store_can_write_is_refused() -> None:
    visibility: Visibility = Public()
    for _ in range(100_000):
        visibility = After(NOON, visibility)
    assert may_see(visibility, UNNAMED, NOON)
    with pytest.raises(InvalidArtifact):
        rows_of("acme", [sample("a", visibility=visibility)])
