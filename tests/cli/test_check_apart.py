"""`turnloom check` outlives the code that it checks, and says which file ended or hung."""

import json
import time
from pathlib import Path

import pytest

from tests.cli.conftest import CHAT, Call
from tests.support.folders import write_folder

TOOLS = """
    tools:
      - {agent: Poet, file: first.py, function: first}
      - {agent: Poet, file: second.py, function: second}
    """
FINE = "def second() -> str:\n    return 'fine'\n"
ENDS = {
    "import os\nos._exit(0)\n": (1, "exit code 0"),
    "import os\nos.kill(os.getpid(), 9)\n": (1, "SIGKILL"),
    "import ctypes\n\nctypes.string_at(0)\n": (3, "SIGSEGV"),
    "x = 1\nwhile True:\n    pass\n": (None, "longer than 0.5 s"),
}


def folder(parent: Path, first: str, second: str = FINE, name: str = "Chat") -> None:
    files = {**CHAT, "tools.yaml": TOOLS, "tools/second.py": second}
    write_folder(parent, files, name)
    (parent / name / "tools" / "first.py").write_text(first, "utf-8")


@pytest.mark.parametrize("code", ENDS)
def test_code_that_ends_the_process_or_hangs_is_a_problem_of_its_file(
    turnloom: Call, tmp_path: Path, code: str
) -> None:
    folder(tmp_path, code)
    line, says = ENDS[code]
    done = turnloom("check", "Chat", "--json", "--timeout", "0.5", code=2)
    (problem,) = json.loads(done.out)
    assert (problem["file"], problem["code"]) == ("Chat/tools/first.py", "W042")
    assert says in problem["message"]
    assert problem["line"] in ((line,) if line else (2, 3))


def test_everything_else_is_checked_all_the_same(turnloom: Call, tmp_path: Path) -> None:
    ends = "import os\nos._exit(0)\n"
    folder(tmp_path, ends, "raise ValueError('no')")
    folder(tmp_path, "from helpers import x\n", name="Importing")
    (tmp_path / "Importing" / "helpers.py").write_text(ends, "utf-8")
    (tmp_path / "ends.py").write_text(ends, "utf-8")
    write_folder(tmp_path, {**CHAT, "agents.yaml": "agents: {Poet: {system_mesage: x}}"}, "Wrong")
    paths = ("Chat", "Importing", "ends.py", "Wrong")
    report = json.loads(turnloom("check", *paths, "--format", "sarif", code=2).out)
    found = {
        (
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["ruleId"],
        )
        for result in report["runs"][0]["results"]
    }
    assert found >= {
        ("Chat/tools/first.py", "W042"),
        ("Chat/tools/second.py", "W042"),
        ("Importing/helpers.py", "W042"),
        ("ends.py", "W042"),
        ("Wrong/agents.yaml", "W010"),
    }
    assert ("Importing/tools/first.py", "W042") not in found


def test_what_the_code_starts_ends_with_the_check(turnloom: Call, tmp_path: Path) -> None:
    starts = """
import subprocess, threading, time
threading.Thread(target=time.sleep, args=(3600,)).start()
started = subprocess.Popen(["sleep", "3600"])
with open("pid", "w") as file:
    file.write(str(started.pid))
def first(): pass
"""
    folder(tmp_path, starts)
    turnloom("check", "Chat", code=0)
    state = Path("/proc", (tmp_path / "pid").read_text("utf-8"), "stat")
    while state.exists() and state.read_text("utf-8").split()[2] not in "ZX":
        time.sleep(0.01)


@pytest.mark.parametrize("call", [("run",), ("show", "plan"), ("show", "graph")])
def test_what_loads_code_here_says_so_as_well(
    turnloom: Call, tmp_path: Path, call: tuple[str, ...]
) -> None:
    ends = "import os\nos._exit(0)\n"
    folder(tmp_path, ends)
    (tmp_path / "ends.py").write_text(ends, "utf-8")
    for path, file in (("Chat", "Chat/tools/first.py"), ("ends.py", "ends.py")):
        assert f"{file}:1: W042 " in turnloom(*call, path, code=2).err


def test_code_that_may_end_the_process_and_does_not_is_run(turnloom: Call, tmp_path: Path) -> None:
    folder(tmp_path, "import os\n\ndef first() -> None:\n    os._exit(3)\n")
    assert "finished" in turnloom("run", "Chat").out
