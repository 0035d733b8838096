"""Functions that derive variables: asked in bounded time, and whatever they do, the run goes on."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import stage
from tests.support.folders import write_folder
from tests.support.programs import begin, drive, make_world
from turnloom.errors import DefinitionError
from turnloom.log.spec import Event
from turnloom.testing import ScriptedEngine

HEAD = (
    "from tests.support import stage\nfrom turnloom.variables.spec import UNCHANGED, derivation\n"
)
PLAIN = {
    "orchestrator.yaml": "human_in_the_loop: true",
    "agents.yaml": "A: {system_message: Hi.}",
}


def files(code: str, **types: str) -> dict[str, str]:
    """A workflow whose variables are derived by functions of their name."""
    definitions = {
        name: {
            "type": type,
            "source": {"type": "derived", "triggers": [{"type": "function", "function": name}]},
        }
        for name, type in types.items()
    }
    variables = json.dumps({"definitions": definitions}, indent=1)
    return {**PLAIN, "context_variables.json": variables, "derivations.py": HEAD + code}


async def run_to_rest(where: Path, code: str, **types: str) -> list[Event]:
    """The log of a run in which A says one thing and the user is asked."""
    world = make_world(ScriptedEngine({"A": ["Hello."]}))
    run = await begin(world, write_folder(where, files(code, **types)))
    await drive(world, run)
    return await world.read(run)


def data(events: Sequence[Event], kind: str) -> list[Any]:
    return [event.data for event in events if event.kind == kind]


async def refusal(where: Path, body: str, type: str = "boolean") -> str:
    """Why what a function does is refused; the run goes on in any case."""
    code = f"""
@derivation
def x(event, values):
    if event.kind != "agent.text":
        return UNCHANGED
    {body}
"""
    events = await run_to_rest(where, code, x=type)
    assert events[-1].kind == "run.paused"
    assert data(events, "context.changed") == []
    (refused,) = data(events, "context.refused")
    assert (refused.name, refused.writer) == ("x", "trigger:x[0]")
    said = next(event for event in events if event.kind == "agent.text")
    told = next(event for event in events if event.kind == "context.refused")
    assert (told.cause, told.actor) == (said.seq, "trigger:x[0]")
    return refused.reason


@pytest.mark.parametrize(
    ("body", "type", "says"),
    [
        ("raise RuntimeError('No idea.')", "boolean", "RuntimeError: No idea."),
        ("raise TimeoutError('Too slow.')", "boolean", "TimeoutError: Too slow."),
        ("raise SystemExit(3)", "boolean", "SystemExit: 3"),
        ("values['x'] = True", "boolean", "TypeError: "),
        ("return 'yes'", "boolean", "'yes'"),
        ("return 5", "string", "5"),
        ("return {1, 2}", "array", "{1, 2}"),
        ("return object", "object", "object"),
        ("return {'at': __import__('datetime').date(2026, 1, 1)}", "object", "'x'"),
        ("return {1: 2}", "object", "{1: 2}"),
        ("return [(1, 2)]", "array", "'x'"),
        ("return float('nan')", "number", "'x'"),
        ("return chr(0xd800)", "string", "'x'"),
        ("a = []; a.append(a); return a", "array", "'x'"),
    ],
)
async def test_what_a_function_may_not_do_is_a_recorded_refusal(
    body: str, type: str, says: str, tmp_path: Path
) -> None:
    assert says in await refusal(tmp_path, body, type)


async def test_a_function_that_does_not_come_back_is_left_behind(tmp_path: Path) -> None:
    body = """from time import monotonic
    end = monotonic() + 60
    while not stage.kept["over"].wait(0.01) and monotonic() < end:
        pass"""
    over = stage.kept["over"] = threading.Event()
    try:
        assert "1.0 s" in await refusal(tmp_path, body)
    finally:
        over.set()


async def test_a_function_is_asked_of_what_happens_and_sees_the_values_of_the_moment(
    tmp_path: Path,
) -> None:
    code = """
@derivation
def n(event, values):
    return (values["n"] or 0) + 1

@derivation
def heard(event, values):
    return [*(values["heard"] or []), event.kind]
"""
    events = await run_to_rest(tmp_path, code, n="integer", heard="array")
    assert events[-1].kind == "run.paused", "something follows the last thing that is said"
    last = data(events, "context.changed")[-2:]
    assert {change.name: change.value for change in last} == {
        "n": 3,
        "heard": ["run.started", "agent.text", "turn.finished"],
    }


async def test_functions_that_answer_each_other_come_to_rest(tmp_path: Path) -> None:
    code = """
@derivation
def a(event, values):
    return (values["b"] or 0) + 1 if event.kind != "run.started" else UNCHANGED

@derivation
def b(event, values):
    return (values["a"] or 0) + 1 if event.kind != "run.started" else UNCHANGED
"""
    events = await run_to_rest(tmp_path, code, a="integer", b="integer")
    assert events[-1].kind == "run.paused"
    changes = [(change.name, change.value) for change in data(events, "context.changed")]
    assert changes == [("a", 1), ("b", 2), ("a", 3), ("b", 4)]


async def test_a_trigger_and_a_function_may_set_one_variable_by_one_event(tmp_path: Path) -> None:
    code = "@derivation\ndef x(event, values):\n    return event.kind\n"
    declared = files(code, x="string")
    word = {"type": "agent_text", "agent": "A", "match": {"contains": "Hello"}, "value": "word"}
    declared["context_variables.json"] = declared["context_variables.json"].replace(
        '"triggers": [', f'"triggers": [{json.dumps(word)}, '
    )
    world = make_world(ScriptedEngine({"A": ["Hello."]}))
    run = await begin(world, write_folder(tmp_path, declared))
    await drive(world, run)
    events = await world.read(run)
    values = [change.value for change in data(events, "context.changed")]
    assert values == ["run.started", "word", "agent.text", "turn.finished"]


async def test_nothing_follows_the_end(tmp_path: Path) -> None:
    """A run that fails, with a function that always has something to say."""
    code = "@derivation\ndef x(event, values):\n    return (values['x'] or 0) + 1\n"
    world = make_world(ScriptedEngine({"A": [RuntimeError("No.")]}))
    run = await begin(world, write_folder(tmp_path, files(code, x="integer")))
    await drive(world, run)
    assert (await world.read(run))[-1].kind == "run.failed"


async def test_a_function_must_be_there_and_be_registered(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as missing:
        await run_to_rest(tmp_path / "1", "", x="boolean")
    (problem,) = missing.value.diagnostics
    assert (problem.code, problem.file) == ("W043", "Flow/context_variables.json")
    assert problem.line == 10
    with pytest.raises(DefinitionError) as unregistered:
        await run_to_rest(tmp_path / "2", "def x(event, values):\n    return True\n", x="boolean")
    (problem,) = unregistered.value.diagnostics
    assert (problem.code, problem.line) == ("W044", 10)
    assert "@derivation" in problem.remedy


async def test_a_function_changes_nothing_behind_the_log(tmp_path: Path) -> None:
    """What it is given is its own, however deep."""
    code = """
@derivation
def seen(event, values):
    if event.kind == "context.changed" and event.data.name == "things":
        event.data.value["a"].append("by the function")
        event.data.value.clear()
    if values.get("things"):
        values["things"]["a"].append("by the function")
        assert values["things"] == {"a": [1]}
        return len(values)
    return UNCHANGED
"""
    declared = json.loads(files(code, seen="integer", things="object")["context_variables.json"])
    declared["definitions"]["things"]["source"] = {"type": "derived", "default": None}
    hooks = {"trigger": "before_chat", "agent": None, "file": "h.py", "function": "put"}
    folder = {
        **files(code, seen="integer"),
        "context_variables.json": json.dumps(declared),
        "tools.json": json.dumps({"lifecycle_tools": [hooks]}),
        "h.py": "def put(context_variables): context_variables['things'] = {'a': [1]}",
    }
    world = make_world(ScriptedEngine({"A": ["Hello."]}))
    run = await begin(world, write_folder(tmp_path, folder))
    await drive(world, run)
    events = await world.read(run)
    assert data(events, "context.refused") == []
    assert [(each.name, each.value) for each in data(events, "context.changed")] == [
        ("things", {"a": [1]}),
        ("seen", 9),
    ]
