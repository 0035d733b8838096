"""Engines that answer one after the other, in conversations and flows as on boards."""

from pathlib import Path
from typing import Any

import pytest

from tests.parity.forms.stages import FILES, Ask, Parcel, pack, talk, walk, write
from turnloom import Answer, Loom, Task, ToolCall
from turnloom.adapters.memory import MemoryStore
from turnloom.agents.spec import Exchange
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import CrashingScheduler, CrashingStore, FakeClock, FakeEntropy, Fuse

CODE = (
    FILES["work.py"]
    + """
from turnloom.log.spec import RunKey
from tests.parity import test_chains as chains

def drafts(task): return chains.drafts(task)
def calls_first(task): return chains.calls_first(task)
def packs(task): return chains.packs(task)
def hands_over(task): return chains.hands_over(task)
async def says_it_slowly(task): return await chains.says_it_slowly(task)
def final(task): return chains.final(task)
def final_parcel(task): return chains.final_parcel(task)
"""
)

# What the last engines were told by those before them, newest last.
TOLD: list[tuple[Exchange, ...]] = []


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    TOLD.clear()


def drafts(task: Task) -> Answer:
    """A draft that is no data, whatever form is asked for."""
    return Answer("a draft")


def calls_first(task: Task) -> Answer:
    """Calls the tool, and then drafts."""
    if not task.exchanges:
        return Answer("let me look", calls=(ToolCall("pack", {}),))
    return Answer("looked")


def packs(task: Task) -> Answer:
    """A draft that is data."""
    return Answer(output={"item": "draft"})


def hands_over(task: Task) -> Answer:
    """Chooses the handoff that is offered."""
    return Answer("over", calls=(ToolCall(task.tools[0].name, {}),))


async def says_it_slowly(task: Task) -> Answer:
    """Says it while it is made."""
    task.say("half")
    return Answer("half a draft")


def final(task: Task) -> Answer:
    """Says so."""
    TOLD.append(task.exchanges)
    return Answer("final")


def final_parcel(task: Task) -> Answer:
    """Gives the form that is asked for."""
    TOLD.append(task.exchanges)
    return Answer(output={"item": "final"})


def by(name: str) -> dict[str, str]:
    return {"type": "functions", "file": "work.py", "function": name}


async def in_a_conversation(where: Path, *names: str, **parts: Any) -> Any:
    return await talk(where, {"engines": [*map(by, names)]}, parts, {"work.py": CODE})


class Packs(Ask):
    """A step whose answer is a parcel."""

    output_type = Parcel


class Uses(Ask):
    """A step with a tool."""

    tools = (pack,)


async def test_a_draft_is_told_to_the_next_engine_and_to_nobody_else(tmp_path: Path) -> None:
    talked = await in_a_conversation(tmp_path, "says_it_slowly", "final")
    walked = await walk(Ask().with_engines(says_it_slowly, final))
    for seen in (talked, walked):
        assert seen.data("agent.text", "text") == ["final"]
        assert seen.data("model.answered", "raw") == ["half a draft", ""]
        assert "half" not in seen.heard
    assert TOLD == [(Exchange("half a draft"),)] * 2


async def test_only_the_last_engine_has_to_give_the_form(tmp_path: Path) -> None:
    models = {"Parcel": {"type": "model", "fields": {"item": {"type": "str"}}}}
    outputs = {"models": models, "registry": {"A": "Parcel"}}
    for first, told in (("drafts", "a draft"), ("packs", '{"item":"draft"}')):
        seen = await in_a_conversation(
            tmp_path / first, first, "final_parcel", structured_outputs=outputs
        )
        walked = await walk(Packs().with_engines(globals()[first], final_parcel))
        for each in (seen, walked):
            assert each.data("agent.output", "output") == [{"item": "final"}]
            assert each.data("output.refused", "problem") == []
        assert TOLD[-2:] == [(Exchange(told),)] * 2


async def test_tools_that_a_draft_calls_are_called(tmp_path: Path) -> None:
    tools = {"tools": [{"agent": "A", "file": "work.py", "function": "pack"}]}
    talked = await in_a_conversation(tmp_path, "calls_first", "final", tools=tools)
    walked = await walk(Uses().with_engines(calls_first, final))
    for seen in (talked, walked):
        assert seen.data("tool.returned", "result") == ["packed"]
        assert seen.data("agent.text", "text") == ["final"]
    assert TOLD == [(Exchange("looked"),)] * 2


async def test_a_handoff_that_a_draft_chooses_ends_the_turn(tmp_path: Path) -> None:
    rule = {
        "source_agent": "A",
        "target_agent": "B",
        "handoff_type": "condition",
        "condition_type": "string_llm",
        "condition": "when it is hard",
    }
    agents = {
        "A": {"system_message": "Hi.", "engines": [by("hands_over"), by("final")]},
        "B": {"system_message": "Ho."},
    }
    parts = {"agents": agents, "handoffs": [rule], "orchestrator": {"initial_agent": "A"}}
    seen = await talk(tmp_path, parts=parts, code={"work.py": CODE})
    assert seen.data("turn.started", "agent") == ["A", "B"]
    assert seen.data("agent.text", "text") == ["hello"]
    assert TOLD == []


async def test_message_hooks_rewrite_what_is_said_and_not_what_is_drafted(tmp_path: Path) -> None:
    hook = {
        "hook_type": "process_message_before_send",
        "hook_agent": "A",
        "filename": "work.py",
        "function": "shout",
    }
    seen = await in_a_conversation(tmp_path, "drafts", "final", hooks=[hook])
    assert seen.data("agent.text", "text") == ["FINAL"]
    assert TOLD == [(Exchange("a draft"),)]


async def test_an_engine_that_fails_ends_the_turn(tmp_path: Path) -> None:
    def breaks(task: Task) -> Answer:
        raise RuntimeError("broken")

    seen = await walk(Ask().with_engines(breaks, final))
    assert seen.data("model.failed", "message") == ["broken"]
    assert TOLD == [] and seen.events[-1].kind == "run.failed"


async def test_the_explanation_tells_engines_apart(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {"agents": {"A": {"system_message": "Hi.", "engines": [by("drafts"), by("final")]}}},
        {"work.py": CODE},
    )
    async with Loom(store="memory") as app:
        run = await app.start(folder)
        await run.finished()
        told = str(await app.explain.turn(run.id, 1))
    assert "engine 2" in told and "final" in told


@pytest.mark.repeats
async def test_killed_anywhere_no_engine_is_asked_twice_for_what_is_stored(tmp_path: Path) -> None:
    engines = {"engines": [by("drafts"), by("final")]}
    folder = write(
        tmp_path, {"agents": {"A": {"system_message": "Hi.", **engines}}}, {"work.py": CODE}
    )
    expected, points = await lives(folder)
    assert points > 6
    for kill in range(points):
        assert (await lives(folder, kill))[0] == expected, f"killed after {kill} points"


async def lives(folder: Path, *kills: int) -> tuple[list[Any], int]:
    """What is on record after a run that is killed after so many points."""
    store, clock, entropy = MemoryStore(codec()), FakeClock(), FakeEntropy("run")
    fuse = Fuse()
    for points in (*kills, None):
        fuse, scheduler = Fuse(points), CrashingScheduler(clock)
        async with Loom(
            store=CrashingStore(store, fuse), scheduler=scheduler, clock=clock, entropy=entropy
        ) as app:

            async def script(app: Loom = app) -> None:
                runs = await app.runs()
                run = await (app.resume(runs[0].run) if runs else app.start(folder))
                await run.finished()

            await scheduler.outlives(script())
    (first, _), *_ = await store.log.runs("local", 1000)
    events = await store.log.read(RunKey("local", first.run))
    return [(each.id, each.kind) for each in events if each.kind != "run.resumed"], fuse.passed
