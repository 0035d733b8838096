"""A secret is in prompts that expose it, and nowhere else: no log, event, error, snapshot, file."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from tests.support.logged import logged
from tests.support.programs import begin, drive, make_world
from tests.support.world import World
from turnloom.adapters.sqlite import SqliteStore
from turnloom.agents.spec import Answer, Task
from turnloom.errors import DocumentsUnavailable, MissingContext
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import FakeDocuments, FakeEnvironment
from turnloom.variables.ports import Lookup

TOKEN = 'tok-"7\n\u2028ü'
PASSWORD = "correct horse"
NESTED = {"user": "root-of-all", "keys": ["key-number-one", 424242]}
SECRETS = (TOKEN, PASSWORD, "root-of-all", "key-number-one", "424242")

# It doubles with each turn.
GROWING = """
          asked: {type: string, source: {type: derived, triggers: [
            {type: function, function: peek}]}}"""
FILES = {
    "orchestrator.yaml": "initial_agent: Teller\nmax_turns: 4",
    "agents.yaml": "Teller: {system_message: Use it.}\nOther: {system_message: You may not.}",
    "context_variables.yaml": """
        definitions:
          token: {type: string, secret: true, source: {type: environment, env_var: TOKEN}}
          word: {type: string, secret: true, source:
            {type: database, collection: users, search_by: user_id, field: word}}
          nested: {type: object, secret: true, source:
            {type: database, collection: users, search_by: user_id, field: nested}}
          note: {type: string, source:
            {type: database, collection: users, search_by: user_id, field: note}}
          echo: {type: string, source: {type: derived, triggers: [
            {type: agent_text, agent: Other, match: {regex: '(?s)I heard (.*)'}, capture: 1}]}}
          asked: {type: string, source: {type: derived, triggers: [
            {type: function, function: peek}]}}
        agents:
          Teller: {variables: [token, word, nested, note]}
          Other: {variables: [note, echo]}
        """,
    "handoffs.yaml": """
        - {source_agent: Teller, target_agent: Other, handoff_type: after_work}
        - {source_agent: Other, target_agent: Teller, handoff_type: after_work}
        """,
    "derivations.py": """
        from turnloom.variables.spec import UNCHANGED, derivation

        @derivation
        def peek(event, values):
            return f"{values} {event}" if event.kind == "agent.text" else UNCHANGED
        """,
}


class Echo:
    """An engine that says what it was shown, and at last fails with it."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    async def __call__(self, task: Task) -> Answer:
        self.tasks.append(task)
        if len(self.tasks) == 4:
            raise RuntimeError(f"{task.prompt} {TOKEN} {PASSWORD}")
        return Answer(f"I heard {TOKEN} and {PASSWORD!r} and {task.prompt}")


def documents() -> FakeDocuments:
    found = FakeDocuments()
    note = f"as I said: {TOKEN}"
    document = {"user_id": "u1", "word": PASSWORD, "nested": NESTED, "note": note}
    found.add("users", document)
    return found


def leaks(text: str) -> list[str]:
    forms = {secret: (secret, repr(secret)[1:-1], as_json(secret)) for secret in SECRETS}
    return [secret for secret, each in forms.items() if any(form in text for form in each)]


def written(where: Path) -> str:
    """All that the store's files hold."""
    files = [path for path in where.rglob("store.db*") if path.is_file()]
    assert files
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def as_json(text: str) -> str:
    return text.replace('"', '\\"').replace("\n", "\\n")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return write_folder(tmp_path, FILES)


@pytest.fixture(autouse=True)
def all_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, no line of the program's log holds a secret."""
    caplog.set_level(logging.DEBUG)
    yield
    assert leaks(logged(caplog)) == []


async def test_a_secret_is_in_the_prompts_that_expose_it_and_nowhere_else(
    folder: str, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "store.db", codec())
    engine = Echo()
    world = make_world(engine, store, {"TOKEN": TOKEN}, documents=documents())
    run = await begin(world, folder)
    await drive(world, run)
    events = await store.log.read(RunKey("local", run))
    for event in events:
        assert leaks(codec().encode(event).decode()) == [], event.kind
        assert leaks(repr(event)) == [], event.kind
    await store.aclose()
    assert leaks(written(tmp_path)) == []

    assert [event.kind for event in events].count("run.failed") == 1
    teller, other = engine.tasks[0], engine.tasks[1]
    assert '- token: "tok-\\"7\\n\\u2028ü"' in teller.system
    assert f'- word: "{PASSWORD}"' in teller.system
    assert '- nested: {"keys":["key-number-one",424242],"user":"root-of-all"}' in teller.system
    assert '- note: "as I said: ⟨secret:token⟩"' in teller.system
    assert leaks(other.prompt) == []


async def test_what_is_kept_of_a_long_run_holds_no_secret(tmp_path: Path) -> None:
    async def chat(task: Task) -> Answer:
        return Answer(f"I heard {TOKEN} and {PASSWORD!r}")

    store = SqliteStore(tmp_path / "store.db", codec())
    world = make_world(chat, store, {"TOKEN": TOKEN}, documents=documents())
    long = {**FILES, "orchestrator.yaml": "initial_agent: Teller\nmax_turns: 200"}
    long["context_variables.yaml"] = long["context_variables.yaml"].replace(GROWING, "")
    run = await begin(world, write_folder(tmp_path, long))
    await drive(world, run)
    kept = await store.snapshots.load(RunKey("local", run))
    await store.aclose()
    assert kept is not None and leaks(kept[1].decode()) == []
    assert leaks(written(tmp_path)) == []


async def test_a_secret_is_read_again_after_a_restart(folder: str) -> None:
    first = make_world(Echo(), env={"TOKEN": TOKEN}, documents=documents())
    run = await begin(first, folder)
    engine = Echo()
    world = replace(first, engine=engine)
    await drive(world, run)
    assert '- token: "tok-' in engine.tasks[0].system
    assert all(leaks(repr(event)) == [] for event in await world.read(run))


async def test_a_secret_that_is_gone_stops_the_run_until_it_is_back(folder: str) -> None:
    """A mark is not the value: nobody is asked with it."""
    first = make_world(Echo(), env={"TOKEN": TOKEN}, documents=documents())
    run = await begin(first, folder)
    engine = Echo()
    world = replace(first, engine=engine, environment=FakeEnvironment({}))
    with pytest.raises(MissingContext) as missing:
        await drive(world, run)
    assert len(missing.value.problems) == 1 and "'token'" in missing.value.problems[0]
    assert not engine.tasks
    back = replace(world, environment=FakeEnvironment({"TOKEN": TOKEN}))
    await drive(back, run)
    assert '- token: "tok-' in engine.tasks[0].system


async def test_what_the_run_has_was_decided_when_it_began(folder: str) -> None:
    """Going on in production does not take a secret away that the run began with."""
    first = make_world(Echo(), env={"TOKEN": TOKEN}, documents=documents())
    run = await begin(first, folder)
    engine = Echo()
    now = FakeEnvironment({"TOKEN": TOKEN, "ENVIRONMENT": "production"})
    world = replace(first, engine=engine, environment=now)
    await drive(world, run)
    assert '- token: "tok-' in engine.tasks[0].system


async def start(world: World, where: Path, definition: str) -> str:
    files = {
        "agents.yaml": "A: {system_message: Hi.}",
        "context_variables.yaml": f"definitions: {{x: {definition}}}",
    }
    return await begin(world, write_folder(where, files))


@pytest.mark.parametrize("type", ["integer", "object", "array", "number"])
async def test_a_secret_that_cannot_be_read_is_not_told_in_the_error(
    type: str, tmp_path: Path
) -> None:
    world = make_world(Echo(), env={"X": PASSWORD})
    source = "{type: environment, env_var: X}"
    with pytest.raises(MissingContext) as refused:
        await start(
            world, tmp_path, f"{{type: {type}, secret: true, required: true, source: {source}}}"
        )
    assert leaks(str(refused.value)) == []
    assert "⟨secret:x⟩" in str(refused.value)


class Locked(FakeDocuments):
    """Documents that do not answer."""

    async def newest(self, lookup: Lookup) -> Any:
        raise DocumentsUnavailable(f"The database of {lookup.collection!r} is locked.")


async def test_a_required_variable_without_a_value_begins_nothing(tmp_path: Path) -> None:
    world = make_world(Echo(), documents=Locked())
    source = "{type: database, collection: C, search_by: user_id, field: f}"
    with pytest.raises(MissingContext) as refused:
        await start(world, tmp_path, f"{{type: string, required: true, source: {source}}}")
    (problem,) = refused.value.problems
    assert all(each in problem for each in ("'x'", "The database of 'C' is locked.", "C.f"))
    assert await world.store.log.runs("local", 1) == []
