"""Standard output belongs to the program: what the code of workflows prints goes elsewhere."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import PROGRAM, Call
from tests.support.folders import write_folder

NOISY = {
    "orchestrator.yaml": "{initial_agent: Talker}",
    "agents.yaml": "Talker: {engine: {type: functions, file: noisy.py, function: talk}}",
    "noisy.py": """
        import os
        import subprocess
        import sys

        print("printed at import")


        def talk(task):
            print("printed in a turn")
            sys.stdout.write("written in a turn\\n")
            os.write(1, b"written past Python\\n")
            subprocess.run(["echo", "said by a process"], check=True)
            return "Hello."
        """,
}


@pytest.fixture(autouse=True)
def noisy(tmp_path: Path) -> None:
    write_folder(tmp_path, NOISY, "Noisy")


@pytest.mark.parametrize("more", [("--json",), ("--format", "sarif")])
def test_a_check_for_programs_is_json_alone(turnloom: Call, more: tuple[str, ...]) -> None:
    done = turnloom("check", "Noisy", *more)
    json.loads(done.out)
    assert "printed at import" in done.err


def test_the_events_of_a_run_are_json_alone(turnloom: Call) -> None:
    done = turnloom("run", "Noisy", "--json")
    kinds = [json.loads(line)["kind"] for line in done.out.splitlines()]
    assert kinds[0] == "run.started" and kinds[-1] == "run.finished"
    for said in ("printed in a turn", "written in a turn", "written past", "said by a process"):
        assert said in done.err
    json.loads(turnloom("runs", "--json").out)
    json.loads(turnloom("explain", "last", "--json").out)


def test_what_agents_say_stands_alone_too(turnloom: Call) -> None:
    done = turnloom("run", "Noisy", "--quiet")
    assert done.out == "Talker: Hello.\n" and "printed in a turn" in done.err


def test_a_stream_that_is_closed_harms_nothing(turnloom: Call) -> None:
    turnloom(shell=f"{PROGRAM} runs >&-")
    turnloom(shell=f"{PROGRAM} runs 2>&-")
