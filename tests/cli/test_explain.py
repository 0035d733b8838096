"""`turnloom explain`: what changed between turns, and where a text is from."""

import json

import pytest

from tests.cli.conftest import Call


def test_two_turns_are_compared(turnloom: Call, chat: str) -> None:
    """The value of `--diff` may be left out, be a turn, or a turn of another run."""
    turnloom("run", chat)
    previous = turnloom("explain", "last", "--turn", "3", "--diff").out
    assert "from turn 2 of Poet to turn 3 of Poet" in previous
    assert "Violets are blue." in previous and "because of seq" in previous
    given = json.loads(turnloom("explain", "last", "--turn", "3", "--diff", "--json").out)
    assert (given["before"]["turn"], given["after"]["turn"]) == (2, 3)
    run = given["after"]["run"]
    named = json.loads(turnloom("explain", "--diff", "1", run, "--turn", "3", "--json").out)
    assert named["before"]["turn"] == 1
    turnloom("run", chat)
    other = turnloom("explain", "last", "--turn", "4", "--diff", f"{run[:8]}:4", "--json").out
    found = json.loads(other)
    assert found["before"]["run"] == run != found["after"]["run"] and not found["changes"]


@pytest.mark.parametrize(
    "words",
    [
        ("--turn", "1", "--diff"),
        ("--turn", "2", "--diff", "9"),
        ("--turn", "2", "--diff", "first"),
        ("--diff", "1"),
        ("--turn", "2", "--diff", "--brief"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    turnloom: Call, chat: str, words: tuple[str, ...]
) -> None:
    turnloom("run", chat)
    assert not turnloom("explain", "last", *words, code=2).out


def test_a_text_is_found(turnloom: Call, chat: str) -> None:
    turnloom("run", chat)
    shown = turnloom("explain", "last", "--blame", "Violets are").out
    assert "agent.text" in shown and "history event" in shown
    found = json.loads(turnloom("explain", "last", "--blame", "Violets are", "--json").out)
    assert {"frame.assembled", "agent.text"} <= {each["kind"] for each in found["places"]}
    assert not json.loads(turnloom("explain", "last", "--blame", "no such text", "--json").out)[
        "places"
    ]
    for words in (("--blame", "Violets"), ("--blame", "Violets are", "--turn", "1")):
        assert not turnloom("explain", "last", *words, code=2).out
