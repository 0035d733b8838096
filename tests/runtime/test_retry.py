"""A run that ended goes on: from what failed, or from an earlier point; nothing that completed is
done again."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Run, Task, ToolCall, UsageError
from turnloom.log.logic import standing

SHOP = {
    "orchestrator.yaml": """
        startup_mode: BackendOnly
        initial_message: Begin.
        initial_agent: Buyer
        orchestration_pattern: RoundRobinPattern
        max_turns: 3
        """,
    "agents.yaml": """
        agents:
          Buyer: {system_message: Buy., max_tool_rounds: 2}
          Teller: {system_message: Tell.}
        """,
    "tools.yaml": """
        tools:
          - {agent: Buyer, file: shop.py, function: buy}
        lifecycle_tools:
          - {trigger: before_chat, agent: null, file: shop.py, function: unlock}
          - {trigger: after_agent, agent: null, file: shop.py, function: sweep}
          - {trigger: after_chat, agent: null, "on": failure, file: shop.py, function: alarm}
          - {trigger: after_chat, agent: null, file: shop.py, function: close}
        """,
    "shop.py": """
        from tests.runtime.test_retry import done, stumble

        def buy(what: str) -> str:
            stumble("buy " + what)
            done["buy " + what] += 1
            return what

        def unlock():
            done["unlock"] += 1

        def sweep():
            done["sweep"] += 1

        def alarm():
            done["alarm"] += 1

        def close():
            done["close"] += 1
        """,
}

# What was done, where to stumble, and where to wait for ever.
done: Counter[str] = Counter()
stones: set[str] = set()
holes: set[str] = set()


def stumble(place: str) -> None:
    """Fail at some places."""
    if place in stones:
        raise RuntimeError(f"stumbled at {place}")


async def clerk(task: Task) -> Answer:
    """Buys something in two rounds of calls, and says so."""
    round = len(task.exchanges)
    stumble(f"{task.agent} {task.turn}.{round}")
    if f"{task.agent} {task.turn}.{round}" in holes:
        await asyncio.Event().wait()
    done[f"{task.agent} {task.turn}.{round}"] += 1
    if task.agent == "Buyer" and round < 2:
        return Answer(calls=(ToolCall("buy", {"what": f"{task.turn}{'ab'[round]}"}),))
    return Answer(f"{task.agent} is done with {task.turn}.")


@pytest.fixture(autouse=True)
def _clean() -> None:
    for each in (done, stones, holes):
        each.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(write_folder(tmp_path, SHOP))


@pytest.fixture(params=["memory", "shop.db"])
async def loom(request: Any, tmp_path: Path) -> AsyncIterator[Loom]:
    where = request.param if request.param == "memory" else str(tmp_path / request.param)
    async with Loom(store=where, engine=clerk) as app:
        yield app


async def texts(loom: Loom, run: Run) -> list[str]:
    """What was said in a run, as far as it counts."""
    events = standing(await loom.history.events(run.id))
    return [event.data.text for event in events if event.kind == "agent.text"]


PLACES = ["Buyer 1.0", "Buyer 1.1", "Buyer 1.2", "Teller 2.0", "Buyer 3.0", "Buyer 3.2"]
SAID = [f"{agent} is done with {n}." for agent, n in (("Buyer", 1), ("Teller", 2), ("Buyer", 3))]


@pytest.mark.parametrize("place", PLACES)
async def test_a_run_that_failed_goes_on_from_there(loom: Loom, folder: Path, place: str) -> None:
    stones.add(place)
    run = await loom.start(folder)
    assert (await run.finished()).kind == "run.failed"
    assert done["alarm"] == 1 and place not in done
    stones.clear()
    await run.retry()
    assert (await run.finished()).kind == "run.finished"
    assert await texts(loom, run) == SAID
    assert done.pop("alarm") == 1, "hooks on failure are not repeated"
    assert done.pop("sweep") == 3
    assert set(done.values()) == {1}, "something was done twice"
    kinds = [event.kind for event in await loom.history.events(run.id)]
    assert kinds.count("run.failed") == kinds.count("run.retried") == 1


async def test_a_retry_may_fail_and_be_retried(loom: Loom, folder: Path) -> None:
    stones.update(("Buyer 1.1", "Buyer 3.2"))
    run = await loom.start(folder)
    ends = []
    for _ in range(2):
        ends.append((await run.finished()).kind)
        await run.retry()
    ends.append((await run.finished()).kind)
    stones.clear()
    await run.retry()
    assert ends == ["run.failed"] * 3 and (await run.finished()).kind == "run.finished"
    assert await texts(loom, run) == SAID
    assert {done[place] for place in PLACES} == {1} == {done["buy 1a"], done["buy 3b"]}


async def test_a_cancelled_run_goes_on(loom: Loom, folder: Path) -> None:
    holes.add("Buyer 1.1")
    run = await loom.start(folder)
    async for event in run.events():
        if event.kind == "tool.returned":
            break
    await run.cancel(reason="wait")
    assert (await run.finished()).kind == "run.cancelled"
    holes.clear()
    await run.retry()
    assert (await run.finished()).kind == "run.finished"
    assert await texts(loom, run) == SAID
    assert {done[place] for place in PLACES} == {1}
    assert await run.cancel() is False


async def test_everything_since_a_turn_is_done_again(loom: Loom, folder: Path) -> None:
    run = await loom.start(folder)
    await run.finished()
    await run.retry(2, tools="live")
    assert (await run.finished()).kind == "run.finished"
    assert await texts(loom, run) == SAID
    assert done["Buyer 1.0"] == done["buy 1a"] == 1
    assert done["Teller 2.0"] == done["buy 3a"] == done["close"] == 2
    events = await loom.history.events(run.id)
    keys = [event.id for event in events if event.kind == "tool.called"]
    assert len(keys) == len(set(keys)) == 6
    assert (await loom.explain.turn(run.id, 3)).agent == "Buyer"


@pytest.mark.parametrize("part", [{"since": 2}, {"at": 20}])
async def test_equal_calls_are_not_made_again(
    loom: Loom, folder: Path, part: dict[str, int]
) -> None:
    run = await loom.start(folder)
    await run.finished()
    tools = ("buy 1a", "buy 1b", "buy 3a", "buy 3b", "unlock", "sweep", "close")
    before = [done[each] for each in tools]
    await run.retry(**part)
    assert (await run.finished()).kind == "run.finished"
    assert await texts(loom, run) == SAID
    assert [done[each] for each in tools] == before
    assert done["Teller 2.0"] == 2


async def test_it_goes_on_in_another_process(folder: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "shop.db")
    stones.add("Buyer 3.2")
    async with Loom(store=store, engine=clerk) as loom:
        run = (await loom.start(folder)).id
        await loom.handle(run).finished()
    stones.clear()
    async with Loom(store=store, engine=clerk) as loom:
        await loom.handle(run).retry()
    async with Loom(store=store, engine=clerk) as loom:
        if (await loom.history.events(run))[-1].kind != "run.finished":
            await loom.resume(run)
        assert (await loom.handle(run).finished()).kind == "run.finished"
        assert await texts(loom, loom.handle(run)) == SAID
        (listed,) = await loom.runs()
        assert listed.status == "finished"


async def test_a_retried_run_is_open_until_it_ends(loom: Loom, folder: Path) -> None:
    stones.add("Teller 2.0")
    run = await loom.start(folder)
    await run.finished()
    assert not await loom.runs(unfinished=True)
    await run.retry()
    await run.finished()
    assert (await loom.runs(status="failed"))[0].run == run.id
    assert not await loom.runs(unfinished=True)


async def test_a_changed_folder(loom: Loom, folder: Path, tmp_path: Path) -> None:
    stones.add("Teller 2.0")
    run = await loom.start(folder)
    await run.finished()
    stones.clear()
    other = {**SHOP, "agents.yaml": SHOP["agents.yaml"].replace("Tell.", "Tell it well.")}
    (tmp_path / "new").mkdir()
    await run.retry(folder=write_folder(tmp_path / "new", other))
    assert (await run.finished()).kind == "run.finished"
    (retried,) = [e.data for e in await loom.history.events(run.id) if e.kind == "run.retried"]
    assert retried.changed == ("agents.yaml",)
    assert "Tell it well." in (await loom.history.definition(run.id)).files["agents.yaml"]


async def test_a_raised_budget(loom: Loom, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "poor").mkdir()
    orchestrator = f"guards: {{budget: {{model_calls: 4}}}}\n{dedent(SHOP['orchestrator.yaml'])}"
    poor = {**SHOP, "orchestrator.yaml": orchestrator}
    run = await loom.start(write_folder(tmp_path / "poor", poor))
    assert (await run.finished()).kind == "run.failed"
    await run.retry()
    assert (await run.finished()).kind == "run.failed"
    await run.retry(budget={"model_calls": 20})
    assert (await run.finished()).kind == "run.finished"
    assert await texts(loom, run) == SAID
    assert {done[place] for place in PLACES} == {1}


async def test_what_cannot_be_retried(loom: Loom, folder: Path) -> None:
    run = await loom.start(folder)
    await run.finished()
    before = await loom.history.events(run.id)
    for wrong in ({}, {"since": 9}, {"since": "pack"}, {"since": 1, "at": 3}, {"since": 0}):
        with pytest.raises(UsageError):
            await run.retry(**wrong)
    with pytest.raises(UsageError):
        await run.retry(1, budget={"model_calls": 20})
    with pytest.raises(UsageError):
        await run.retry(1, budget={"dinners": 20})
    assert await loom.history.events(run.id) == before
