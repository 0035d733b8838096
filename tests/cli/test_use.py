"""Exit codes, names of runs, streams, and what a call costs."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import anyio
import msgspec
import pytest

from tests.cli.conftest import INTERVIEW, PROGRAM, Call, Sit, surroundings
from tests.support.folders import write_folder
from tests.support.warm import Warm
from turnloom import Loom
from turnloom.cli.entry import COLLECTOR

LOADED = """
import atexit, sys
from turnloom.cli import main

atexit.register(lambda: sys.stderr.write(" ".join(sys.modules)))
sys.argv = ["turnloom", *sys.argv[1:]]
main()
"""


def loaded(*words: str) -> set[str]:
    """The modules that a call imports."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings({}),
    )
    return set(done.stderr.split())


def test_a_call_imports_only_what_it_needs() -> None:
    version = loaded("--version")
    assert not {"turnloom.app", "turnloom.wiring", "pydantic", "msgspec", "re2"} & version
    assert "turnloom.app" not in loaded("check", "workflows/Interview")
    program = "import sys; from turnloom import Loom; print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    assert not {"typer", "rich", "turnloom.cli"} & set(names.split())


def test_the_command_line_sets_the_collector_and_the_library_does_not(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {
        "agents.yaml": "A: {engine: {type: functions, file: a.py, function: f}}",
        "a.py": "import gc\n\ndef f(task):\n    return repr(gc.get_threshold())\n",
    }
    write_folder(tmp_path, files, "Tell")
    assert turnloom("run", "Tell", "--quiet").out == f"A: {COLLECTOR!r}\n"
    program = "import gc; was = gc.get_threshold(); {}; print(was == gc.get_threshold())"
    imports = "from turnloom import Board, Flow, Loom; import turnloom.testing"
    words = [sys.executable, "-c", program.format(imports)]
    assert subprocess.run(words, capture_output=True, text=True).stdout == "True\n"


def test_the_program_says_what_it_is(turnloom: Call) -> None:
    assert turnloom("--version").out.startswith("turnloom ")
    module = subprocess.run([sys.executable, "-m", "turnloom", "--version"], capture_output=True)
    assert module.stdout.startswith(b"turnloom ")
    shown = turnloom("--help").out
    for name in ("run", "check", "runs", "explain", "resume", "answer", "cancel"):
        assert name in shown and "Usage" in turnloom(name, "--help").out
    turnloom(code=2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["chek"], "'check'"),
        (["run", "x", "--nonsense"], "--nonsense"),
        (["runs", "--limit", "0"], "limit"),
        (["explain", "nosuchrun"], "'nosuchrun'"),
        (["explain", ""], "''"),
        (["explain", "last", "--turn", "1", "--route", "1"], "one thing"),
        (["explain", "last", "--agent", "Critic"], "agent"),
        (["explain", "last", "--at", "3"], "--at"),
        (["resume", "last"], "Error: "),
        (["runs", "--store", ""], "store"),
    ],
)
def test_wrong_use_is_told_and_exit_code_2(turnloom: Call, words: list[str], says: str) -> None:
    done = turnloom(*words, code=2)
    assert done.err.startswith("Error: ") and says in done.err and not done.out


def test_what_is_not_text_is_refused(turnloom: Call, chat: str) -> None:
    run = f"{PROGRAM} run {chat} --user \"$(printf 'ad\\377')\""
    assert "UTF-8" in turnloom(shell=run, code=2).err
    assert "UTF-8" in turnloom("answer", "last", "a\udcff", code=2).err
    assert "\x1b" not in turnloom("check", "no\x1bwhere", code=2).out


def test_tracebacks_come_with_debug_only(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database")
    for words in (("--debug", "runs"), ("runs", "--debug")):
        done = turnloom(*words, "--store", "notes.txt", code=1)
        assert "Traceback" in done.err and "not a database" in done.err
    assert turnloom("runs", "--store", "notes.txt", code=1).err.startswith("Error: ")


def test_runs_are_named_by_id_prefix_or_last(turnloom: Call, chat: str) -> None:
    for _ in range(2):
        turnloom("run", chat, "--quiet")
    latest, first = (each["run"] for each in json.loads(turnloom("runs", "--json").out))
    assert json.loads(turnloom("explain", "last", "--json").out)["run"] == latest
    assert json.loads(turnloom("explain", first[:8], "--json").out)["run"] == first
    assert turnloom("runs", "--limit", "1").out.count("Chat") == 1
    assert "--limit N" in turnloom("runs", "--limit", "1").err
    table = turnloom("runs").out.splitlines()
    assert table[0].split() == "run workflow status started last event events user app".split()
    assert table[1].split()[:3] == [latest, "Chat", "finished"]


async def begin(store: Path, folder: str, count: int) -> list[str]:
    async with Loom(store=str(store)) as app:
        return [(await app.start(folder)).id for _ in range(count)]


def test_a_prefix_of_several_runs_names_them(turnloom: Call, chat: str, tmp_path: Path) -> None:
    letters = 32  # of which ids are made, so two of one more share their first
    runs = anyio.run(
        begin, tmp_path / ".turnloom" / "turnloom.db", str(tmp_path / chat), letters + 1
    )
    prefix = Counter(run[0] for run in runs).most_common(1)[0][0]
    done = turnloom("explain", prefix, code=2)
    assert repr(prefix) in done.err
    assert sum(run in done.err for run in runs if run.startswith(prefix)) > 1


def test_explanations_are_for_people_and_for_programs(turnloom: Call, sit: Sit, chat: str) -> None:
    turnloom("run", chat)
    turn = json.loads(turnloom("explain", "last", "--turn", "1", "--agent", "Critic", "--json").out)
    assert (turn["turn"], turn["agent"], turn["verified"]) == (4, "Critic", True)
    assert "".join(each["text"] for each in turn["segments"]) == turn["prompt"]
    shown = turnloom("explain", "last", "--turn", "4")
    for part in ("context_variables.done", "█", "Judge."):
        assert part in shown.out
    variable = json.loads(
        turnloom("explain", "last", "--variable", "done", "--at", "3", "--json").out
    )
    assert (variable["value"], variable["at"]) == (False, 3)
    assert "trigger:done[0]" in turnloom("explain", "last", "--variable", "done").out
    assert "'done'" in turnloom("explain", "last", "--variable", "dune", code=2).err
    assert "done" in turnloom("explain", "last", "--route", "4").out
    assert "999" in turnloom("explain", "last", "--route", "999", code=2).err
    turnloom("explain", "last", "--turn", "1", "--route", "1", code=2)
    timeline = turnloom("explain", "last").out
    assert "turn 4" in timeline and "--variable NAME" in timeline
    seat = sit("explain", "last", "--turn", "4")
    assert seat.end() == 0 and "\x1b[" in seat.seen
    plain = re.sub(r"\x1b\[[\d;]*m", "", seat.seen)
    assert all(len(line) <= 120 for line in plain.splitlines())


def test_what_is_withheld_is_shown_with_its_reason(turnloom: Call) -> None:
    turnloom("run", INTERVIEW, ENVIRONMENT="production")
    shown = turnloom("explain", "last", "--turn", "1").out
    assert "suppressed" in shown and "ENVIRONMENT=production" in shown


def test_as_a_module_it_says_how_to_call_it_so(tmp_path: Path, chat: str) -> None:
    words = [sys.executable, "-m", "turnloom", "run", chat]
    done = subprocess.run(words, cwd=tmp_path, env=surroundings({}), capture_output=True, text=True)
    assert "-m turnloom explain" in done.stdout


def test_a_full_disk_is_said_in_a_sentence(warm: Warm, chat: str, tmp_path: Path) -> None:
    line = f"turnloom run {chat} --quiet && turnloom log last > /dev/full"
    done = warm.shell(line, tmp_path, surroundings({}))
    assert done.code == 1 and "Traceback" not in done.out
    assert "Error: The output cannot be written: No space left on device." in done.out


def test_a_reader_that_leaves_is_no_trouble(warm: Warm, chat: str, tmp_path: Path) -> None:
    line = f"turnloom run {chat} | head -n 1; turnloom explain last --json | head -c 9"
    done = warm.shell(line, tmp_path, surroundings({}))
    assert done.code == 0 and "Traceback" not in done.out and "BrokenPipe" not in done.out


def test_a_store_in_memory_promises_nothing(turnloom: Call, chat: str) -> None:
    done = turnloom("run", chat, "--store", "memory")
    assert "finished" in done.out and "explain" not in done.out
    assert msgspec.json.decode(turnloom("runs", "--json").out) == []
