"""Several questions of one run at once, at a terminal and from anywhere."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.asking import VERDICT, asking
from tests.cli.conftest import Call, Sit
from tests.support.folders import write_folder

CODE = """
from turnloom import use_ui_tool


async def ask(what: str):
    return [what, await use_ui_tool("ask", {"title": what})]
"""
MANUAL = {
    "orchestrator.yaml": "{orchestration_pattern: ManualPattern, initial_agent: A}",
    "agents.yaml": "A: {system_message: a}\nB: {system_message: b}\n",
    "script.yaml": "agents: {A: [First.], B: [Second.]}\n",
}


@pytest.fixture
def asks(tmp_path: Path) -> str:
    """A workflow whose agent asks twice at once."""
    calls = [{"tool": "ask", "arguments": {"what": what}} for what in ("Tea?", "Milk?")]
    files = asking({"enum": ["yes", "no"]})
    script = {"agents": {"Clerk": [{"calls": calls}, "Thank you."]}}
    write_folder(tmp_path, {**files, "asks.py": CODE, "script.json": json.dumps(script)}, "Asks")
    return "Asks"


def open_questions(turnloom: Call) -> dict[str, Any]:
    """The open questions of all runs, by what they say."""
    listed = map(json.loads, turnloom("questions", "--json").out.splitlines())
    return {each["prompt"]: each for each in listed}


def test_they_are_shown_together_and_answered_in_any_order(sit: Sit, asks: str) -> None:
    seat = sit("run", asks, "--quiet", NO_COLOR="1")
    shown = seat.until("question> ")
    assert "Tea?\n" in shown and "Milk?\n" in shown
    assert "  1) ask asks: Tea? (takes yes | no)\n  2) ask asks: Milk? (takes yes | no)\n" in shown
    for wrong in ("3", "Milk"):
        seat.type(wrong)
        assert "from 1 to 2" in seat.until("question> ")
    seat.type("2")
    assert seat.until("you> ").endswith("  1) yes\n  2) no\nyou> ")
    seat.type("no")
    assert "\nTea?\n" in seat.until("you> ")  # what is left is shown again
    seat.type("yes")
    seat.until("Clerk: Thank you.")
    assert seat.end() == 0


def test_who_leaves_is_told_how_to_answer_each(sit: Sit, turnloom: Call, asks: str) -> None:
    seat = sit("run", asks, NO_COLOR="1")
    seat.until("question> ")
    seat.type("\x04", end="")
    assert seat.end() == 0
    assert "waits for 2 answers." in seat.seen
    assert sum(" answer " in line and "--question" in line for line in seat.seen.splitlines()) == 2
    tea, milk = open_questions(turnloom).values()
    assert (tea["prompt"], milk["prompt"]) == ("Tea?", "Milk?")
    listed = turnloom("runs").out
    assert "Tea?" in listed and "Milk?" in listed
    plain = turnloom("questions", "last").out
    assert tea["id"] in plain and milk["id"] in plain
    assert "No question" in turnloom("questions", "--user", "eve").err
    refused = turnloom("answer", "last", "yes", code=2)
    assert tea["id"] in refused.err and milk["id"] in refused.err
    turnloom("answer", "last", "no", "--question", milk["id"])
    assert [*open_questions(turnloom)] == ["Tea?"]
    seat = sit("resume", "last", NO_COLOR="1")
    assert "Tea?\n" in seat.until("you> ")
    seat.type("yes")
    assert 'ask returned ["Milk?","no"]' in seat.until("Clerk: Thank you.")
    assert seat.end() == 0


def test_one_is_answered_elsewhere_while_the_other_is_typed(
    sit: Sit, turnloom: Call, asks: str
) -> None:
    seat = sit("run", asks, NO_COLOR="1")
    seat.until("question> ")
    milk = open_questions(turnloom)["Milk?"]["id"]
    seat.type("1")
    seat.until("you> ")
    turnloom("answer", "last", "no", "--question", milk)
    seat.type("yes")
    came = seat.until("Clerk: Thank you.")
    assert "local, elsewhere> no\n" in came and "elsewhere> yes" not in came
    assert seat.end() == 0


def test_a_choice_gives_way_to_an_answer(sit: Sit, turnloom: Call, asks: str) -> None:
    seat = sit("run", asks, NO_COLOR="1")
    seat.until("question> ")
    turnloom("answer", "last", "no", "--question", open_questions(turnloom)["Milk?"]["id"])
    assert "Tea?" in seat.until("you> ")
    seat.type("yes")
    seat.until("Clerk: Thank you.")
    assert seat.end() == 0


def test_a_terminal_that_is_too_late_does_not_show_the_answer_as_its_own(
    sit: Sit, turnloom: Call, tmp_path: Path
) -> None:
    """It stands still while another one answers, and finds what was typed and what was answered."""
    write_folder(tmp_path, asking(VERDICT), "Asks")
    seat = sit("run", "Asks", NO_COLOR="1")
    seat.until("you> ")
    os.kill(seat.process.pid, signal.SIGSTOP)
    turnloom("answer", "last", "accepted")
    seat.type("refused")
    os.kill(seat.process.pid, signal.SIGCONT)
    came = seat.until("Clerk: Thank you.")
    assert 'local, elsewhere> {"verdict":"accepted"}' in came and "you> {" not in came
    assert seat.end() == 0


def test_the_same_answer_again_is_no_mistake(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, asking(VERDICT), "Asks")
    turnloom("run", "Asks")
    turnloom("answer", "last", "accepted")
    assert "was answered before" in turnloom("answer", "last", "accepted").out
    turnloom("answer", "last", "refused", code=2)
    turnloom("resume", "last")
    assert "was answered before" in turnloom("answer", "last", "accepted").out


def test_a_name_that_nobody_has_is_told_the_names(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, MANUAL, "Manual")
    turnloom("run", "Manual")
    refused = turnloom("answer", "last", "Zoe", code=2).err
    assert '"Zoe" is none of these: A, B, terminate' in refused
    turnloom("answer", "last", "B")
