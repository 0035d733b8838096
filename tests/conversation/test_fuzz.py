"""Folders that went wrong in any way give diagnostics that stand in their files, never more."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conversation.mistakes import RIGHT
from tests.conversation.talks import examine, first_decision
from tests.support.checks import examined
from tests.support.folders import INTERVIEW, write_folder
from turnloom.adapters.files import parse
from turnloom.errors import Diagnostic

SCRIPT = {"agents": {"Asker": ["NEXT"]}, "user": ["Hi."]}


class Pairs(list[Any]):
    """A mapping that may hold a key twice."""


def tree(value: Any) -> Any:
    """A value that can be written with its mistakes."""
    if isinstance(value, dict):
        return Pairs([[key, tree(each)] for key, each in value.items()])
    return [tree(each) for each in value] if isinstance(value, list) else value


def written(node: Any, depth: int = 0) -> str:
    """A tree as JSON, one entry per line."""
    indent = "\n" + " " * (depth + 1)
    if isinstance(node, Pairs):
        parts = [f"{indent}{json.dumps(key)}: {written(each, depth + 1)}" for key, each in node]
        return "{" + ",".join(parts) + "}"
    if isinstance(node, list):
        return "[" + ",".join(f"{indent}{written(each, depth + 1)}" for each in node) + "]"
    return json.dumps(node)


def documents(files: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for file, text in files.items():
        document, _ = parse(file, dedent(text))
        assert document is not None
        found[file.replace(".yaml", ".json")] = tree(document.value)
    return found


SOUND = [
    {**documents(INTERVIEW), "script.json": tree(SCRIPT)},
    documents(RIGHT),
]
WORDS = [
    *["user", "terminate", "workflow", "A", "Asker", "Nobody", "user_id", "done", "known", ""],
    *["name", "type", "source", "definitions", "agents", "match", "static", "derived", "value"],
    *["agent_text", "environment", "condition", "after_work", "handoff_rules", "context_variables"],
    *["${known} == True", "known is true", "x" * 200, "(a", "\u2028", "${", "Begin."],
]
values = st.sampled_from(
    [None, True, False, 0, -1, 1.5, 10**30, [], [[]], Pairs(), Pairs([["name", "A"]]), *WORDS]
)


def nodes(node: Any) -> list[tuple[Any, int]]:
    """Every place in a tree: what holds it, and where."""
    found: list[tuple[Any, int]] = []
    if isinstance(node, list):
        for index, entry in enumerate(node):
            found.append((node, index))
            found += nodes(entry[1] if isinstance(node, Pairs) else entry)
    return found


def copied(node: Any) -> Any:
    if isinstance(node, Pairs):
        return Pairs([[key, copied(each)] for key, each in node])
    return [copied(each) for each in node] if isinstance(node, list) else node


def mutate(draw: Any, files: dict[str, Any]) -> None:
    """One mistake, somewhere."""
    file = draw(st.sampled_from(sorted(files)))
    places = nodes(files[file])
    if not places or draw(st.integers(0, 30)) == 0:
        files[file] = copied(draw(values))
        return
    holder, index = draw(st.sampled_from(places))
    keyed = isinstance(holder, Pairs)
    match draw(st.sampled_from(["delete", "rename", "retype", "double", "graft"])):
        case "delete":
            del holder[index]
        case "rename" if keyed:
            holder[index][0] = draw(st.sampled_from([*WORDS, holder[index][0][:-1]]))
        case "double":
            holder.append(copied(holder[index]))
        case "graft":
            other = draw(st.sampled_from(sorted(files)))
            graft = copied(files[other])
            holder[index] = [holder[index][0], graft] if keyed else graft
        case _:
            new = copied(draw(values))
            holder[index] = [holder[index][0], new] if keyed else new


@st.composite
def folders(draw: Any) -> dict[str, str]:
    """The files of a sound folder after a few mistakes."""
    files = {name: copied(value) for name, value in draw(st.sampled_from(SOUND)).items()}
    for _ in range(draw(st.integers(1, 4))):
        mutate(draw, files)
    return {file: written(each) for file, each in files.items()}


def check_told(files: dict[str, str], problems: list[Diagnostic]) -> None:
    """Every diagnostic is whole, and stands in a file that is there, or says that one is not."""
    lines = {f"Flow/{file}": text.count("\n") + 1 for file, text in files.items()}
    for problem in problems:
        assert 1 <= problem.line <= lines.get(problem.file, 1), str(problem)
        assert problem.message.strip() and problem.code.startswith("W0")
        assert problem.severity in ("error", "warning")
        assert "\n" not in str(problem), "a diagnostic is one line"
        assert len(str(problem)) < 2000


def test_the_sound_folders_are_sound() -> None:
    for sound in SOUND:
        _, problems = examine({file: written(each) for file, each in sound.items()})
        assert problems == []


@pytest.mark.doors
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(folders())
def test_no_folder_gives_more_than_diagnostics(files: dict[str, str]) -> None:
    conversation, problems = examine(files)
    check_told(files, problems)
    errors = [problem for problem in problems if problem.severity == "error"]
    assert (conversation is None) == bool(errors)
    assert examine(files)[1] == problems
    if conversation is not None:
        assert first_decision(conversation) is not None


@pytest.mark.doors
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(files=folders())
def test_no_folder_on_disk_gives_more_than_diagnostics(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]
) -> None:
    where = Path(tmp_path_factory.mktemp("fuzz"))
    is_right, problems = examined(write_folder(where, files))
    check_told(files, problems)
    assert (not is_right) == any(problem.severity == "error" for problem in problems)
