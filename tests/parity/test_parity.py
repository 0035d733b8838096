"""Nothing declared is inert: every field has an effect that is seen, or is refused."""

import asyncio
import inspect
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from copy import deepcopy
from dataclasses import fields
from datetime import UTC, datetime
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import turnloom
from tests.parity import effects
from tests.parity.answer_effects import ANSWER_EFFECTS
from tests.parity.component_effects import COMPONENT_EFFECTS
from tests.parity.context_effects import CONTEXT_EFFECTS
from tests.parity.durability_effects import DURABILITY_SETTINGS
from tests.parity.effects import Effect, put
from tests.parity.guard_effects import GUARD_EFFECTS
from tests.parity.observer_effects import OBSERVER_SETTINGS
from tests.parity.runs import Seen, problems, see
from tests.parity.selection_effects import SELECTION_EFFECTS
from tests.parity.source_effects import SOURCE_EFFECTS
from tests.parity.sweep_effects import SWEEP_SETTINGS
from tests.parity.text_effects import TEXT_EFFECTS
from tests.parity.tool_effects import TOOL_EFFECTS
from tests.parity.upkeep_effects import UPKEEP_SETTINGS
from tests.parity.window_effects import WINDOW_SETTINGS
from tests.support.folders import write_folder
from turnloom import (
    Answer,
    Chunking,
    DefinitionError,
    Document,
    Loom,
    RagCollection,
    Task,
    Weights,
    wiring,
)
from turnloom.adapters.memory import MemoryStore
from turnloom.agents.spec import DeclaredServer, ProviderChoice
from turnloom.app.loom import LoomSettings
from turnloom.board.spec import FilterConfig, TagFilter
from turnloom.errors import UsageError
from turnloom.kernel.models import Declared
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import (
    FakeClock,
    FakeEntropy,
    FakeEnvironment,
    FakeToolServer,
    LoopbackModel,
)
from turnloom.variables.spec import BAKED_IN, BASE, Trigger, Variables
from turnloom.variables.spec.triggers import Setting, TextTrigger
from turnloom.wiring import Settings

pytestmark = pytest.mark.repeats

# Made by the check from what is declared, or what others are made from; nobody writes them down.
MADE = {Variables, Trigger, Setting, TextTrigger, ProviderChoice}

EFFECTS = (
    effects.EFFECTS
    | TOOL_EFFECTS
    | CONTEXT_EFFECTS
    | SOURCE_EFFECTS
    | GUARD_EFFECTS
    | ANSWER_EFFECTS
    | SELECTION_EFFECTS
    | COMPONENT_EFFECTS
    | TEXT_EFFECTS
)

# What can be said and is so anyway: an agent takes its n-th turn once.
TRUE_ANYWAY = {"AgentTurnCount.once"}


def models() -> Iterator[type[Declared]]:
    """Every model of the package that a user writes down."""
    root = Path(turnloom.__path__[0])
    for file in [*root.glob("*/spec.py"), *root.glob("*/spec/*.py")]:
        parts = file.relative_to(root).with_suffix("").parts
        import_module(".".join(("turnloom", *parts)).removesuffix(".__init__"))
    waiting = [Declared]
    while waiting:
        for model in waiting.pop().__subclasses__():
            waiting.append(model)
            if ".spec" in model.__module__ and model not in MADE:
                yield model


MODELS = {model.__name__: model for model in models()}


# Effects that no run in memory can show: the tests that show them.
PROGRAMS = "tests.runtime.test_servers"
STARTED = f"{PROGRAMS}:test_a_program_is_started_in_the_folder_with_its_own_environment"
REACHED = f"{PROGRAMS}:test_a_program_is_reached_with_the_headers_that_are_declared"
MOVED = "tests.cli.test_moved_in"
CACHED = "tests.guards.test_budget:test_cached_input_counts_at_its_own_price"
ELSEWHERE = {
    "Price.cached": CACHED,
    "Price.cache_write": CACHED,
    "DeclaredServer.name": f"{PROGRAMS}:test_tools_of_servers_are_offered_called_and_on_record",
    "DeclaredServer.agent": f"{PROGRAMS}:test_tools_of_servers_are_offered_called_and_on_record",
    "DeclaredServer.tools": f"{PROGRAMS}:test_tools_of_servers_are_offered_called_and_on_record",
    "DeclaredServer.command": STARTED,
    "Handoff.description": f"{MOVED}:test_a_handoff_has_a_description_in_graphs_and_explanations",
    "Tool.tool_type": f"{MOVED}:test_a_key_without_an_effect_is_a_warning",
    "UiResponse.ui_hidden": f"{MOVED}:test_a_key_without_an_effect_is_a_warning",
    "DeclaredServer.env": STARTED,
    "DeclaredServer.url": REACHED,
    "DeclaredServer.headers": REACHED,
    "DeclaredServer.timeout_s": f"{PROGRAMS}:test_a_program_that_never_answers_is_not_waited_for",
    **dict.fromkeys(
        [f"Chunking.{each}" for each in Chunking.model_fields],
        "tests.assembly.test_collections:test_what_is_declared_of_a_collection_makes_a_difference",
    ),
    **dict.fromkeys(
        [f"FilterConfig.{each}" for each in FilterConfig.model_fields],
        "tests.board.test_filters:test_each_field_of_a_filter_makes_a_difference",
    ),
    **dict.fromkeys(
        [f"TagFilter.{each}" for each in TagFilter.model_fields],
        "tests.board.test_filters:test_each_field_of_a_tag_filter_makes_a_difference",
    ),
    "Agent.labels": "tests.parity.forms.talks:labels",
    "Agent.max_concurrency": "tests.parity.forms.talks:limits",
    "RunBudget.wall_time": "tests.guards.test_budget:test_no_turn_begins_when_the_time_is_over",
    **dict.fromkeys(
        [f"Weights.{each}" for each in Weights.model_fields],
        "tests.guards.test_loops:test_signs_add_up_by_their_weights",
    ),
}


def test_every_field_that_can_be_declared_has_an_effect() -> None:
    declared = {f"{name}.{key}" for name, model in MODELS.items() for key in keys_of(model)}
    assert declared - TRUE_ANYWAY == {*EFFECTS, *ELSEWHERE}


@pytest.mark.parametrize("field", ELSEWHERE)
def test_an_effect_that_is_shown_elsewhere_is_shown_there(field: str) -> None:
    module, _, test = ELSEWHERE[field].partition(":")
    source = inspect.getsource(getattr(import_module(module), test))
    assert field.partition(".")[2] in source + str(getattr(import_module(module), "CLOCK", ""))


def keys_of(model: type[Declared]) -> set[str]:
    """The keys that are written down for a model."""
    return {each.alias or name for name, each in model.model_fields.items()}


def test_a_field_that_somebody_adds_is_missed_here() -> None:
    class Planted(Declared):
        colour: str

        __module__ = "turnloom.planted.spec"

    assert Planted in set(models())


SEEN: dict[tuple[str, ...], Seen] = {}


async def seen_before(
    places: pytest.TempPathFactory, base: dict[str, Any], explained: tuple[str, ...]
) -> Seen:
    """A run of a workflow as it is, which several fields are compared with."""
    key = (json.dumps(base), *explained)
    if key not in SEEN:
        SEEN[key] = await see(places.mktemp("before"), base, *explained)
    return SEEN[key]


@pytest.mark.parametrize("name", EFFECTS)
async def test_a_field_makes_the_difference_that_is_said(
    name: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    effect = EFFECTS[name]
    base, changed = effect.documents()
    before = await seen_before(tmp_path_factory, base, effect.explained)
    after = await see(tmp_path / "after", changed, *effect.explained)
    assert before.codes == [], "the workflow as it is must be right"
    assert effect.look(before) == effect.before
    assert effect.look(after) == effect.after
    assert effect.before != effect.after


@pytest.mark.parametrize("name", EFFECTS)
async def test_the_difference_is_made_by_that_field_of_that_model(
    name: str, tmp_path: Path
) -> None:
    """Only one value differs, and what holds it is checked by the model that is named."""
    effect, (model, _, field) = EFFECTS[name], name.partition(".")
    base, changed = effect.documents()
    assert effect.at[-1] == field
    put(base, effect.at, None)
    put(changed, effect.at, None)
    assert base == changed
    assert await keys_known_beside(effect, tmp_path) in (keys_of(MODELS[model]), FOREIGN)


KNOWN: dict[str, set[str]] = {}
# The keys beside a field of a file whose other keys another system may read.
FOREIGN: set[str] = set()


async def keys_known_beside(effect: Effect, where: Path) -> set[str]:
    """The keys that the check knows where the field stands; it lists them where it finds
    another."""
    base = deepcopy(effect.documents()[0])
    put(base, (*effect.at[:-1], "?"), 1)
    key = json.dumps(base)
    if key not in KNOWN:
        (problem,) = [each for each in await problems(where, base) if "'?'" in each.message]
        known = set(problem.remedy.rpartition(": ")[2].removesuffix(".").split(", "))
        assert problem.code == "W010" or (problem.code, effect.at[0]) == ("W015", "ui_config")
        KNOWN[key] = known if problem.code == "W010" else FOREIGN
    return KNOWN[key]


async def most_at_once(folder: str, expected: int = 1, **settings: Any) -> int:
    """How many of three runs of an app are driven at the same time, at least as many as expected
    unless it waits for ever."""
    going = most = 0
    enough = asyncio.Event()

    async def slow(task: Task) -> Answer:
        nonlocal going, most
        going += 1
        most = max(most, going)
        if most == expected:
            enough.set()
        await enough.wait()
        for _ in range(20):  # whoever may be driven beside this one gets that far
            await asyncio.to_thread(int)
        going -= 1
        return Answer("Done.")

    async with Loom(engine=slow, **settings) as app:
        runs = [await app.start(folder) for _ in range(3)]
        for run in runs:
            await run.finished()
    return most


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A workflow of one agent, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    for each in fields(Settings):
        monkeypatch.delenv(f"TURNLOOM_{each.name.upper()}", raising=False)
    return write_folder(tmp_path, {"agents.yaml": "A: {system_message: Hi.}"})


def there(path: str) -> bool:
    return Path(path).exists()


def configure(text: str) -> None:
    Path("turnloom.toml").write_text(text, "utf-8")


async def slots_of_the_app(folder: str) -> None:
    for slots in (1, 2):
        assert await most_at_once(folder, slots, store="memory", slots=slots) == slots


async def store_of_the_app(folder: str) -> None:
    for store in ("memory", "here/runs.db"):
        await most_at_once(folder, store=store)
        assert there("here/runs.db") == (store != "memory")
    own = MemoryStore(codec())
    async with Loom(store=own, engine=quiet) as app:
        run = await app.start(folder)
        await run.finished()
    assert await own.log.read(RunKey("local", run.id)), "a store of the program's own stays open"


async def engine_of_the_app(folder: str) -> None:
    async def answers(word: str) -> str:
        async def engine(task: Task) -> Answer:
            return Answer(word)

        async with Loom(store="memory", engine=engine) as app:
            run = await app.start(folder)
            await run.finished()
            (said,) = [e.data.text async for e in run.events() if e.kind == "agent.text"]
            return said

    assert await answers("one") == "one"
    assert await answers("two") == "two"


async def tenant_slots_of_the_app(folder: str) -> None:
    for slots in (1, 2):
        assert await most_at_once(folder, slots, store="memory", tenant_slots=slots) == slots


async def tenant_slots_of_a_file(folder: str) -> None:
    configure('tenant_slots = 2\nstore = "memory"\n')
    assert await most_at_once(folder, 2) == 2


async def slots_of_a_file(folder: str) -> None:
    for slots in (1, 3):
        configure(f'slots = {slots}\nstore = "memory"\n')
        assert await most_at_once(folder, slots) == slots


async def store_of_a_file(folder: str) -> None:
    configure('store = "there/runs.db"\n')
    await most_at_once(folder)
    assert there("there/runs.db")
    assert not there(wiring.DEFAULT_STORE)


STORED = """
definitions:
  word:
    type: string
    source: {type: database, collection: users, search_by: user_id, field: word}
"""


def keep(folder: str, word: str) -> str:
    """A database of documents in a folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(Path(folder, "documents.db"))) as file, file:
        file.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, doc TEXT)")
        document = json.dumps({"user_id": "local", "word": word})
        file.execute("INSERT INTO users (doc) VALUES (?)", (document,))
    return f"sqlite:{folder}"


async def first_word(folder: str, **settings: Any) -> tuple[Any, str]:
    """What a variable that is read from a database begins with, and what is noted of it."""
    declared = {"agents.yaml": "A: {system_message: Hi.}", "context_variables.yaml": STORED}
    folder = write_folder(Path(folder), declared, "Stored")

    async def engine(task: Task) -> Answer:
        return Answer("Done.")

    async with Loom(store="memory", engine=engine, **settings) as app:
        run = await app.start(folder)
        (loaded,) = [e.data.values async for e in run.events() if e.kind == "context.loaded"]
    (word,) = [each for each in loaded if each.name == "word"]
    return word.value, word.note


async def documents_of_the_app(folder: str) -> None:
    for name in ("one", "two"):
        assert await first_word(folder, documents=keep(name, name)) == (name, "")


async def documents_of_a_file(folder: str) -> None:
    for name in ("one", "two"):
        configure(f'documents = "{keep(name, name)}"\n')
        assert await first_word(folder) == (name, "")


def misplaced(**settings: Any) -> str:
    """Why artifacts or beliefs cannot be kept where they are said to be."""
    with pytest.raises(UsageError) as refused:
        Loom(store="memory", **settings)
    return str(refused.value)


async def artifacts_of_the_app(folder: str) -> None:
    assert "'mysql'" in misplaced(artifacts="mysql://here")


async def artifacts_of_a_file(folder: str) -> None:
    configure('artifacts = "mongodb://here"\n')
    assert "'mongodb'" in misplaced()


async def beliefs_of_the_app(folder: str) -> None:
    assert "'mysql'" in misplaced(beliefs="mysql://here")


async def beliefs_of_a_file(folder: str) -> None:
    configure('beliefs = "mongodb://here"\n')
    assert "'mongodb'" in misplaced()


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """A database that somebody else writes to."""
    with closing(sqlite3.connect(Path(folder, "documents.db"), isolation_level=None)) as file:
        file.execute("BEGIN EXCLUSIVE")
        yield


async def patience_of_the_app(folder: str) -> None:
    keep("here", "one")
    with locked("here"):
        value, note = await first_word(folder, documents="sqlite:here", documents_timeout=0.01)
    assert value is None and "0.01" in note


async def patience_of_a_file(folder: str) -> None:
    configure(f'documents = "{keep("here", "one")}"\ndocuments_timeout = 0.02\n')
    with locked("here"):
        value, note = await first_word(folder)
    assert value is None and "0.02" in note


async def values_of_invalid(folder: str, **settings: Any) -> set[str] | None:
    """The variables of a run whose context variables are invalid, or nothing if it is refused."""
    write_folder(Path(folder).parent, {"context_variables.yaml": "definitions: {x: 5}"})

    async def engine(task: Task) -> Answer:
        return Answer("Done.")

    async with Loom(store="memory", engine=engine, **settings) as app:
        try:
            run = await app.start(folder)
        except DefinitionError:
            return None
        (loaded,) = [e.data.values async for e in run.events() if e.kind == "context.loaded"]
    return {each.name for each in loaded}


async def strictness_of_the_app(folder: str) -> None:
    assert await values_of_invalid(folder, strict=True) is None
    assert await values_of_invalid(folder, strict=False) == {*BASE, *BAKED_IN}


async def strictness_of_a_file(folder: str) -> None:
    assert await values_of_invalid(folder) is None
    configure("strict = false\n")
    assert await values_of_invalid(folder) == {*BASE, *BAKED_IN}


class Notes(RagCollection):
    """A collection that the settings say the place of."""


async def note(**settings: Any) -> list[str]:
    """Put a note into a collection, and give the files of collections that there are then."""
    async with Loom(store="memory", **settings) as app:
        await app.collection(Notes).add([Document("a", "A note.")])
    return sorted(glob("*.db"))


async def vectors_of_the_app(folder: str) -> None:
    assert await note(vectors="sqlite:one.db") == ["one.db"]
    assert await note(vectors="sqlite:two.db") == ["one.db", "two.db"]


async def vectors_of_a_file(folder: str) -> None:
    configure('vectors = "sqlite:one.db"\n')
    assert await note() == ["one.db"]
    configure('vectors = "sqlite:two.db"\n')
    assert await note() == ["one.db", "two.db"]


async def asked_for(folder: str, **settings: Any) -> list[str]:
    """The models that are asked for in a run."""
    async with LoopbackModel(["Done."]) as model:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", model.url)
            patch.setenv("OPENAI_API_KEY", "key")
            async with Loom(store="memory", **settings) as app:
                await (await app.start(folder)).finished()
    return [request.body["model"] for request in model.requests]


async def model_of_the_app(folder: str) -> None:
    assert await asked_for(folder, model="openai-chat:one") == ["one"]
    assert await asked_for(folder, model="openai-chat:two") == ["two"]


async def model_of_a_file(folder: str) -> None:
    configure('model = "openai-chat:one"\n')
    assert await asked_for(folder) == ["one"]
    configure('model = "openai-chat:two"\n')
    assert await asked_for(folder) == ["two"]


async def asking_engine_of_a_file(folder: str) -> None:
    configure('engine = "ag3"\n')
    with pytest.raises(UsageError) as refused:
        Loom()
    assert "'ag3'" in str(refused.value)
    configure('engine = "ag2"\nmodel = "openai-chat:one"\n')
    assert await asked_for(folder) == ["one"]


async def quiet(task: Task) -> Answer:
    return Answer("Fine.")


async def clock_of_the_app(folder: str) -> None:
    clock = FakeClock(datetime(2031, 2, 3, tzinfo=UTC))
    async with Loom(store="memory", engine=quiet, clock=clock) as app:
        assert (await (await app.start(folder)).finished()).at == clock.time


async def entropy_of_the_app(folder: str) -> None:
    async with Loom(store="memory", engine=quiet, entropy=FakeEntropy("mine")) as app:
        assert (await app.start(folder)).id == "mine1"


def declare_flag(folder: str) -> None:
    Path(folder, "context_variables.yaml").write_text(
        "definitions: {flag: {type: string, source: {type: environment, env_var: FLAG}}}\n"
    )


async def environment_of_the_app(folder: str) -> None:
    declare_flag(folder)
    environment = FakeEnvironment({"FLAG": "mine"})
    async with Loom(store="memory", engine=quiet, environment=environment) as app:
        run = await app.start(folder)
        await run.finished()
        explained = await app.explain.variable(run.id, "flag")
        assert "mine" in str(explained)


async def connection_of_the_app(folder: str) -> None:
    declare_server(folder)
    server, asked = FakeToolServer(), list[str]()

    def connect(declared: DeclaredServer, root: str) -> FakeToolServer:
        asked.append(declared.name)
        return server

    async with Loom(store="memory", engine=quiet, connect=connect) as app:
        await (await app.start(folder)).finished()
    assert asked == ["mine"]


def declare_server(folder: str) -> None:
    Path(folder, "tools.yaml").write_text("mcp_servers: [{name: mine, command: [nothing]}]\n")


APP: dict[str, Callable[[str], Any]] = {
    "Loom.connect": connection_of_the_app,
    "Loom.clock": clock_of_the_app,
    "Loom.entropy": entropy_of_the_app,
    "Loom.environment": environment_of_the_app,
    **SWEEP_SETTINGS,
    **OBSERVER_SETTINGS,
    **WINDOW_SETTINGS,
    **DURABILITY_SETTINGS,
    **UPKEEP_SETTINGS,
    "Loom.store": store_of_the_app,
    "Loom.slots": slots_of_the_app,
    "Loom.tenant_slots": tenant_slots_of_the_app,
    "Settings.tenant_slots": tenant_slots_of_a_file,
    "Loom.engine": engine_of_the_app,
    "Settings.store": store_of_a_file,
    "Settings.slots": slots_of_a_file,
    "Loom.artifacts": artifacts_of_the_app,
    "Settings.artifacts": artifacts_of_a_file,
    "Loom.beliefs": beliefs_of_the_app,
    "Settings.beliefs": beliefs_of_a_file,
    "Loom.documents": documents_of_the_app,
    "Loom.documents_timeout": patience_of_the_app,
    "Settings.documents": documents_of_a_file,
    "Settings.documents_timeout": patience_of_a_file,
    "Loom.strict": strictness_of_the_app,
    "Settings.strict": strictness_of_a_file,
    "Loom.vectors": vectors_of_the_app,
    "Settings.vectors": vectors_of_a_file,
    "Loom.model": model_of_the_app,
    "Settings.model": model_of_a_file,
    "Settings.engine": asking_engine_of_a_file,
}


def test_every_setting_and_option_of_the_app_has_an_effect() -> None:
    options = [f"Loom.{name}" for name in LoomSettings.__annotations__]
    settings = [f"Settings.{each.name}" for each in fields(Settings)]
    assert {*options, *settings} == set(APP)


@pytest.mark.parametrize("name", APP)
async def test_a_setting_does_what_it_says(name: str, alone: str) -> None:
    await APP[name](alone)
