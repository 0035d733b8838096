"""Answers that are recorded once and given again."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.folders import write_folder
from tests.support.raising import raising
from turnloom import Answer, Engine, Loom, Publication, Task, ToolCall, UsageError
from turnloom.adapters.pydantic_ai import PydanticAIEngine
from turnloom.agents.spec import Usage
from turnloom.assembly.spec import Message, Transcript
from turnloom.errors import EngineError
from turnloom.testing import LoopbackModel, RecordedEngine, ScriptedEngine

FILES = {
    "orchestrator.yaml": "initial_message: Add two and three.",
    "agents.yaml": "Adder: {system_message: Add., model: 'any'}",
    "tools.yaml": "tools: [{agent: Adder, file: sums.py, function: add}]",
    "sums.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
}
LINES = [Answer(calls=(ToolCall("add", {"a": 2, "b": 3}),)), Answer("It is 5.", Usage(7, 3))]


def nobody() -> Engine:
    raise AssertionError("Nobody is to be asked.")


def task(text: str = "Hi.", **more: Any) -> Task:
    transcript = Transcript([Message(1, "user", text)])
    return Task("run", "Ann", 1, 1, "run/t1/model", "Be Ann.", transcript, **more)


async def converse(engine: Engine, folder: str) -> list[Any]:
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder)
        heard: list[str] = []
        with run.listening(lambda piece: heard.append(piece.text)):
            await run.finished()
        return [*[event.data for event in await app.history.events(run.id)][2:], "".join(heard)]


async def record(file: Path, *lines: str, asked: tuple[str, ...]) -> None:
    engine = ScriptedEngine({"Ann": lines})
    async with RecordedEngine(file, lambda: engine) as recorded:
        for number, text in enumerate(asked, 1):
            await recorded(msgspec.structs.replace(task(text), number=number))


async def test_a_run_is_recorded_and_then_goes_without_its_model(tmp_path: Path) -> None:
    folder, file = write_folder(tmp_path, FILES), tmp_path / "traffic.json"
    async with LoopbackModel(LINES) as model:
        make = partial(PydanticAIEngine, "any", base_url=model.url)
        async with RecordedEngine(file, make) as engine:
            first = await converse(engine, folder)
    async with RecordedEngine(file, nobody) as engine:
        second = await converse(engine, folder)
        engine.assert_complete()
    assert [type(each) for each in first] == [type(each) for each in second]
    assert [each for each in second if getattr(each, "usage", None)] == [
        each for each in first if getattr(each, "usage", None)
    ]
    assert first[-1] == second[-1] == "It is 5."
    assert [each["request"]["agent"] for each in json.loads(file.read_text())] == ["Adder"] * 2


async def test_secrets_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2-hunter2")
    variables = """
        definitions:
          token: {type: string, secret: true, source: {type: environment, env_var: TOKEN}}
        agents: {Adder: {variables: [token]}}
        """
    folder = write_folder(tmp_path, FILES | {"context_variables.yaml": variables})
    file, seen = tmp_path / "traffic.json", list[Task]()

    async def repeat(task: Task) -> Answer:
        seen.append(task)
        return Answer(f"I know {task.system}.")

    async with RecordedEngine(file, lambda: repeat) as engine:
        await converse(engine, folder)
    assert "hunter2" in seen[0].system
    assert "hunter2" not in file.read_text("utf-8")
    assert "⟨secret:token⟩" in file.read_text("utf-8")
    monkeypatch.setenv("TOKEN", "another-token")
    async with RecordedEngine(file, nobody) as engine:
        assert (await converse(engine, folder))[-2].kind == "run.finished"


async def test_what_was_not_recorded_is_told_from_the_nearest(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    await record(file, "One.", "Two.", asked=("Count to one.", "Say two."))
    async with RecordedEngine(file, nobody) as engine:
        with pytest.raises(EngineError) as missing:
            await engine(task("Count to ten."))
    told = str(missing.value)
    assert str(file) in told and "1 of 2" in told and "`messages`" in told
    assert "one." in told and "ten." in told


async def test_the_same_request_gets_one_answer_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    await record(file, "One.", "Two.", asked=("Count.", "Count."))
    async with RecordedEngine(file, nobody) as engine:
        assert (await engine(task("Count."))).text == "One."
        with raising(EngineError, str(file), "1"):
            engine.assert_complete()
        assert (await engine(task("Count."))).text == "Two."
        engine.assert_complete()
        with raising(EngineError, str(file), "2"):
            await engine(task("Count."))


async def test_answers_come_back_whole(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    answers = [
        Answer("Hm.", Usage(1, 2), (ToolCall("add", {"a": [None, 0.5]}, "id"), ToolCall("rest"))),
        Answer(output=[]),
        Answer(output=False),
        Answer(""),
        Answer("Five.", model="m-1", added=("Go on.", "Answer again.")),
    ]
    engine = ScriptedEngine({"Ann": answers})
    async with RecordedEngine(file, lambda: engine) as recorded:
        for number in range(1, len(answers) + 1):
            await recorded(msgspec.structs.replace(task(), number=number))
    async with RecordedEngine(file, nobody) as recorded:
        assert [await recorded(task()) for _ in answers] == answers


async def test_artifacts_are_no_data(tmp_path: Path) -> None:
    engine = ScriptedEngine({"Ann": [Answer(artifacts=(Publication(task()),))]})
    with pytest.raises(EngineError):
        async with RecordedEngine(tmp_path / "traffic.json", lambda: engine) as recorded:
            await recorded(task())


async def test_nothing_is_written_when_the_test_fails(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    with pytest.raises(ZeroDivisionError):
        async with RecordedEngine(file, lambda: ScriptedEngine({"Ann": ["One."]})) as engine:
            await engine(task())
            raise ZeroDivisionError
    assert not file.exists()


async def test_an_empty_record_and_one_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    async with RecordedEngine(file, lambda: ScriptedEngine({})):
        pass
    async with RecordedEngine(file, nobody) as engine:
        with raising(EngineError, str(file)):
            await engine(task())
    file.write_text('{"no": "list"}')
    with raising(UsageError, str(file)):
        async with RecordedEngine(file, nobody):
            pass


async def test_an_answer_that_was_spoiled_is_told_by_its_place(tmp_path: Path) -> None:
    file = tmp_path / "traffic.json"
    await record(file, "One.", "Two.", asked=("Hi.", "Ho."))
    file.write_text(file.read_text("utf-8").replace('"Two."', "2"), "utf-8")
    async with RecordedEngine(file, nobody) as engine:
        assert await engine(task("Hi.")) == Answer("One.")
        with raising(EngineError, str(file), "2"):
            await engine(task("Ho."))
