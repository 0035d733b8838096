"""Two type checkers agree: a program that uses all of the face is right, and mistakes are wrong."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnloom
from tests.typing.face import READ_BY_THE_RUNTIME
from tests.typing.program import main
from tests.typing.served import main as served

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TOOLS = Path(sys.executable).parent
PROGRAMS = ("program.py", "served.py")
FILES = (*PROGRAMS, "mistakes.py")
USED = ("AgentBuilder", "AgentStep", "Board", "BoardHandle", "BoardView", "Context")
USED += ("Definition", "Explanations", "Flow", "History", "Loom", "LoomView", "Path", "Run")
USED += ("StepContext",)


def wrong_lines() -> set[tuple[str, int]]:
    lines = (HERE / "mistakes.py").read_text("utf-8").splitlines()
    return {("mistakes.py", n) for n, line in enumerate(lines, 1) if line.endswith("# wrong")}


def pyright() -> set[tuple[str, int]]:
    words = [f"{TOOLS}/pyright", "--pythonpath", sys.executable, "-p", str(HERE), "--outputjson"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found: Any = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"] == len(FILES)
    problems = found["generalDiagnostics"]
    return {(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in problems}


def mypy() -> set[tuple[str, int]]:
    paths = [f"tests/typing/{file}" for file in FILES]
    place = ("--python-executable", sys.executable, "--cache-dir", str(ROOT / ".mypy_cache"))
    words = [f"{TOOLS}/mypy", "--strict", *place, "--config-file=", "--no-error-summary"]
    words += ["--explicit-package-bases", "--hide-error-context"]
    done = subprocess.run([*words, *paths], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found = re.findall(r"^tests/typing/(\w+\.py):(\d+): error: ", done.stdout, re.MULTILINE)
    return {(file, int(line)) for file, line in found}


@pytest.mark.doors
@pytest.mark.parametrize("checker", [pyright, mypy], ids=["pyright", "mypy"])
def test_a_checker_finds_the_mistakes_and_nothing_else(checker: Any) -> None:
    assert checker() == wrong_lines()


async def test_the_program_runs() -> None:
    await main()
    await served()


def _attributes() -> Iterator[tuple[str, str]]:
    texts = [(HERE / each).read_text("utf-8") for each in PROGRAMS]
    for node in (node for text in texts for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value), node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "def", node.name


def test_the_program_uses_all_of_the_face() -> None:
    used = set(_attributes())
    assert {name for of, name in used if of == "t"} == set(turnloom.__all__)
    names = {name for _, name in used}
    for kind in USED:
        members = {n: each for n, each in vars(getattr(turnloom, kind)).items() if n[0] != "_"}
        calls = {name for name, each in members.items() if callable(each)}
        runtime = {each.partition(".")[2] for each in READ_BY_THE_RUNTIME}
        assert calls - runtime <= names, kind


def test_the_program_casts_nothing() -> None:
    for each in PROGRAMS:
        text = (HERE / each).read_text("utf-8")
        assert not re.search(r"\bcast\(|type: ignore|pyright:|\bAny\b", text)
