"""Events in a few words."""

import pytest
from hypothesis import given, settings

from tests.log.strategies import events_of
from turnloom.explain.logic.describe import WORDS, describe
from turnloom.log.spec import Event, Fact
from turnloom.runtime.logic import FACTS


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.kind)
def test_every_event_has_words(fact: type[Fact]) -> None:
    @settings(max_examples=20)
    @given(events_of(fact))
    def are_there(event: Event) -> None:
        assert isinstance(describe(event.data), str)

    are_there()


def test_nothing_else_is_described() -> None:
    assert {*WORDS} == {*FACTS}
