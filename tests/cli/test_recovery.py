"""What is left after a kill, and on a full disk."""

import json
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from tests.cli.conftest import PROGRAM, Call, Sit
from tests.support.folders import write_folder
from turnloom import Event, Loom

# An agent whose nine texts need more room than the test's disk has.
LOUD = {
    "orchestrator.yaml": "{initial_agent: Shouter, max_turns: 9}",
    "agents.yaml": """
        agents:
          Shouter:
            system_message: Shout.
            engine: {type: functions, file: loud.py, function: shout}
        """,
    "loud.py": """
        def shout(task):
            return "A" * 40_000
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Shouter, target_agent: Shouter, handoff_type: after_work}
        """,
}


def essence(events: Sequence[Event]) -> list[tuple[str, Any]]:
    """What a kill does not change: ids and facts, but for the run's own id and the resume mark."""
    return [
        (event.id, event.data)
        for event in events
        if event.kind not in ("run.resumed", "context.loaded")
    ]


async def logs(store: Path) -> list[Sequence[Event]]:
    async with Loom(store=str(store)) as app:
        return [await app.history.events(summary.run) for summary in await app.runs()]


def test_a_killed_session_is_resumed_where_its_log_ends(
    sit: Sit, turnloom: Call, chat: str, tmp_path: Path
) -> None:
    seat = sit("run", chat)
    seat.until("you> ")
    seat.type("Go on.")
    seat.until("Violets are blue.")
    os.kill(seat.process.pid, signal.SIGKILL)
    assert seat.end() == -signal.SIGKILL
    run = json.loads(turnloom("runs", "--json").out)[0]["run"]
    resumed = turnloom("resume", run[:7])
    told_again, went_on = resumed.out.split("you> Enough.")
    assert "Go on." in told_again and "Critic: It rhymes." in went_on and "finished" in went_on
    turnloom("run", chat)
    unbroken, killed = anyio.run(logs, tmp_path / ".turnloom" / "turnloom.db")
    assert essence(killed) == essence(unbroken)


def test_a_run_that_was_killed_without_its_variables_goes_on_without_them(
    sit: Sit, turnloom: Call, chat: str, tmp_path: Path
) -> None:
    variables = tmp_path / chat / "context_variables.yaml"
    right = variables.read_text("utf-8")
    wrong = right.replace("type: derived", "type: runtime")
    variables.write_text(wrong, "utf-8")
    assert "W014" in turnloom("run", chat, code=2).err
    seat = sit("run", chat, "--no-strict")
    assert f"{PROGRAM} check " in seat.until("you> ")  # what is wrong with them
    seat.type("Go on.")
    seat.until("Violets are blue.")
    os.kill(seat.process.pid, signal.SIGKILL)
    assert seat.end() == -signal.SIGKILL
    variables.write_text(right, "utf-8")
    assert "Poet: NEXT" in turnloom("resume", "last").out
    variables.write_text(wrong, "utf-8")
    turnloom("run", chat, TURNLOOM_STRICT="off")
    unbroken, killed = anyio.run(logs, tmp_path / ".turnloom" / "turnloom.db")
    assert essence(killed) == essence(unbroken)


def test_a_full_disk_is_a_sentence_and_the_run_goes_on_afterwards(
    turnloom: Call, tmp_path: Path
) -> None:
    write_folder(tmp_path, LOUD, "Loud")
    program = shlex.quote(PROGRAM)
    done = turnloom(shell=f"ulimit -f 700 && exec {program} run Loud --quiet", code=1)
    assert "turnloom.db" in done.err and " resume " in done.err
    assert 0 < done.out.count("Shouter:") < 9
    finished = turnloom("resume", "last")
    assert "finished" in finished.out
