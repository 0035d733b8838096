"""What tools ask of people: at a terminal, from a script, and from anywhere."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.asking import PERSON, VERDICT, asking
from tests.cli.conftest import Call, Sit
from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.testing import FakeClock

MANUAL = {
    "orchestrator.yaml": "{orchestration_pattern: ManualPattern, initial_agent: A}",
    "agents.yaml": "A: {system_message: a}\nB: {system_message: b}\n",
    "script.yaml": "agents: {A: [First.], B: [Second.]}\nuser: [B, terminate]\n",
}


def test_one_of_several_is_chosen_by_number_or_word(sit: Sit, tmp_path: Path) -> None:
    write_folder(tmp_path, asking(VERDICT), "Asks")
    seat = sit("run", "Asks", NO_COLOR="1")
    asked = seat.until("you> ")
    assert "\nMy plan\n  steps: 5\n  verdict: What you think of it.\n" in asked
    assert asked.endswith("  1) accepted\n  2) refused\nyou> ")
    for wrong in ("3", "maybe", '{"verdict": "accepted"}'):
        seat.type(wrong)
        assert "accepted, refused" in seat.until("you> ")
    seat.type(" ")  # nothing said: asked again
    seat.until("you> ")
    seat.type("2")
    assert 'ask returned {"verdict":"refused"}\n' in seat.until("Clerk: Thank you.\n")
    assert seat.end() == 0
    seat = sit("run", "Asks", "--quiet", NO_COLOR="1")
    assert "\nMy plan\n  steps: 5\n" in seat.until("you> ")
    seat.type("ACCEPTED")
    assert seat.until("Clerk: Thank you.\n") == "ACCEPTED\nClerk: Thank you.\n"


def test_an_object_is_a_form(sit: Sit, tmp_path: Path) -> None:
    write_folder(tmp_path, asking(PERSON, payload=None), "Asks")
    seat = sit("run", "Asks", NO_COLOR="1")
    shown = seat.until("name> ")
    assert "\nask asks:\n  name: What you are called. (a string)\nname> " in shown
    seat.type("Ada")
    assert "  nick (a string)\n" in seat.until("nick> ")
    seat.type("")  # it may be null
    seat.until("age> ")
    for wrong, why in (("old", '"old"'), ("-1", "minimum")):
        seat.type(wrong)
        assert why in seat.until("age> ")
    seat.type("")  # required, so asked again
    seat.until("age> ")
    seat.type("36")
    assert "adult (y/n)" in seat.until("adult> ")
    seat.type("y")
    assert "tags (an array or nothing)" in seat.until("tags> ")
    seat.type('["a", "b"]')
    assert "colour (or nothing)\n  1) red\n  2) blue\n" in seat.until("colour> ")
    seat.type("")
    seat.until("Thank you.")
    given = '{"name":"Ada","nick":null,"age":36,"adult":true,"tags":["a","b"]}'
    assert f"ask returned {given}\n" in seat.seen and f"you> {given}" not in seat.seen
    assert seat.end() == 0


def test_a_form_that_is_wrong_as_a_whole_is_asked_again(sit: Sit, tmp_path: Path) -> None:
    both: dict[str, Any] = {"a": {"type": "integer"}, "b": {}}
    response = {"type": "object", "minProperties": 1, "properties": both}
    write_folder(tmp_path, asking(response), "Asks")
    seat = sit("run", "Asks", NO_COLOR="1")
    for name in ("a", "b"):
        seat.until(f"{name}> ")
        seat.type("")
    assert "\n" in seat.until("a> ").strip()  # why, and from the first field again
    seat.type("")
    seat.until("b> ")
    seat.type("words")
    seat.until('ask returned {"b":"words"}')
    assert seat.end() == 0


@pytest.mark.parametrize(("typed", "value"), [("[1, 2]", "[1,2]"), ("so be it", '"so be it"')])
def test_without_a_schema_an_answer_is_json_or_a_text(
    sit: Sit, tmp_path: Path, typed: str, value: str
) -> None:
    write_folder(tmp_path, asking(payload=["what", "now"]), "Asks")
    seat = sit("run", "Asks", NO_COLOR="1")
    assert 'ask asks:\n  ["what","now"]\nyou> ' in seat.until("you> ")
    seat.type(typed)
    assert f"ask returned {value}\n" in seat.until("Thank you.")


def test_who_leaves_is_told_what_is_asked_and_may_come_back(
    sit: Sit, turnloom: Call, tmp_path: Path
) -> None:
    write_folder(tmp_path, asking(VERDICT), "Asks")
    seat = sit("run", "Asks", "--json", NO_COLOR="1")
    assert "My plan\nsteps: 5\n" in seat.until("2) refused\nyou> ")
    seat.type("\x04", end="")
    gist = "ask asks: My plan (takes {verdict: accepted | refused})"
    assert f"\n  {gist}\n" in seat.until("resume") and seat.end() == 0
    assert f" waits: {gist}\n" in turnloom("runs").out
    again = turnloom("resume", "last")
    assert "My plan\n  steps: 5\n" in again.out and f"\n  {gist}\n" in again.out
    (answer,) = [line.strip() for line in again.out.splitlines() if " answer " in line]
    assert answer.endswith(" accepted")
    seat = sit("resume", "last", "--quiet", NO_COLOR="1")
    assert "\nMy plan\n  steps: 5\n" in seat.until("you> ")
    seat.type("accepted")
    assert "Thank you." in seat.until("Thank you.") and seat.end() == 0


def test_a_person_picks_who_speaks(sit: Sit, turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, MANUAL, "Manual")
    done = turnloom("run", "Manual")
    assert "Who speaks next?\nyou> B\n" in done.out and "B: Second." in done.out
    seat = sit("run", "Manual", NO_COLOR="1")
    assert "Who speaks next?\n  1) A\n  2) B\n  3) terminate\n" in seat.until("you> ")
    seat.type("B")
    seat.until("you> ")
    seat.type("3")
    assert seat.end() == 0 and "B: Second." in seat.seen


def test_a_question_expires_at_the_prompt(sit: Sit, turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, asking(VERDICT, timeout=1.5), "Asks")
    seat = sit("run", "Asks", NO_COLOR="1")
    came = seat.until("Thank you.")
    assert "ask failed: QuestionExpired: " in came and seat.end() == 0
    turnloom("answer", "last", "accepted", code=1)


def test_a_scripted_user_answers_tools_in_order(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, asking(VERDICT, user=[{"verdict": "accepted"}]), "Asks")
    done = turnloom("run", "Asks", "--quiet").out
    told = ["My plan", "  steps: 5", 'you> {"verdict":"accepted"}', "Clerk: Thank you."]
    assert done.splitlines() == told
    write_folder(tmp_path, asking(VERDICT, user=[{"verdict": "perhaps"}]), "Asks")
    done = turnloom("run", "Asks", code=1)
    assert '{"verdict":"perhaps"}' in done.err and "`verdict`: 'perhaps' " in done.err
    assert " resume " in done.err
    assert json.loads(turnloom("runs", "--json").out)[0]["status"] == "waiting"


@pytest.mark.parametrize(
    ("response", "given", "value"),
    [
        (VERDICT, "refused", '{"verdict":"refused"}'),
        (VERDICT, '{"verdict": "accepted"}', '{"verdict":"accepted"}'),
        ({"enum": ["yes", "no", "7"]}, "7", '"7"'),
        (None, "[1]", "[1]"),
        (None, "some words", '"some words"'),
    ],
)
def test_an_answer_from_anywhere_is_json_or_a_word(
    turnloom: Call, tmp_path: Path, response: Any, given: str, value: str
) -> None:
    write_folder(tmp_path, asking(response), "Asks")
    turnloom("run", "Asks")
    assert " resume " in turnloom("answer", "last", given).out
    assert f"ask returned {value}\n" in turnloom("resume", "last").out


def test_an_answer_that_does_not_fit_is_told_what_does(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, asking(PERSON), "Asks")
    turnloom("run", "Asks")
    demand = "{name: a string, nick: a string, age: an integer, adult: true or false, "
    for wrong, why in (("Ada", '"Ada"'), ('{"name": 1}', "'nick'")):
        done = turnloom("answer", "last", wrong, code=2)
        assert why in done.err and demand in done.err
    assert json.loads(turnloom("runs", "--json").out)[0]["status"] == "waiting"


def test_only_whom_it_was_asked_of_can_answer(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, asking(VERDICT), "Asks")
    turnloom("run", "Asks", "--user", "ada", "--app-id", "acme")
    (listed,) = json.loads(turnloom("runs", "--json", "--app-id", "acme").out)
    assert json.loads(turnloom("runs", "--json").out) == []
    for who, code in ((("--user", "eve", "--app-id", "acme"), 1), (("--app-id", "other"), 2)):
        for answer in ("accepted", "nonsense"):
            done = turnloom("answer", listed["run"], answer, *who, code=code)
            assert not any(word in done.err + done.out for word in ("plan", "verdict", "ask asks"))
    turnloom("answer", "last", "accepted", "--user", "ada", "--app-id", "acme")
    question = json.loads(turnloom("run", "Asks", "--json").out.splitlines()[-1])["data"][
        "waiting_for"
    ]
    turnloom("answer", "last", "accepted", "--question", question)
    turnloom("answer", "last", "refused", "--question", question)
    assert '{"verdict":"accepted"}' in turnloom("resume", "last").out  # the first answer counts


async def test_an_answer_that_comes_too_late_is_refused(turnloom: Call, tmp_path: Path) -> None:
    """The question was asked long ago, by a program whose clock says so."""
    folder = write_folder(tmp_path, asking(VERDICT, timeout=60), "Asks")
    clock = FakeClock(datetime(2020, 1, 1, tzinfo=UTC))
    async with Loom(store=str(tmp_path / ".turnloom" / "turnloom.db"), clock=clock) as app:
        run = await app.start(folder)
        async for event in run.events():
            if event.kind == "run.paused":
                break
    turnloom("answer", "last", "accepted", code=1)
    assert "failed: QuestionExpired" in turnloom("resume", "last").out
