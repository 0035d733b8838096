"""Events in a few words."""

import pytest
from hypothesis import given, settings

from tests.log.strategies import events_of
from turnloom.explain.logic.describe import words
from turnloom.log.spec import Event, Fact
from turnloom.runtime.logic import FACTS


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.kind)
def test_every_event_has_words(fact: type[Fact]) -> None:
    @settings(max_examples=20)
    @given(events_of(fact))
    def are_there(event: Event) -> None:
        assert isinstance(words(event), str)

    are_there()
