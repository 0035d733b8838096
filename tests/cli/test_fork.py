"""`turnloom fork` in a terminal."""

import json
from pathlib import Path

import pytest

from tests.cli.asking import VERDICT, asking
from tests.cli.conftest import Call, Sit
from tests.support.folders import write_folder

# A call of the tool with another argument.
CALL = '{"tool": "ask", "arguments": {"what": "else"}}'


def position(turnloom: Call, kind: str) -> str:
    lines = turnloom("log", "last", "--json").out.splitlines()
    return str(next(each["seq"] for each in map(json.loads, lines) if each["kind"] == kind))


@pytest.fixture
def original(turnloom: Call, tmp_path: Path) -> str:
    """A run whose tool asked, and was answered."""
    folder = write_folder(tmp_path, asking(VERDICT, user=[{"verdict": "accepted"}]), "Asks")
    turnloom("run", folder, "--unattended")
    return json.loads(turnloom("runs", "--json").out)[0]["run"]


def test_a_fork_gets_another_answer(turnloom: Call, original: str) -> None:
    """Without a terminal, calls that are not on record are refused."""
    at = position(turnloom, "run.paused")
    done = turnloom("fork", original, "--at", at, "--answer", "refused")
    assert f"is a fork of run {original}" in done.out
    assert "EffectRefused" in done.out and "--tools live" in " ".join(done.out.split())
    done = turnloom("fork", original, "--at", at, "--answer", "refused", "--tools", "live")
    assert 'ask returned {"verdict":"refused"}' in done.out and "Thank you." in done.out
    done = turnloom("fork", original, "--at", at, "--answer", "accepted", "--json")
    kinds = [json.loads(line)["kind"] for line in done.out.splitlines()]
    assert kinds[-1] == "run.finished"
    assert len(json.loads(turnloom("runs", "--json").out)) == 4
    assert "forked" in turnloom("explain", "last").out
    assert original in turnloom("log", "last", "--kind", "run.forked").out
    turnloom("store", "verify")


def test_a_person_at_the_terminal_is_asked(turnloom: Call, sit: Sit, original: str) -> None:
    seat = sit("fork", original, "--at", position(turnloom, "run.paused"), "--answer", "refused")
    seat.until("allow")
    seat.until("> ")
    seat.type("allow")
    seat.until("Thank you.")
    assert seat.end() == 0


def test_a_retry_since_a_turn_asks_as_a_fork_does(
    turnloom: Call, sit: Sit, original: str, tmp_path: Path
) -> None:
    turnloom("retry", original, "--from", "1")  # equal calls have their recorded results
    other = asking(VERDICT, user=[{"verdict": "accepted"}])
    other["script.json"] = other["script.json"].replace("Thank you.", "Thanks.")
    other["script.json"] = other["script.json"].replace('{"tool": "ask"}', CALL)
    other["asks.py"] = other["asks.py"].replace("ask():", 'ask(what: str = ""):')
    changed = write_folder(tmp_path, other, "Other")
    done = turnloom("retry", original, "--from", "1", "--with", changed)
    assert "EffectRefused" in done.out and "--tools live" in " ".join(done.out.split())
    seat = sit("retry", original, "--from", "1", "--with", changed)
    seat.until("allow")
    seat.until("> ")
    seat.type("refuse")
    seat.until("Thanks.")
    assert seat.end() == 0


def test_what_cannot_be_forked_so_is_said(turnloom: Call, tmp_path: Path) -> None:
    turnloom("run", write_folder(tmp_path, asking(VERDICT), "Asks"))
    at = position(turnloom, "run.paused")
    wrong = (
        ("--at", "99"),
        ("--at", at, "--answer", "perhaps"),
        ("--at", at, "--set", "tone"),
        ("--at", at, "--set", "tone=cool"),
        ("--at", at, "--tools", "some"),
    )
    for options in wrong:
        assert "Error" in turnloom("fork", "last", *options, code=2).err
    assert len(json.loads(turnloom("runs", "--json").out)) == 1
