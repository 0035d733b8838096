"""Several questions of one run at once: each by itself, answered in any order."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import stage
from tests.support.folders import write_folder
from tests.support.hooked import hook, hooked
from tests.support.plays import call, every, lines, only, serving, solo, until
from tests.support.programs import Program, answer, begin, drive, make_world
from tests.support.world import PATIENCE, World
from turnloom import Delivery, Question
from turnloom.agents.spec import Answer, ToolCall
from turnloom.errors import UsageError
from turnloom.testing import ScriptedEngine

CODE = """
    import asyncio
    from tests.support import stage
    from turnloom import QuestionExpired, use_ui_tool

    async def buy(item: str, seconds: float | None = None):
        stage.mark(f"buy {item}")
        try:
            first = await use_ui_tool("buy", {"title": item}, timeout=seconds)
        except QuestionExpired:
            return f"no {item}"
        return f"{item}: {first}"

    async def buy_twice(item: str):
        stage.mark(f"twice {item}")
        first = await use_ui_tool("buy_twice", {"title": f"first {item}"})
        second = await use_ui_tool("buy_twice", {"title": f"second {item}"})
        return f"{item}: {first}, {second}"

    async def wait():
        stage.mark("wait")
        await stage.kept["gate"].wait()
        return "waited"
    """
TOOLS = ("buy", "buy_twice", "wait")


@pytest.fixture(autouse=True)
def clear_stage() -> None:
    stage.clear()
    stage.kept["gate"] = asyncio.Event()


def shop(where: Path, *calls: Any) -> str:
    """A folder whose agent makes these calls at once."""
    return write_folder(where, solo(CODE, *TOOLS, script=lines([*calls], "Done.")))


async def waiting(world: World, run: str) -> dict[str, Question]:
    """What a run asks, by what it says, as another process sees it."""
    async with Program(world) as program:
        return {each.prompt: each for each in await program.app.handle(run).questions()}


def results(events: Sequence[Any]) -> list[Any]:
    return [each.result for each in every(events, "tool.returned")]


async def test_tools_of_one_answer_ask_at_once_and_each_goes_on_with_its_answer(
    tmp_path: Path,
) -> None:
    world = make_world()
    run = await begin(world, shop(tmp_path, *(call("buy", item=item) for item in "abc")))
    await drive(world, run)
    asked = await waiting(world, run)
    assert [*asked] == ["a", "b", "c"]
    for number, item in enumerate("cab"):
        await answer(world, run, f"yes {item}", asked[item].id)
        left = await waiting(world, run)
        assert [*left] == [each for each in "abc" if each not in "cab"[: number + 1]]
        assert len(results(await world.read(run))) == number + 1
    events = await world.read(run)
    assert results(events) == ["c: yes c", "a: yes a", "b: yes b"]
    assert events[-1].kind == "run.finished"
    assert sorted(stage.marks) == ["buy a"] * 2 + ["buy b"] * 2 + ["buy c"] * 2


async def test_each_question_of_a_tool_enters_it_once_more(tmp_path: Path) -> None:
    """And a tool that waits is not entered for the answers of others."""
    world = make_world()
    calls = [call("buy_twice", item="a"), call("buy", item="b")]
    run = await begin(world, shop(tmp_path, *calls))
    await drive(world, run)
    for prompt in ("first a", "second a"):
        await answer(world, run, "yes", (await waiting(world, run))[prompt].id)
    assert stage.marks == ["twice a", "buy b", "twice a", "twice a"]
    await answer(world, run, "yes")
    assert stage.marks == ["twice a", "buy b", "twice a", "twice a", "buy b"]
    assert (await world.read(run))[-1].kind == "run.finished"


async def test_deadlines_run_out_each_by_itself(tmp_path: Path) -> None:
    world = make_world()
    calls = [call("buy", item="a", seconds=60), call("buy", item="b"), call("buy", item="c")]
    run = await begin(world, shop(tmp_path, *calls))
    due = await drive(world, run)
    asked = await waiting(world, run)
    assert [each.due for each in asked.values()] == [due, None, None]
    world.clock.advance(timedelta(seconds=61))
    assert [*await waiting(world, run)] == ["b", "c"]
    await answer(world, run, "yes", asked["c"].id)
    assert results(await world.read(run)) == ["no a", "c: yes"]
    await answer(world, run, "yes", asked["b"].id)
    events = await world.read(run)
    assert only(events, "question.expired").question == asked["a"].id
    assert events[-1].kind == "run.finished"


async def test_an_answer_is_heeded_while_another_tool_goes_on(tmp_path: Path) -> None:
    calls = [call("buy_twice", item="a"), call("wait"), call("buy", item="b")]
    folder = shop(tmp_path, *calls)
    async with serving(make_world()) as app:
        run = await app.start(folder, user_id="u1")
        for prompt in ("first a", "second a"):
            question = await asked_for(run, prompt)
            assert await run.answer(question.id, "yes") is Delivery.TAKEN
        returned = await until(run, "tool.returned")
        assert returned.data.result == "a: yes, yes"
        (left,) = await run.questions()
        assert left.prompt == "b" and stage.marks.count("wait") == 1
        stage.kept["gate"].set()
        await run.answer(left.id, "yes")
        end = await run.finished()
    assert end.kind == "run.finished"
    assert stage.marks.count("wait") == 1 and stage.marks.count("buy b") == 2


async def asked_for(run: Any, prompt: str) -> Any:
    """The question that says so, once it is asked."""
    async with asyncio.timeout(PATIENCE):
        async for event in run.events():
            if event.kind == "question.asked" and event.data.prompt == prompt:
                return next(each for each in await run.questions() if each.prompt == prompt)
    raise AssertionError(f"{prompt} was never asked")


async def test_a_run_is_cancelled_while_one_tool_waits_and_another_goes_on(tmp_path: Path) -> None:
    async with serving(make_world()) as app:
        run = await app.start(shop(tmp_path, call("buy", item="a"), call("wait")), user_id="u1")
        await asked_for(run, "a")
        assert await run.cancel()
        assert (await run.finished()).kind == "run.cancelled"
        assert await run.questions() == []


async def test_which_question_is_answered_must_be_said_where_there_are_several(
    tmp_path: Path,
) -> None:
    world = make_world()
    run = await begin(world, shop(tmp_path, call("buy", item="a"), call("buy", item="b")))
    await drive(world, run)
    asked = await waiting(world, run)
    with pytest.raises(UsageError) as refused:
        await answer(world, run, "yes")
    assert all(each.id in str(refused.value) for each in asked.values())
    assert await answer(world, run, "no", asked["b"].id) is Delivery.TAKEN
    assert await answer(world, run, "no", asked["b"].id) is Delivery.REPEATED
    assert [*await waiting(world, run)] == ["a"]
    assert await answer(world, run, "yes") is Delivery.TAKEN
    assert await answer(world, run, "yes") is Delivery.REPEATED
    with pytest.raises(UsageError):
        await answer(world, run, "no")


async def test_a_tool_beside_one_that_asked_is_done_again_after_a_kill(tmp_path: Path) -> None:
    """One asks, the other goes on when the process ends: it is not left until the answer comes."""
    world = make_world()
    async with serving(world) as app:
        run = await app.start(shop(tmp_path, call("buy", item="a"), call("wait")), user_id="u1")
        await asked_for(run, "a")
    stage.kept["gate"].set()
    await drive(world, run.id)
    assert results(await world.read(run.id)) == ["waited"]
    await answer(world, run.id, "yes")
    assert stage.marks == ["buy a", "wait", "wait", "buy a"]


POOLED = """
async def allocate(context_variables):
    context_variables.data["pool"] = stage.Pool()

async def query(what: str, context_variables):
    answer = await use_ui_tool("query", {"title": what})
    return f"{answer} from {context_variables['pool'].name}"
"""


async def test_objects_are_there_for_an_answer_while_another_is_waited_for(tmp_path: Path) -> None:
    """Also if a process took the answer in that did not go on with the run."""
    tools = [{"agent": "A", "file": "h.py", "function": "query", "tool_type": "UI_Tool"}]
    folder = hooked(tmp_path, [hook("before_agent", "allocate", agent="A")], POOLED, tools)
    calls = tuple(ToolCall("query", {"what": what}) for what in "ab")
    world = make_world(ScriptedEngine({"A": [Answer(calls=calls), "Got it."], "B": ["Bye."]}))
    run = await begin(world, folder)
    await drive(world, run)
    asked = await waiting(world, run)
    async with Program(world) as program:
        given = await program.app.handle(run).answer(asked["b"].id, "yes", user_id="u1")
    assert given is Delivery.RECORDED
    assert [*await waiting(world, run)] == ["a"]
    await drive(world, run)
    assert results(await world.read(run)) == ["yes from pool"]
