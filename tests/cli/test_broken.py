"""The command line with a run that cannot be read."""

import json
from pathlib import Path

from tests.cli.conftest import Call
from tests.support.folders import write_folder
from tests.support.tables import tables_of

FILES = {
    "agents.yaml": "A: {engine: {type: functions, file: a.py, function: greet}}",
    "a.py": "def greet(task):\n    return 'Hello.'\n",
}


def test_a_broken_run_is_listed_and_the_others_are_used(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, FILES, "Tell")
    for _ in range(2):
        turnloom("run", "Tell", "--quiet", "--store", "runs.db")
    last, first = (each["run"] for each in json.loads(listed(turnloom)))
    with tables_of(tmp_path / "runs.db") as tables:
        tables.rewrite(first, lambda _: b"\0")
    states = {each["run"]: each["status"] for each in json.loads(listed(turnloom))}
    assert states == {last: "finished", first: "broken"}
    shown = turnloom("runs", "--store", "runs.db").out
    assert f"{first} is broken" in " ".join(shown.split())
    assert turnloom("explain", "last", "--store", "runs.db").out
    turnloom("explain", first, "--store", "runs.db", code=1)


def listed(turnloom: Call) -> str:
    return turnloom("runs", "--json", "--store", "runs.db").out
