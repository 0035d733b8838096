"""Flows on the command line: run, answered from anywhere, taken up after a kill, cancelled."""

import json
import os
import signal
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.conftest import Call, Sit
from tests.support.warm import Done

PROGRAM = """
    import asyncio
    from pathlib import Path as File
    from typing import Annotated

    from pydantic import BaseModel, ConfigDict

    from turnloom import Flow, Option, Path, append, use_ui_tool


    class Trip(BaseModel):
        model_config = ConfigDict(frozen=True)
        to: str
        seat: str = ""
        notes: Annotated[list[str], append] = []


    async def book(state, ctx):
        with File("booked").open("a") as file:
            file.write("x")
        return {"notes": [f"booked {state.to}"]}


    async def unbook(state, ctx):
        with File("unbooked").open("a") as file:
            file.write("x")


    async def choose(state, ctx):
        return {"seat": await use_ui_tool("seat", {"prompt": "Which seat?"})}


    async def pack(state, ctx):
        return {"notes": ["packed"]}


    async def join(state, ctx):
        pass


    async def pay(state, ctx):
        if state.to == "Nowhere":
            raise LookupError("there is no such place")
        if ctx.attempt == 1:
            raise OSError("no network")
        return {"notes": ["paid"]}


    async def nap(state, ctx):
        if not File("awake").exists():
            await asyncio.sleep(3600)
        return {"notes": ["slept"]}


    trip = (
        Flow("trip", Trip)
        .start_with(book, compensate=unbook)
        .fork(Path(choose), Path(pack), join=join)
        .await_approval(
            "boss",
            context=lambda state: f"Pay for {state.to}?",
            options=["approve", "reject", Option("later", "Pay later", "At the desk.")],
        )
        .finally_(pay, retry=1)
    )
    sorry = (
        Flow("sorry", Trip)
        .start_with(book, compensate=unbook)
        .then(pack, compensate=nap)
        .finally_(pay)
    )
    rest = Flow("rest", Trip).start_with(book, compensate=unbook).finally_(nap)
"""

BOSS = ("--user", "boss")
ROME = ("--input", '{"to": "Rome"}')


@pytest.fixture(autouse=True)
def program(tmp_path: Path) -> None:
    (tmp_path / "trip.py").write_text(dedent(PROGRAM))


def run_id(done: Done) -> str:
    return done.out.partition("Run ")[2].partition(" ")[0]


def test_a_flow_is_run_answered_and_taken_up(turnloom: Call, tmp_path: Path) -> None:
    """Without a terminal, it says how to answer; any process takes it up."""
    begun = turnloom("run", "trip.py:trip", *ROME)
    run = run_id(begun)
    assert '  step book began → changed {"notes":["booked Rome"]}\n' in begun.out
    assert f" answer {run} " in begun.out and "Which seat?" in begun.out
    turnloom("answer", run, "12A")
    asked = turnloom("resume", run)
    assert "Pay for Rome?\n" in asked.out and "boss" in asked.out
    assert "later: Pay later. At the desk." in asked.out
    assert f" answer {run} approve --user boss\n" in asked.out
    for wrong in ("maybe", '{"decision": "maybe"}', '{"instructions": "hurry"}'):
        refused = turnloom("answer", run, wrong, *BOSS, code=2)
        assert "approve | reject | later | defer" in refused.err
    assert "Pay for Rome?" in turnloom("runs").out
    turnloom("answer", run, '{"decision": "later", "instructions": "hurry"}', *BOSS)
    ended = turnloom("resume", run)
    assert all(word in ended.out for word in ("boss", "(later)", "hurry"))
    assert "step pay began → failed in attempt 1: OSError: no network" in ended.out
    assert '  step pay began, attempt 2 → changed {"notes":["paid"]}\n' in ended.out
    assert '"seat": "12A"' in ended.out or '"seat":"12A"' in ended.out
    assert f"Run {run} finished" in ended.out
    assert "boss" in turnloom("explain", run).out
    assert (tmp_path / "booked").read_text() == "x"


def test_a_person_at_the_terminal_decides(sit: Sit) -> None:
    seat = sit("run", "trip.py:trip", *ROME, *BOSS, NO_COLOR="1")
    seat.until("Which seat?")
    seat.until("you> ")
    seat.type("12A")
    asked = seat.until("decision> ")
    assert "1) approve\n  2) reject\n  3) later\n  4) defer\n" in asked
    seat.type("soon")
    assert "approve, reject, later, defer" in seat.until("decision> ")
    seat.type("1")
    seat.until("instructions> ")
    seat.type("hurry")
    came = seat.until("paid")
    assert "(approve)" in came and "hurry" in came
    assert seat.end() == 0


def test_one_process_drives_and_another_answers(sit: Sit, turnloom: Call) -> None:
    seat = sit("run", "trip.py:trip", *ROME, *BOSS, NO_COLOR="1")
    seat.until("you> ")
    assert " resume " not in turnloom("answer", "last", "12A").out
    seat.until("decision> ")
    assert " resume " not in turnloom("answer", "last", "approve", *BOSS).out
    assert seat.end() == 0 and "finished" in seat.seen


def test_a_run_of_a_changed_flow_is_undone_as_far_as_it_names_it(
    turnloom: Call, tmp_path: Path
) -> None:
    first, second, third = (run_id(turnloom("run", "trip.py:trip", *ROME)) for _ in range(3))
    changed = dedent(PROGRAM).replace(".finally_(pay, retry=1)", ".finally_(pay, retry=2)")
    (tmp_path / "trip.py").write_text(changed)
    assert f"Run {first} is cancelled" in turnloom("cancel", first).out
    assert (tmp_path / "unbooked").read_text() == "x"
    (tmp_path / "trip.py").write_text(changed.replace("book, compensate=unbook", "book"))
    left = turnloom("cancel", second, code=1)
    assert f"Run {second} is cancelled" in left.err and "book: PlanChanged" in left.err
    (tmp_path / "trip.py").write_text("import nothing_of_that_name\n")
    assert "book: PlanChanged" in turnloom("cancel", third, code=1).err
    assert (tmp_path / "unbooked").read_text() == "x"


def test_only_who_is_asked_decides(sit: Sit, turnloom: Call) -> None:
    """Neither the run's user, named or not, nor a person at the run's own terminal."""
    seat = sit("run", "trip.py:trip", *ROME, "--user", "ann", NO_COLOR="1")
    seat.until("you> ")
    seat.type("12A")
    assert seat.end() == 0
    assert "decision> " not in seat.seen and "approve --user boss" in seat.seen
    for words in ((), ("--user", "ann"), ("--user", "eve")):
        turnloom("answer", "last", "approve", *words, code=1)
    seat = sit("resume", "last", *BOSS, NO_COLOR="1")
    seat.until("decision> ")
    seat.type("1")
    seat.until("instructions> ")
    seat.type("")
    assert seat.end() == 0 and "finished" in seat.seen


def test_a_rejection_fails_the_run_and_is_made_up_for(turnloom: Call, tmp_path: Path) -> None:
    turnloom("run", "trip.py:trip", *ROME)
    turnloom("answer", "last", "12A")
    turnloom("resume", "last")
    turnloom("answer", "last", "reject", *BOSS)
    failed = turnloom("resume", "last", code=1)
    assert "unbook" in failed.out
    assert "ApprovalRejected: 'boss'" in failed.err
    assert (tmp_path / "unbooked").read_text() == "x"


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_gone(kill: int, sit: Sit, turnloom: Call, tmp_path: Path) -> None:
    """Another one takes the step that was cut off, and does nothing twice."""
    seat = sit("run", "trip.py:rest", *ROME, NO_COLOR="1")
    seat.until("  step nap began")
    os.kill(seat.process.pid, kill)
    seat.end()
    (tmp_path / "awake").touch()
    assert 'step nap changed {"notes":["slept"]}' in turnloom("resume", "last").out
    assert (tmp_path / "booked").read_text() == "x"


def test_a_process_killed_while_it_makes_up_for_what_was_done(
    sit: Sit, turnloom: Call, tmp_path: Path
) -> None:
    """Another one continues that from where it was cut off."""
    seat = sit("run", "trip.py:sorry", *ROME, NO_COLOR="1")
    seat.until("  step nap began")
    os.kill(seat.process.pid, signal.SIGKILL)
    seat.end()
    assert not (tmp_path / "unbooked").exists()
    (tmp_path / "awake").touch()
    failed = turnloom("resume", "last", code=1)
    assert "pay" in failed.err and "OSError: no network" in failed.err
    assert (tmp_path / "unbooked").read_text() == "x"


def test_a_run_is_cancelled_from_elsewhere(sit: Sit, turnloom: Call, tmp_path: Path) -> None:
    """The process that drives it compensates what was done."""
    seat = sit("run", "trip.py:rest", *ROME, NO_COLOR="1")
    seat.until("  step nap began")
    turnloom("cancel", "last", "--reason", "enough")
    assert seat.end() == 1
    assert (tmp_path / "unbooked").read_text() == "x"


def test_a_run_that_waits_is_cancelled(turnloom: Call, tmp_path: Path) -> None:
    """No process drives it, so the command compensates what was done."""
    turnloom("run", "trip.py:trip", *ROME)
    turnloom("cancel", "last")
    assert (tmp_path / "unbooked").read_text() == "x"
    assert "unbook" in turnloom("explain", "last").out


def test_events_as_json(turnloom: Call) -> None:
    lines = turnloom("run", "trip.py:trip", *ROME, "--json").out.splitlines()
    kinds = [json.loads(line)["kind"] for line in lines if line.startswith("{")]
    assert kinds[:3] == ["run.started", "context.loaded", "state.given"]
    assert {"step.started", "step.completed", "fork.opened", "question.asked"} <= set(kinds)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("trip.py",), ("trip, sorry, rest", "trip.py:rest")),
        (("trip.py:tripp",), ("'tripp'", "'trip'")),
        (("trop.py",), ("'trop.py'",)),
        (("trip.py:trip",), ("Trip", "to: ", "--input")),
        (("trip.py:trip", "--input", "{"), ("Trip", "Invalid JSON")),
        (("trip.py:trip", "--input", '{"to": "Rome", "frm": 1}'), ("Trip", "'frm'")),
        (("trip.py:trip", "--input", "@none.json"), ("--input", "none.json")),
        (("broken.py",), ("broken.py:1: W042 ", "ZeroDivisionError")),
        (("empty.py",), ("'empty.py'",)),
        ((".", "--input", "{}"), ("--input",)),
    ],
)
def test_wrong_use(
    words: tuple[str, ...], says: tuple[str, ...], turnloom: Call, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    told = turnloom("run", *words, code=2).err
    assert all(each in told for each in says), told


def test_the_state_may_come_from_a_file(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"to": "Nowhere"}')
    (tmp_path / "awake").touch()
    done = turnloom("run", "trip.py:rest", "--input", "@state.json", "--quiet")
    assert json.loads(done.out) == {
        "to": "Nowhere",
        "seat": "",
        "notes": ["booked Nowhere", "slept"],
    }


def test_a_flow_that_was_built_otherwise_is_not_gone_on_with(
    turnloom: Call, tmp_path: Path
) -> None:
    turnloom("run", "trip.py:trip", *ROME)
    changed = dedent(PROGRAM).replace("retry=1", "retry=3")
    (tmp_path / "trip.py").write_text(changed)
    refused = turnloom("resume", "last", code=1)
    assert "retry" in refused.err
