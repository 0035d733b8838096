"""Who may see what is made of several things: whoever may see each of them, and nobody else."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.board.strategies import instants, readers, visibilities
from turnloom.assembly.logic.labels import combine
from turnloom.board.logic.matching import may_see
from turnloom.board.spec import After, Labelled, Private, Public, Reader, Tenant, Visibility
from turnloom.errors import InvalidArtifact
from turnloom.testing.contracts.artifacts.samples import NOON, SECOND


@given(st.lists(visibilities, max_size=4), readers, instants())
def test_whoever_may_see_it_may_see_each_and_the_other_way_round(
    given: list[Visibility], reader: Reader, now: datetime
) -> None:
    try:
        made = combine(given)
    except InvalidArtifact:
        return
    assert may_see(made, reader, now) == all(may_see(each, reader, now) for each in given)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ([], Public()),
        ([Public(), Tenant("a"), Public()], Tenant("a")),
        ([Private({"a", "b"}), Private({"b", "c"})], Private({"b"})),
        ([Labelled({"x"}), Labelled({"y"})], Labelled({"x", "y"})),
        ([Tenant("a"), Tenant("a")], Tenant("a")),
        ([After(NOON), After(NOON + SECOND, Tenant("a"))], After(NOON + SECOND, Tenant("a"))),
        ([After(NOON, After(NOON + SECOND)), Public()], After(NOON + SECOND)),
    ],
)
def test_each_kind_combines_with_its_own(given: list[Visibility], made: Visibility) -> None:
    assert combine(given) == made
    assert combine(given[::-1]) == made


@pytest.mark.parametrize(
    "given",
    [
        [Private({"a"}), Private({"b"})],
        [Tenant("a"), Tenant("b")],
        [Private({"a"}), Labelled({"x"})],
        [Labelled({"x"}), Tenant("a")],
        [After(NOON, Tenant("a")), After(NOON, Tenant("b"))],
    ],
)
def test_what_no_visibility_says_is_refused(given: list[Visibility]) -> None:
    with pytest.raises(InvalidArtifact):
        combine(given)


def test_what_is_no_visibility_is_refused() -> None:
    with pytest.raises(InvalidArtifact):
        combine(["public"])
