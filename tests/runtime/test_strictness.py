"""Invalid context variables: refused, or set aside for good with one warning that says it all."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import INTERVIEW, write_folder
from tests.support.logs import essence
from tests.support.world import World
from turnloom import DefinitionError, Event, Loom, Run
from turnloom.conversation.events import RouteDecided
from turnloom.errors import UsageError
from turnloom.explain.spec.variable import VariableExplained
from turnloom.log.events import RunStarted
from turnloom.log.spec import RunKey
from turnloom.testing import ScriptedEngine
from turnloom.variables.events import ContextLoaded
from turnloom.variables.spec import BAKED_IN, BASE

VARIABLES = INTERVIEW["context_variables.yaml"]

# Ways to be invalid: by what is declared, and by not being readable at all.
INVALID: dict[str, dict[str, str | bytes]] = {
    "source": {"context_variables.yaml": VARIABLES.replace("type: static", "type: runtime")},
    "syntax": {"context_variables.yaml": "definitions: [\n"},
    "key twice": {"context_variables.yaml": VARIABLES + "          Asker: {}\n"},
    "two files": {"context_variables.yaml": VARIABLES, "context_variables.json": "{}"},
    "encoding": {"context_variables.yaml": b"definitions: {\xff}"},
}
LINES = {"Asker": ["What is it?", "NEXT"]}


def folder_with(where: Path, files: dict[str, Any]) -> str:
    """The interview with some files in place of the right ones."""
    texts = {name: text for name, text in files.items() if isinstance(text, str)}
    folder = write_folder(where, {**INTERVIEW, **texts})
    for name, raw in files.items():
        if isinstance(raw, bytes):
            Path(folder, name).write_bytes(raw)
    return folder


def app(store: Path | str = "memory", *, strict: bool) -> Loom:
    return Loom(store=str(store), engine=ScriptedEngine(LINES), strict=strict)


async def until_asked(run: Run, questions: int = 1) -> list[Event]:
    """What happens until the run waits for an answer to so many questions."""
    events: list[Event] = []
    async for event in run.events():
        events.append(event)
        asked = [each for each in events if each.kind == "question.asked"]
        if event.kind == "run.paused" and len(asked) == questions:
            break
    return events


def apart(events: list[Event]) -> list[Any]:
    """A log as tests compare it, but for the context, which holds the run's own id."""
    return [entry for entry in essence(events) if entry[1] != "context.loaded"]


@pytest.mark.parametrize("how", INVALID)
async def test_strict_refuses_and_otherwise_one_warning_has_the_report(
    how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = folder_with(tmp_path, INVALID[how])
    async with app(strict=True) as strict:
        with pytest.raises(DefinitionError) as refused:
            await strict.start(folder)
    assert caplog.records == []
    async with app(strict=False) as lenient:
        events = await until_asked(await lenient.start(folder))
    (warning,) = caplog.records
    assert (warning.levelno, warning.name) == (logging.WARNING, "turnloom.check")
    assert refused.value.diagnostics
    assert all(str(problem) in warning.getMessage() for problem in refused.value.diagnostics)
    assert events[0].data.set_aside == ("context_variables",)
    (loaded,) = [event.data for event in events if isinstance(event.data, ContextLoaded)]
    assert {each.name for each in loaded.values} == {*BASE, *BAKED_IN}


async def test_a_condition_that_names_what_nobody_has_never_holds_and_says_why(
    tmp_path: Path,
) -> None:
    folder = folder_with(tmp_path, INVALID["source"])
    async with app(strict=False) as lenient:
        run = await lenient.start(folder)
        events = await until_asked(run)
        told = await lenient.explain.variable(run.id, "known")
    route = [event.data for event in events if isinstance(event.data, RouteDecided)][-1]
    assert [each.fired for each in route.considered] == [False, True]
    assert isinstance(told, VariableExplained)
    assert not told.present and told.suppressed
    assert route.considered[0].why_not.endswith(told.suppressed)


@pytest.mark.parametrize("how", INVALID)
async def test_a_run_without_its_variables_goes_on_so_in_a_strict_process(
    how: str, tmp_path: Path
) -> None:
    """Also when the file has been corrected meanwhile; and just as if nobody had interrupted it."""
    folder = folder_with(tmp_path, INVALID[how])
    async with app(strict=False) as only:
        run = await only.start(folder)
        await until_asked(run)
        await run.answer(None, "It.")
        uninterrupted = apart(await until_asked(run, 2))
    async with app(tmp_path / "runs.db", strict=False) as first:
        run = await first.start(folder)
        await until_asked(run)
    write_folder(tmp_path, INTERVIEW)
    async with app(tmp_path / "runs.db", strict=True) as second:
        run = await second.resume(run.id)
        await run.answer(None, "It.")
        assert apart(await until_asked(run, 2)) == uninterrupted


async def test_problems_of_other_files_refuse_the_start_with_everything_said(
    tmp_path: Path,
) -> None:
    rules = INTERVIEW["handoffs.yaml"].replace("${known} == True", 'user_id is "u1"')
    folder = folder_with(tmp_path, {**INVALID["syntax"], "handoffs.yaml": rules})
    async with app(strict=False) as lenient:
        with pytest.raises(DefinitionError) as refused:
            await lenient.start(folder)
    codes = {(each.file, each.code) for each in refused.value.diagnostics}
    assert codes == {("Flow/context_variables.yaml", "W002"), ("Flow/handoffs.yaml", "W023")}


async def test_what_is_valid_begins_as_ever(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, INTERVIEW)
    async with app(strict=True) as strict, app(strict=False) as lenient:
        refusing = apart(await until_asked(await strict.start(folder)))
        assert apart(await until_asked(await lenient.start(folder))) == refusing


async def test_a_run_that_has_its_variables_is_not_restored_without_them(tmp_path: Path) -> None:
    texts = {"agents.yaml": "Asker: {}", "context_variables.yaml": "definitions: {x: 5}"}
    started = RunStarted("Flow", "1", "", str(tmp_path / "Flow"), texts, {})
    world = World(engine=ScriptedEngine({}))
    event = Event("start", "run1", 1, world.clock.now(), started.kind, "driver", started)
    await world.store.log.append(RunKey("local", "run1"), [event], 0)
    async with world.open(strict=False) as lenient:
        with pytest.raises(DefinitionError):
            await lenient.history.definition("run1")


UNUSED = "definitions: {x: {type: string, source: {type: derived}}}"


async def test_a_workflow_with_warnings_begins_and_they_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = {"agents.yaml": "Asker: {}", "context_variables.yaml": UNUSED}
    async with app(strict=True) as strict:
        await strict.start(write_folder(tmp_path, files))
    (warning,) = caplog.records
    assert "'Flow'" in warning.getMessage()
    assert "Flow/context_variables.yaml:1: W066" in warning.getMessage()


async def is_strict(folder: str, **settings: Any) -> bool:
    """Whether an app refuses what is invalid."""
    async with Loom(store="memory", engine=ScriptedEngine(LINES), **settings) as app:
        try:
            await app.start(folder)
        except DefinitionError:
            return True
        return False


@pytest.mark.parametrize(
    ("text", "strict"), [("0", False), (" Off ", False), ("no", False), ("1", True), ("yes", True)]
)
async def test_the_environment_says_how_strict(
    text: str, strict: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_with(tmp_path, INVALID["syntax"])
    monkeypatch.setenv("TURNLOOM_STRICT", text)
    assert await is_strict(folder) is strict
    assert await is_strict(folder, strict=not strict) is not strict


@pytest.mark.parametrize("value", ["false", 1, 0])
async def test_strict_is_true_or_false(
    value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path, INTERVIEW)
    with pytest.raises(UsageError) as wrong:
        await is_strict(folder, strict=value)
    assert "'strict'" in str(wrong.value)
    for text in ("maybe", " "):
        monkeypatch.setenv("TURNLOOM_STRICT", text)
        with pytest.raises(UsageError) as wrong:
            await is_strict(folder)
        assert "'strict'" in str(wrong.value)
