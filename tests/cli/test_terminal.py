"""A person at a terminal: typing, being overtaken, interrupting, and texts that misbehave."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CHAT, SLOW, Call, Sit
from tests.support.folders import write_folder

EVIL = r'"\e[31mred\e]0;owned\a\x9b2J [bold]loud[/bold] :smile: \u202Eback\rover\nyou> forged"'


def test_a_conversation_is_typed(sit: Sit, turnloom: Call, chat: str) -> None:
    seat = sit("run", chat)
    assert "\x1b[1;36mPoet" in seat.until("you> ")  # the agent's name has its colour
    seat.type("   ")  # nothing said: asked again
    seat.until("you> ")
    seat.type("Weiter, bitte – 世界.")
    came = seat.until("you> ")
    assert "Violets are blue." in came and came.count("Weiter") == 1  # the echo, and no more
    seat.type("Enough.")
    assert "finished" in seat.until("finished")
    assert seat.end() == 0
    assert "user: Weiter, bitte – 世界." in turnloom("explain", "last", "--turn", "2").out


def test_leaving_the_prompt_leaves_the_run_waiting(sit: Sit, chat: str) -> None:
    seat = sit("run", chat)
    seat.until("you> ")
    seat.type("\x04", end="")
    assert seat.until(" resume ").startswith("\x1b[0m\nRun ")
    assert seat.end() == 0
    seat = sit("resume", "last")
    assert "Poet: Roses are red." in seat.until("you> ")
    seat.type("Go on.")
    seat.until("you> ")
    seat.interrupt()
    assert "resume" in seat.until("Interrupted.")
    assert seat.end() == 1
    seat = sit("resume", "last", "--unattended")
    came = seat.until("finished")
    assert "Enough." in came and "Go on." in came.split("Violets")[0]  # the first was used up
    assert seat.end() == 0


def test_the_script_can_answer_at_a_terminal_too(sit: Sit, chat: str) -> None:
    seat = sit("run", chat, "--unattended", NO_COLOR="1")
    assert seat.end() == 0
    assert "\x1b" not in seat.seen and "you> Go on.\n" in seat.seen


def test_json_at_a_terminal_asks_on_the_other_stream(sit: Sit, chat: str) -> None:
    seat = sit("run", chat, "--json")
    for line in ("Go on.", "Enough."):
        seat.until("you> ")
        seat.type(line)
    seat.until('"run.finished"')
    assert seat.end() == 0
    events = [line for line in seat.seen.splitlines() if line.startswith("{")]
    assert json.loads(events[-1])["kind"] == "run.finished"


def test_a_prompt_gives_way_to_an_answer_and_to_a_cancel(
    sit: Sit, turnloom: Call, chat: str
) -> None:
    seat = sit("run", chat)
    seat.until("you> ")
    assert " resume " not in turnloom("answer", "last", "From elsewhere.").out
    came = seat.until("Violets are blue.")
    assert "From elsewhere." in came
    seat.until("you> ")
    turnloom("cancel", "last", "--reason", "enough")
    assert seat.end() == 1 and "enough" in seat.seen
    assert "cancelled" in turnloom("runs").out


@pytest.mark.parametrize("function", ["nap", "doze"])
def test_a_slow_function_is_cancelled_and_interrupted(
    sit: Sit, turnloom: Call, tmp_path: Path, function: str
) -> None:
    agents = SLOW["agents.yaml"].replace("nap", function)
    write_folder(tmp_path, SLOW | {"agents.yaml": agents}, "Slow")
    seat = sit("run", "Slow")
    seat.until("Sleeper saw")
    assert turnloom("resume", "last", code=1).err  # another process drives it
    turnloom("cancel", "last")
    assert seat.end() == 1 and "by local" in seat.seen
    seat = sit("run", "Slow")
    seat.until("Sleeper saw")
    seat.interrupt()
    assert seat.end() == 1 and "Traceback" not in seat.seen
    assert "unfinished" in turnloom("runs").out  # and so it can be resumed


def test_texts_cannot_steer_the_terminal(sit: Sit, turnloom: Call, tmp_path: Path) -> None:
    script = CHAT["script.yaml"].replace("Roses are red.", EVIL)
    write_folder(tmp_path, CHAT | {"script.yaml": script}, "Chat")
    seat = sit("run", "Chat", "--unattended")
    assert seat.end() == 0
    shown = seat.seen
    for harmful in ("\x1b[31m", "\x1b]0;", "\x07", "\x9b", "\u202e", "\r"):
        assert harmful not in shown
    for spelled in ("\\x1b[31mred", "\\x07", "\\x9b2J", "[bold]loud[/bold]", ":smile:"):
        assert spelled in shown
    assert "\nyou> forged" not in shown and "\n  you> forged" in shown
    for words in (["--turn", "2"], ["--turn", "1"], [], ["--route", "1"], ["--variable", "done"]):
        for explained in (
            turnloom("explain", "last", *words),
            turnloom("explain", "last", *words, "--json"),
        ):
            assert not set("\x1b\x07\x9b\u202e\r") & set(explained.out)
    exact = json.loads(turnloom("explain", "last", "--turn", "2", "--json").out)
    assert "\x1b[31mred\x1b]0;owned\x07\x9b2J" in exact["prompt"] and "\u202e" in exact["prompt"]
    lines = turnloom("run", "Chat", "--json", "--unattended").out.splitlines()
    assert any("\x9b" in json.loads(line)["data"].get("text", "") for line in lines)
    assert "\x9b" not in "".join(lines)
