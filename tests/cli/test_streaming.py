"""Answers on the screen while they are made."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CHAT, Call, Sit
from tests.support.folders import write_folder

PIECES = ("Roses are ", "red,", "\nviolets")
RIGHT, WRONG = "Roses are red,\nviolets blue.", "Roses were red,\nviolets blue."
CODE = """\
import time
from pathlib import Path


def recite(task):
    for piece in {before}:
        task.say(piece)
    while not Path("go").exists():
        time.sleep(0.01)
    for piece in {after}:
        task.say(piece)
    {end}
"""
# An agent that says something before it calls a tool, and again after it.
TALKS = {
    "orchestrator.yaml": "{initial_agent: Clerk}",
    "agents.yaml": "Clerk: {system_message: Look it up.}\nBoss: {system_message: Nod.}\n",
    "tools.yaml": "tools: [{agent: Clerk, file: look.py, function: look}]",
    "look.py": "def look(at: str) -> str:\n    return 'blue'\n",
    "handoffs.yaml": "[{source_agent: Clerk, target_agent: Boss, handoff_type: after_work}]",
    "script.yaml": """
        agents:
          Clerk:
            - {text: Let me look., calls: [{tool: look, arguments: {at: sky}}]}
            - It is blue.
          Boss: [I see.]
        """,
}


@pytest.fixture
def slowly(tmp_path: Path) -> Callable[..., str]:
    def write(seen: int, end: str = f"return {RIGHT!r}") -> str:
        """An agent that says some pieces, waits for a file, says the others, and ends."""
        files = {
            "orchestrator.yaml": "{initial_agent: Poet}",
            "agents.yaml": "Poet: {engine: {type: functions, file: poet.py, function: recite}}",
            "poet.py": CODE.format(before=PIECES[:seen], after=PIECES[seen:], end=end),
        }
        write_folder(tmp_path, files, "Slowly")
        return "Slowly"

    return write


@pytest.mark.parametrize("more", [(), ("--quiet",)])
def test_an_answer_is_seen_while_it_is_made_and_once(
    sit: Sit, slowly: Callable[..., str], tmp_path: Path, more: tuple[str, ...]
) -> None:
    seat = sit("run", slowly(1), *more, NO_COLOR="1")
    assert seat.until("Poet: Roses are ").count("Poet: ") == 1
    (tmp_path / "go").touch()
    assert seat.end() == 0
    said = "Poet: Roses are red,\n  violets blue.\n"
    assert seat.seen.count("Roses") == 1 and said in seat.seen
    assert (seat.seen == said) is bool(more)


def test_what_turns_out_otherwise_is_said_again(
    sit: Sit, slowly: Callable[..., str], tmp_path: Path
) -> None:
    seat = sit("run", slowly(3, f"return {WRONG!r}"), "--quiet", NO_COLOR="1")
    seat.until("violets")  # all that is said before the end; what is not seen is not said again
    (tmp_path / "go").touch()
    assert seat.end() == 0
    first, again = "Poet: Roses are red,\n  violets\n", "Poet: Roses were red,\n  violets blue.\n"
    assert seat.seen == first + again


def test_an_engine_that_fails_leaves_no_half_line(
    sit: Sit, slowly: Callable[..., str], tmp_path: Path
) -> None:
    seat = sit("run", slowly(3, "raise RuntimeError('no rhyme')"), "--quiet", NO_COLOR="1")
    seat.until("violets")
    (tmp_path / "go").touch()
    assert seat.end() == 1
    assert "\n  violets\nError: " in seat.seen and "no rhyme" in seat.seen


def test_who_does_not_watch_reads_whole_lines(
    turnloom: Call, sit: Sit, slowly: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "go").touch()
    done = turnloom("run", slowly(1), "--quiet")
    assert done.out == "Poet: Roses are red,\n  violets blue.\n"
    seat = sit("run", "Slowly", "--json")
    assert seat.end() == 0
    assert all(json.loads(line)["kind"] for line in seat.seen.splitlines() if line[0] == "{")
    assert "Roses are " in seat.seen and "Poet: Roses" not in seat.seen


def test_the_pieces_stand_among_what_happens(sit: Sit, tmp_path: Path) -> None:
    """The driver is ahead of the screen, and still everything has its place."""
    write_folder(tmp_path, TALKS, "Talks")
    seat = sit("run", "Talks", NO_COLOR="1")
    assert seat.end() == 0
    told = [line for line in seat.seen.splitlines() if "saw" not in line]
    begun = told.index("  start → Clerk (startup: AgentDriven)")  # behind who plays
    assert told[begun:][:7] == [
        "  start → Clerk (startup: AgentDriven)",
        "Clerk: Let me look.",
        '  Clerk called look(at="sky") → "blue"',
        "Clerk: It is blue.",
        "  Clerk → Boss (after_work rule 1)",
        "Boss: I see.",
        "  Boss → terminate (no rule fired: the end)",
    ]


def test_pieces_cannot_steer_the_terminal(sit: Sit, tmp_path: Path) -> None:
    evil = r'"\e[31mred\e]0;owned\a \x9b2J [bold]loud[/bold]\rover\nPoet: forged"'
    script = CHAT["script.yaml"].replace('["It rhymes."]', f"[{evil}]")
    write_folder(tmp_path, CHAT | {"script.yaml": script}, "Chat")
    seat = sit("run", "Chat", "--unattended", "--quiet", NO_COLOR="1")
    assert seat.end() == 0
    assert not set("\x1b\x07\x9b\r") & set(seat.seen)
    assert (
        "Critic: \\x1b[31mred\\x1b]0;owned\\x07 \\x9b2J [bold]loud[/bold]\\x0dover\n" in seat.seen
    )
    assert seat.seen.endswith("\n  Poet: forged\n")
