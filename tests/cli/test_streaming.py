"""Answers on the screen while they are made."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import CHAT, Call, Sit
from tests.support.folders import write_folder

# Says half of it, waits for a file, says the other half, and answers with what `WHOLE` is.
SLOWLY = {
    "orchestrator.yaml": "{initial_agent: Poet}",
    "agents.yaml": """
        Poet:
          system_message: Rhyme.
          engine: {type: functions, file: slowly.py, function: recite}
        """,
    "slowly.py": """
        import time
        from pathlib import Path

        WHOLE = "Roses are red,\\nviolets blue."


        def recite(task):
            task.say("Roses are ")
            while not Path("go").exists():
                time.sleep(0.01)
            for piece in ("red,", "\\nviolets"):
                task.say(piece)
            return WHOLE
        """,
}
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


@pytest.mark.parametrize("more", [(), ("--quiet",)])
def test_an_answer_is_seen_while_it_is_made_and_once(
    sit: Sit, tmp_path: Path, more: tuple[str, ...]
) -> None:
    write_folder(tmp_path, SLOWLY, "Slowly")
    seat = sit("run", "Slowly", *more, NO_COLOR="1")
    assert seat.until("Poet: Roses are ").count("Poet: ") == 1
    (tmp_path / "go").touch()
    assert seat.end() == 0
    said = "Poet: Roses are red,\n  violets blue.\n"
    assert seat.seen.count("Roses") == 1 and said in seat.seen
    assert (seat.seen == said) is bool(more)


def test_what_turns_out_otherwise_is_said_again(sit: Sit, tmp_path: Path) -> None:
    code = SLOWLY["slowly.py"].replace("Roses are red,", "Roses were red,")
    write_folder(tmp_path, SLOWLY | {"slowly.py": code}, "Slowly")
    (tmp_path / "go").touch()
    seat = sit("run", "Slowly", "--quiet", NO_COLOR="1")
    assert seat.end() == 0
    first, again = "Poet: Roses are red,\n  violets\n", "Poet: Roses were red,\n  violets blue.\n"
    assert seat.seen == first + again


def test_an_engine_that_fails_leaves_no_half_line(sit: Sit, tmp_path: Path) -> None:
    code = SLOWLY["slowly.py"].replace("return WHOLE", "raise RuntimeError('no rhyme')")
    write_folder(tmp_path, SLOWLY | {"slowly.py": code}, "Slowly")
    (tmp_path / "go").touch()
    seat = sit("run", "Slowly", "--quiet", NO_COLOR="1")
    assert seat.end() == 1
    assert "\n  violets\nError: Run " in seat.seen and "no rhyme" in seat.seen


def test_who_does_not_watch_reads_whole_lines(turnloom: Call, sit: Sit, tmp_path: Path) -> None:
    write_folder(tmp_path, SLOWLY, "Slowly")
    (tmp_path / "go").touch()
    done = turnloom("run", "Slowly", "--quiet")
    assert done.out == "Poet: Roses are red,\n  violets blue.\n"
    seat = sit("run", "Slowly", "--json")
    assert seat.end() == 0
    assert all(json.loads(line)["kind"] for line in seat.seen.splitlines() if line[0] == "{")
    assert "Roses are " in seat.seen and "Poet: " not in seat.seen


def test_the_pieces_stand_among_what_happens(sit: Sit, tmp_path: Path) -> None:
    """Whoever drives is ahead of whoever tells, and still everything has its place."""
    write_folder(tmp_path, TALKS, "Talks")
    seat = sit("run", "Talks", NO_COLOR="1")
    assert seat.end() == 0
    told = [line for line in seat.seen.splitlines() if "saw" not in line]
    assert told[:7] == [
        "  start → Clerk (startup: AgentDriven)",
        "Clerk: Let me look.",
        '  Clerk calls look(at="sky") → "blue"',
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
