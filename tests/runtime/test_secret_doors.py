"""Doors by which text comes in or a secret could go out that few runs have."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from tests.support import stage
from tests.support.folders import write_folder
from tests.support.hooked import told
from tests.support.programs import begin, drive, make_world
from turnloom import Answer, ContextSlice, Flow, InvalidArtifact, Loom, Task
from turnloom.agents.spec import ToolCall
from turnloom.board.spec import FilterConfig, artifact_type
from turnloom.testing import FakeEnvironment, ScriptedEngine

KEY = "canary-K-0123456789"
MARK, TEXT = "⟨secret:key⟩", "⟨secret :key⟩"
SOURCE = {"type": "environment", "env_var": "CANARY_KEY"}
DEFINITIONS = {"key": {"type": "string", "secret": True, "source": SOURCE}}
# A secret that no agent is shown.
OTHER, OTHER_MARK, OTHER_TEXT = "canary-O-9876543210", "⟨secret:other⟩", "⟨secret :other⟩"
BOTH = {
    **DEFINITIONS,
    "other": {**DEFINITIONS["key"], "source": SOURCE | {"env_var": "CANARY_OTHER"}},
}

FILES = {
    "orchestrator.yaml": "max_turns: 1",
    "agents.yaml": "A: {system_message: Use it., context: {sources: [{provider: notes}]}}",
    "context_variables.yaml": """
        definitions:
          key: {type: string, secret: true, source: {type: environment, env_var: CANARY_KEY}}
          seen: {type: string, source: {type: derived, triggers: [
            {type: function, function: look}]}}
        agents: {A: {variables: [key, seen]}}
        """,
    "derivations.py": f"""
        from turnloom.variables.spec import UNCHANGED, derivation

        @derivation
        def look(event, values):
            return "{MARK}" if event.kind == "agent.text" else UNCHANGED
        """,
    "tools.yaml": "tools: [{agent: A, file: code.py, function: use}]",
    "code.py": "from tests.support import stage\ndef use(given: str): stage.kept['given'] = given",
    "providers.py": f"""
        from turnloom import ContextSlice

        async def notes(request):
            return ContextSlice([{{"note": "{KEY} and {MARK}"}}])
        """,
}


@pytest.mark.parametrize("begun_in", ["production", "test"])
async def test_a_secret_that_a_gate_kept_from_a_run_is_not_opened_later(
    begun_in: str, tmp_path: Path
) -> None:
    stage.clear()
    tasks: list[Task] = []

    async def engine(task: Task) -> Answer:
        tasks.append(task)
        calls = () if task.exchanges else (ToolCall("use", {"given": f"{KEY} and {MARK}"}),)
        return Answer("Done.", calls=calls)

    env = {"CANARY_KEY": KEY, "ENVIRONMENT": begun_in}
    first = make_world(engine, env=env)
    run = await begin(first, write_folder(tmp_path, FILES))
    world = replace(first, environment=FakeEnvironment({"CANARY_KEY": KEY}))
    await drive(world, run)
    shown = MARK if begun_in == "production" else KEY
    assert stage.kept["given"] == f"{shown} and {TEXT}"
    assert tasks[0].context.items == [{"note": f"{shown} and {TEXT}"}] or (
        tasks[0].context.items[0]["content"] == f'{{"note":"{shown} and {TEXT}"}}'
    )
    events = await world.read(run)
    assert told(events, "context.changed")[-1].value == TEXT
    assert not any(KEY in repr(event) for event in events)


@artifact_type(name="canary.Note")
class Note(BaseModel):
    """What comes from outside."""

    text: str = ""


class Clerk:
    """An engine that notes its tasks."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    async def __call__(self, task: Task) -> None:
        self.tasks.append(task)


@pytest.fixture
async def app(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("CANARY_KEY", KEY)
    monkeypatch.setenv("CANARY_OTHER", OTHER)
    async with Loom(store="memory") as app:
        yield app


async def test_names_of_artifacts_hold_no_marks(app: Loom) -> None:
    board = app.board()
    with pytest.raises(InvalidArtifact):
        await board.publish(Note(), id=MARK)
    with pytest.raises(InvalidArtifact):
        await board.publish(Note(), correlation_id=MARK)
    made = await board.publish(Note(text=MARK), partition=MARK)
    assert (made.payload, made.partition) == ({"text": TEXT}, TEXT)


@pytest.mark.parametrize("is_shown", [True, False])
async def test_a_provider_is_given_what_its_agent_is_shown(app: Loom, is_shown: bool) -> None:
    given: list[Any] = []

    async def notes(request: Any) -> ContextSlice:
        found, _ = await request.board.query_artifacts(FilterConfig())
        given.extend(each.payload["text"] for each in (*request.inputs, *found))
        return ContextSlice([{"note": f"{each}, {MARK}"} for each in given[:1]])

    agents = {"A": {"variables": ["key"]}} if is_shown else {}
    board = app.board(variables={"definitions": BOTH, "agents": agents})
    board.agent("A").consumes(Note).with_context(notes).with_engines(clerk := Clerk())
    await board.publish(Note(text=f"{KEY}, {OTHER}, {MARK}"))
    await board.run_until_idle(timeout=60)
    # A mark that a provider was given as text is text when it gives it back.
    assert given == [f"{KEY if is_shown else MARK}, {OTHER_MARK}, {TEXT}"] * 2
    kept = KEY if is_shown else TEXT
    assert clerk.tasks[0].context.items == [{"note": f"{kept}, {OTHER_TEXT}, {TEXT}, {TEXT}"}]


async def test_a_message_hook_that_changes_nothing_changes_nothing(tmp_path: Path) -> None:
    """What it was given holds a mark, which is text when it gives it back."""
    files = {
        "orchestrator.yaml": f"initial_message: It is {KEY}.\nmax_turns: 1",
        "agents.yaml": "A: {system_message: Listen.}",
        "context_variables.json": json.dumps({"definitions": DEFINITIONS}),
        "hooks.yaml": """
            hooks:
            - {hook_type: process_last_received_message, hook_agent: A, filename: code.py,
               function: same}
            """,
        "code.py": "def same(message): return message",
    }
    world = make_world(ScriptedEngine({"A": ["Done."]}), env={"CANARY_KEY": KEY})
    run = await begin(world, write_folder(tmp_path, files))
    await drive(world, run)
    (frame,) = told(await world.read(run), "frame.assembled")
    assert frame.history.count == 1


def longest(current: str, given: str) -> str:
    """The longer of two texts."""
    return max(current, given, key=len)


class Kept(BaseModel, frozen=True):
    """A state whose field is reduced."""

    text: Annotated[str, longest] = ""


async def test_steps_and_reducers_are_given_the_values_of_secrets(app: Loom) -> None:
    seen: list[str] = []

    async def write(state: Kept) -> dict[str, str]:
        return {"text": f"{KEY} and {MARK}"}

    async def look(state: Kept) -> dict[str, str]:
        seen.append(state.text)
        return {"text": "x" * (len(state.text) - 1)}  # longer than what is on record

    async def again(state: Kept) -> None:
        seen.append(state.text)

    flow = Flow("keep", Kept, variables={"definitions": DEFINITIONS})
    outcome = await app.run(flow.start_with(write).then(look).finally_(again), Kept())
    assert seen == [f"{KEY} and {TEXT}"] * 2
    assert not any(KEY in repr(event) for event in await app.history.events(outcome.run_id))


@pytest.mark.parametrize("begun_in", ["production", "test"])
async def test_a_step_is_not_given_a_secret_that_a_gate_kept_from_its_run(
    begun_in: str, tmp_path: Path
) -> None:
    seen: list[str] = []

    async def write(state: Kept) -> dict[str, str]:
        return {"text": KEY}

    async def look(state: Kept) -> None:
        seen.append(state.text)

    flow = Flow("keep", Kept, variables={"definitions": DEFINITIONS})
    flow = flow.start_with(lambda state: None, name="begin").await_approval("boss")
    flow = flow.then(write).finally_(look)
    store, env = str(tmp_path / "turnloom.db"), {"CANARY_KEY": KEY}
    begun = FakeEnvironment(env | {"ENVIRONMENT": begun_in})
    async with Loom(store=store, environment=begun) as app:
        run_id = (await app.run(flow, Kept())).run_id
    async with Loom(store=store, environment=FakeEnvironment(env)) as app:
        app.register_flow(flow)
        run = await app.resume(run_id)
        await run.answer(None, "approve", user_id="boss")
        assert (await run.outcome()).status == "finished"
    assert seen == [MARK if begun_in == "production" else KEY]


async def test_a_secret_is_put_in_where_its_own_variable_stands(tmp_path: Path) -> None:
    """Another variable that holds its value shows a mark, also to an agent that is shown both."""
    tasks: list[Task] = []

    async def engine(task: Task) -> Answer:
        tasks.append(task)
        return Answer("Done.")

    note = {"type": "string", "source": {"type": "static", "value": f"It was {KEY}."}}
    shown = {"A": {"variables": ["key", "note"]}}
    files = {
        "orchestrator.yaml": "max_turns: 1",
        "agents.yaml": "A: {system_message: Use it.}",
        "context_variables.json": json.dumps(
            {"definitions": DEFINITIONS | {"note": note}, "agents": shown}
        ),
    }
    world = make_world(engine, env={"CANARY_KEY": KEY})
    await drive(world, await begin(world, write_folder(tmp_path, files)))
    prompt = tasks[0].system
    assert prompt.count(KEY) == 1 and f"It was {MARK}." in prompt
