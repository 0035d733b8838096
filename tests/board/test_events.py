"""What is told of the board comes back from the log as it was told."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.log.strategies import events_of
from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.logic.rows import project
from turnloom.log.spec import Event
from turnloom.testing.contracts import CODEC, Noted
from turnloom.testing.contracts.artifacts.samples import artifact
from turnloom.testing.contracts.artifacts.storing import batch


@settings(max_examples=40)
@given(st.one_of(events_of(ArtifactPublished), events_of(ArtifactConsumed)))
def test_every_fact_survives_a_round_trip(event: Event) -> None:
    line = CODEC.encode(event)
    assert CODEC.decode(line) == event
    assert CODEC.encode(CODEC.decode(line)) == line


@pytest.mark.parametrize("more", [{"tags": {"b", "c", "a"}}, {"payload": {"b": 1, "a": 2}}])
def test_the_bytes_of_a_fact_are_the_same_in_every_process(more: dict[str, Any]) -> None:
    [event] = batch("r", ArtifactPublished(artifact("a", **more)))
    written = CODEC.encode(event).decode()
    assert '"tags":["a","b","c"]' in written or '"payload":{"b":1,"a":2}' in written


def test_events_that_say_nothing_of_the_board() -> None:
    assert project([]) is None and project(batch("r", Noted("x"))) is None


def test_what_is_not_on_the_board_is_not_taken_from_it() -> None:
    directly = project(batch("r", ArtifactConsumed("lead", "", ("a",), 1)))
    assert directly is not None and not directly.consumptions


def test_what_goes_into_a_run_of_its_own_is_taken_there_once() -> None:
    collected = project(batch("r", ArtifactConsumed("lead", "lead#1", ("a",), 0, "set")))
    assert collected is not None and not collected.consumptions
    given = project(batch("set", ArtifactConsumed("lead", "lead#1", ("a",), 1)))
    assert given is not None
    assert [(each.run, each.turn) for each in given.consumptions] == [("set", 1)]
