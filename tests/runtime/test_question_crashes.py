"""Kill a run of tools, hooks and questions anywhere: it goes on as if nothing had happened."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.folders import write_folder
from tests.support.lives import Lives
from tests.support.logs import strands
from tests.support.plays import call, every, solo
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec

pytestmark = [pytest.mark.repeats, pytest.mark.doors]

CODE = """
    import asyncio
    from tests.support import stage
    from turnloom import use_ui_tool

    async def slow(n: int, context_variables):
        await stage.enter(context_variables)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        context_variables["slow"] = context_variables.get("slow", 0) + n
        context_variables["last"] = f"slow {n}"
        stage.point()
        return n

    async def fast(n: int, context_variables):
        await stage.enter(context_variables)
        context_variables["fast"] = context_variables.get("fast", 0) + n
        context_variables["last"] = f"fast {n}"
        return n

    async def fail(context_variables):
        await stage.enter(context_variables)
        raise RuntimeError("no luck")

    async def confirm(topic: str, context_variables):
        await stage.enter(context_variables)
        number = await context_variables.once("number", lambda: len(topic))
        first = await use_ui_tool("confirm", {"prompt": f"{topic} {number}?"})
        context_variables["confirmed"] = first["ok"]
        second = await use_ui_tool("confirm", {"prompt": f"Sure about {topic}?"})
        return [first["ok"], second["ok"]]

    async def greet(context_variables):
        await stage.enter(context_variables)
        context_variables["name"] = await use_ui_tool("name", {"prompt": "Your name?"})

    async def check(context_variables):
        await stage.enter(context_variables)
        return await use_ui_tool("check", {"prompt": "Go on?"})
    """
ROUNDS = [
    {"calls": [call("slow", n=1), call("fast", n=2)], "text": "I look it up."},
    {"calls": [call("confirm", topic="it"), call("fast", n=4), call("confirm", topic="them")]},
    {"calls": [call("fail"), call("unknown"), call("slow", n=8)]},
]
HOOKS = [
    {"trigger": "before_chat", "agent": None, "function": "greet"},
    {"trigger": "before_agent", "agent": "B", "function": "check"},
    {"trigger": "after_agent", "agent": "B", "function": "check"},
    {"trigger": "after_chat", "agent": None, "function": "check", "on": "always"},
]
TOOLS = [
    {"agent": "A", "file": "code.py", "function": function}
    for function in ("slow", "fast", "fail", "confirm")
]
VARIABLES = {
    "definitions": {
        "confirmed": {
            "type": "boolean",
            "source": {
                "type": "derived",
                "default": False,
                "triggers": [{"type": "ui_response", "tool": "confirm", "response_key": "ok"}],
            },
        }
    },
    "agents": {"B": {"variables": ["confirmed"]}},
}
RULES = [
    {
        "source_agent": "A",
        "target_agent": "B",
        "handoff_type": "condition",
        "condition": "confirmed is true",
    },
    {"source_agent": "A", "target_agent": "terminate", "handoff_type": "after_work"},
]
FILES = solo(
    CODE,
    agents={"A": {}, "B": {}},
    tools={"tools": TOOLS, "lifecycle_tools": [{"file": "code.py", **hook} for hook in HOOKS]},
    context_variables=VARIABLES,
    handoffs=RULES,
    script={"agents": {"A": [*ROUNDS, "Done."], "B": ["Fine."]}},
)


def person(question: Any) -> Any:
    """Answers each question by what it says, whoever asks it and whenever."""
    return "Ann" if question.tool == "name" else {"ok": "Sure" not in question.prompt}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_folder(Path(tmp_path_factory.mktemp("questions")), FILES)


def check_whole(events: list[Event]) -> None:
    """Everything happened once, in order, and nothing is left open."""
    asked = [each.prompt for each in every(events, "question.asked")]
    assert (asked[0], asked[-3:]) == ("Your name?", ["Go on?"] * 3)
    assert sorted(asked[1:-3]) == ["Sure about it?", "Sure about them?", "it 2?", "them 4?"]
    assert len(every(events, "question.answered")) == len(asked)
    called, closed = every(events, "tool.called"), every(events, "tool.returned")
    assert len(called) == len(closed) + 1 == 7
    assert [each.result for each in closed if each.tool == "confirm"] == [[True, False]] * 2
    values = {each.name: each.value for each in every(events, "context.changed")}
    assert values == {
        "slow": 9,
        "fast": 6,
        "last": "slow 8",
        "confirmed": True,
        "name": "Ann",
    }
    assert events[-1].kind == "run.finished"
    assert len({event.id for event in events}) == len(events)


async def test_the_run_that_nobody_disturbs(folder: str) -> None:
    lives = Lives(folder, person)
    check_whole(await lives.live())
    entered = Counter(key.partition("/")[2] for key in lives.keys)
    # Of tools that are called together, each is entered once more with each answer of its own.
    assert entered["t1/model#2/tool.0"] == entered["t1/model#2/tool.2"] == 3
    assert entered["t1/model#2/tool.1"] == 1
    assert lives.passed > 60


async def test_a_kill_at_every_single_point_changes_nothing(folder: str) -> None:
    whole = Lives(folder, person)
    undisturbed = await whole.live()
    for points in range(whole.passed):
        lives = Lives(folder, person)
        events = await lives.live(points)
        check_whole(events)
        assert strands(events) == strands(undisturbed), f"killed after {points} points"
        assert set(lives.keys) == set(whole.keys)


async def test_a_kill_of_a_run_on_disk(folder: str, tmp_path: Path) -> None:
    whole = Lives(folder, person)
    undisturbed = await whole.live()
    for points in range(0, whole.passed, 8):
        store = SqliteStore(tmp_path / f"{points}.db", codec())
        try:
            events = await Lives(folder, person, store).live(points)
        finally:
            await store.aclose()
        assert strands(events) == strands(undisturbed), f"killed after {points} points"


@settings(max_examples=20)
@given(kills=st.lists(st.integers(0, 90), min_size=2, max_size=5))
def test_any_sequence_of_kills(folder: str, kills: list[int]) -> None:
    check_whole(asyncio.run(Lives(folder, person).live(*kills)))
