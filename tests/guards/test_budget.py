"""Budgets: nothing is done that there is no budget for, and what was used is on record."""

import asyncio
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guards.runs import Says, endless, go_on
from tests.reaction.scenes import SOON, Clerk, Gate, Order, Parcel, pack
from tests.support.folders import write_folder
from tests.support.plays import every, last, only, play
from tests.support.programs import Program, make_world
from turnloom import Answer, Board, DefinitionError, Guards, Loom, RunBudget, Task, Usage
from turnloom.adapters.memory import MemoryStore
from turnloom.agents.spec import Exchange
from turnloom.errors import BudgetExceeded, PlanChanged
from turnloom.guards.logic.budgets import scarcity, shortages, wanted_by
from turnloom.guards.spec import Amounts, Price, Watch
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.testing import FakeClock

NOW = FakeClock().now()


def short(events: list[Event]) -> list[tuple[str, float, float]]:
    """What there was not enough of: wanted, and left."""
    fact = only(events, "budget.exceeded")
    return [(each.resource, each.wanted, each.left) for each in fact.short]


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


# ------------------------------------------------------------------ what is enough

amounts = st.builds(
    Amounts,
    steps=st.integers(0, 3),
    tokens=st.integers(0, 50),
    model_calls=st.integers(0, 3),
    tool_calls=st.integers(0, 3),
    cost=st.integers(0, 9).map(lambda n: n / 10),
)
limits = st.builds(
    RunBudget,
    steps=st.none() | st.integers(1, 5),
    tokens=st.none() | st.integers(1, 99),
    model_calls=st.none() | st.integers(1, 5),
    tool_calls=st.none() | st.integers(1, 5),
    cost=st.integers(1, 20).map(lambda n: n / 10),
    prices=st.just({"*": Price(input=1, output=1)}),
    answer_tokens=st.just(0),
)


@given(limits, amounts, amounts, amounts)
def test_a_resource_is_short_if_more_is_wanted_than_is_left(
    budget: RunBudget, spent: Amounts, held: Amounts, wanted: Amounts
) -> None:
    found = {each.resource for each in shortages(budget, Watch(spent, {"t1": held}), wanted, NOW)}
    for resource in Amounts.__struct_fields__:
        limit = getattr(budget, resource)
        total = sum(round(10 * getattr(each, resource)) for each in (spent, held, wanted))
        is_over = limit is not None and total > round(10 * limit)
        assert (resource in found) == (is_over and getattr(wanted, resource) > 0)


@given(limits, st.lists(amounts, max_size=8))
def test_what_is_granted_never_exceeds_a_limit(budget: RunBudget, calls: list[Amounts]) -> None:
    watch = Watch()
    for number, wanted in enumerate(calls):
        if not shortages(budget, watch, wanted, NOW):
            watch.held[str(number)] = wanted
    total = sum(watch.held.values(), Amounts())
    for resource in Amounts.__struct_fields__:
        limit = getattr(budget, resource)
        assert limit is None or getattr(total, resource) <= limit + 1e-9


@pytest.mark.parametrize(
    ("spent", "level"),
    [(0, "abundant"), (29, "abundant"), (30, "normal"), (69, "normal"), (70, "scarce")]
    + [(89, "scarce"), (90, "critical"), (100, "critical"), (130, "critical")],
)
def test_the_share_that_is_left_says_how_scarce_it_is(spent: int, level: str) -> None:
    budget = RunBudget(tokens=100, answer_tokens=10)
    assert scarcity(budget, Watch(Amounts(tokens=spent))).level == level


def test_the_scarcest_resource_decides() -> None:
    watch = Watch(Amounts(steps=1, tokens=95), seconds=5.0)
    found = scarcity(RunBudget(steps=10, tokens=100, answer_tokens=1, wall_time=10), watch)
    assert found == ("critical", "tokens", 0.05)
    assert scarcity(RunBudget(wall_time="PT10S"), watch) == ("normal", "wall_time", 0.5)  # pyright: ignore[reportArgumentType]
    assert scarcity(RunBudget(), watch) == ("abundant", "", 1.0)


def test_a_call_reserves_what_it_is_shown_and_an_answer() -> None:
    budget = RunBudget(cost=1, prices={"m": Price(input=2, output=10)}, answer_tokens=100)
    assert wanted_by(budget, "m", 50, ()) == Amounts(0, 150, 1, 0, 0.0011)
    later = wanted_by(budget, "m", 50, [Exchange("x" * 400)])
    assert later.tokens > 250


# ------------------------------------------------------------------ in a conversation


async def test_exactly_at_the_limit_passes_and_one_over_is_refused(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {"budget": {"steps": 3}})
    assert len(every(events, "turn.started")) == len(every(events, "turn.finished")) == 3
    assert short(events) == [("steps", 1, 0)]
    failed = last(events, "run.failed")
    assert failed.error == "budget exceeded"
    assert "t4" in failed.message and "steps" in failed.message


async def test_every_short_resource_is_named(tmp_path: Path) -> None:
    engine = Says(usage=Usage(150, 50))
    budget = {"model_calls": 2, "tokens": 400, "answer_tokens": 50}
    events = await go_on(tmp_path, {"budget": budget}, engine=engine)
    assert short(events)[1] == ("model_calls", 1, 0)
    tokens, wanted, left = short(events)[0]
    assert (tokens, left) == ("tokens", 0) and wanted > 50
    assert len(engine.tasks) == 2
    assert [turn.status for turn in every(events, "turn.finished")] == ["done", "done", "failed"]
    assert last(events, "run.failed").error == "budget exceeded"


async def test_a_reservation_is_in_the_same_append_as_the_intent_and_settled_with_the_result(
    tmp_path: Path,
) -> None:
    events = await go_on(tmp_path, {"budget": {"steps": 1, "model_calls": 9}})
    held = {fact.call: fact.amounts for fact in every(events, "budget.reserved")}
    spent = {fact.call: fact.amounts for fact in every(events, "budget.spent")}
    assert held.keys() == spent.keys() == {"t1", "t1/model"}
    assert spent["t1/model"] == Amounts(tokens=100, model_calls=1)
    at = {event.id: event.at for event in events}
    assert at["t1/model/reserved"] == at["t1/model?"]
    assert at["t1/model/spent"] == at["t1/model.0"]


async def test_tools_that_are_called_at_once_are_all_called_or_none(tmp_path: Path) -> None:
    engine = Says(["look", "look"], "Done.", ["look", "look"])
    events = await go_on(tmp_path, {"budget": {"tool_calls": 3}}, engine=engine)
    assert len(every(events, "tool.called")) == len(every(events, "tool.returned")) == 2
    assert short(events) == [("tool_calls", 2, 1)]
    assert last(events, "run.failed").error == "budget exceeded"


async def test_tokens_that_were_used_count_and_not_those_that_were_reserved(
    tmp_path: Path,
) -> None:
    budget = {"tokens": 1000, "answer_tokens": 300}
    engine = Says(usage=Usage(150, 50))
    events = await go_on(tmp_path, {"budget": budget}, engine=engine)
    assert len(engine.tasks) == 4  # the fifth would have to find room for 300 and its frame
    assert sum(each.amounts.tokens for each in every(events, "budget.spent")) == 800


async def test_an_answer_that_is_longer_than_expected_lets_the_next_call_be_refused(
    tmp_path: Path,
) -> None:
    budget = {"tokens": 500, "answer_tokens": 10}
    events = await go_on(tmp_path, {"budget": budget}, engine=Says(usage=Usage(10, 900)))
    assert len(every(events, "model.answered")) == 1
    ((resource, _, left),) = short(events)
    assert (resource, left) == ("tokens", -410)


async def test_cached_input_counts_at_its_own_price(tmp_path: Path) -> None:
    price = {"input": 1000, "output": 0, "cached": 1, "cache_write": 2}
    budget = {"steps": 1, "cost": 9, "prices": {"*": price}, "answer_tokens": 1}
    used = Usage(100, 0, cached_tokens=60, cache_write_tokens=40)
    events = await go_on(tmp_path, {"budget": budget}, engine=Says(usage=used))
    assert sum(fact.amounts.cost for fact in every(events, "budget.spent")) == 0.00014


async def test_cost_is_computed_from_usage_by_the_price_of_the_model(tmp_path: Path) -> None:
    prices = {"cheap": {"input": 1, "output": 2}, "*": {"input": 1000, "output": 1000}}
    budget = {"cost": 0.0005, "prices": prices, "answer_tokens": 1}
    engine = Says(usage=Usage(100, 50))
    events = await go_on(tmp_path, {"budget": budget}, engine=engine, model="cheap")
    costs = [fact.amounts.cost for fact in every(events, "budget.spent") if fact.amounts.cost]
    assert costs == [0.0002] * len(costs) and len(costs) == 3
    ((resource, _, left),) = short(events)
    assert (resource, left) == ("cost", -0.0001)


async def test_an_agent_without_a_price_is_refused(tmp_path: Path) -> None:
    budget = {"cost": 1, "prices": {"m": {"input": 1, "output": 1}}}
    with pytest.raises(DefinitionError) as refused:
        await go_on(tmp_path, {"budget": budget})
    (problem,) = [each for each in refused.value.diagnostics if each.severity == "error"]
    assert problem.code == "W068" and "'A'" in problem.message


async def test_scarcity_is_on_record_when_it_changes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events = await go_on(tmp_path, {"budget": {"steps": 10}})
    found = [(each.previous, each.level, each.share) for each in every(events, "scarcity.changed")]
    assert found == [
        ("abundant", "normal", 0.7),
        ("normal", "scarce", 0.3),
        ("scarce", "critical", 0.1),
    ]
    warned = [each.getMessage() for each in caplog.records if each.name == "turnloom.guards"]
    assert ["scarce" in each and "30 %" in each for each in warned] == [True, False]
    assert ["critical" in each and "10 %" in each for each in warned] == [False, True]


async def test_nothing_is_on_record_without_a_budget(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {}, max_turns=2)
    assert not [kind for kind in kinds(events) if kind.startswith(("budget", "scarcity"))]
    assert kinds(events)[-1] == "run.finished"


async def test_picking_a_speaker_is_a_model_call(tmp_path: Path) -> None:
    engine = Says()
    files = endless(
        {"budget": {"model_calls": 2}}, "A", "B", "C", orchestration_pattern="AutoPattern"
    )
    files["handoffs.json"] = "[]"

    async def pick(task: Task) -> Answer:
        return Answer("B") if task.agent == "selector" else await engine(task)

    events = await play(tmp_path, files, engine=pick)
    assert [fact.agent for fact in every(events, "model.called")] == ["A", "selector"]
    assert only(events, "budget.exceeded").call == "t2/model"


# ------------------------------------------------------------------ time


async def test_no_turn_begins_when_the_time_is_over(tmp_path: Path) -> None:
    async def slow(task: Task) -> Answer:
        world.clock.advance(timedelta(seconds=4))
        return Answer(f"Thought {task.number}.")

    world = make_world(slow)
    folder = write_folder(tmp_path, endless({"budget": {"wall_time": "PT10S"}}))
    async with Program(world) as program:
        run = await program.start(folder)
        await program.drive(run)
        events = list(await program.app.history.events(run))
    assert len(every(events, "turn.started")) == 3
    assert short(events) == [("wall_time", 0, -2)]


async def test_waiting_for_a_person_takes_no_time(tmp_path: Path) -> None:
    world = make_world(Says())
    files = endless({"budget": {"wall_time": 60}}, human_in_the_loop=True)
    del files["handoffs.json"]
    async with Program(world) as program:
        run = await program.start(write_folder(tmp_path, files))
        await program.drive(run)
        for _ in range(3):
            world.clock.advance(timedelta(hours=1))
            await program.answer(run, "Go on.")
        events = await program.app.history.events(run)
    assert len(every(events, "turn.finished")) == 4
    assert not every(events, "budget.exceeded")


async def test_a_call_is_cut_off_when_the_time_is_over(tmp_path: Path) -> None:
    async def never(task: Task) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    events = await go_on(tmp_path, {"budget": {"wall_time": 0.05}}, engine=never)
    assert only(events, "model.failed").error == "BudgetExceeded"
    assert short(events) == [("wall_time", 0, 0)]
    assert last(events, "run.failed").error == "budget exceeded"


async def test_a_tool_gets_no_more_time_than_is_left(tmp_path: Path) -> None:
    engine = Says(["dawdle"], "Done.")
    events = await go_on(tmp_path, {"budget": {"wall_time": 0.1}}, engine=engine, max_turns=1)
    assert only(events, "tool.failed").error == "TimeoutError"


# ------------------------------------------------------------------ on a board


async def test_of_two_parallel_turns_exactly_one_gets_the_last_model_call() -> None:
    one, other = Clerk(pack), Clerk(pack)
    async with Loom(store="memory") as app:
        board = app.board(guards=Guards(budget=RunBudget(model_calls=1)))
        for name, clerk in (("one", one), ("other", other)):
            board.agent(name).consumes(Order).publishes(Parcel).with_engines(clerk)
        order = await board.publish(Order())
        failures = await board.run_until_idle(SOON, raise_errors=False)
        assert order.run
        events = list(await app.history.events(order.run))
    assert len(one.tasks) + len(other.tasks) == 1
    assert short(events) == [("model_calls", 1, 0)]
    assert sorted(turn.status for turn in every(events, "turn.finished")) == ["done", "failed"]
    assert last(events, "run.failed").error == "budget exceeded"
    assert failures and any(isinstance(each, BudgetExceeded) for each in failures.exceptions)


async def test_a_turn_that_there_is_no_step_for_takes_nothing() -> None:
    async with Loom(store="memory") as app:
        board = app.board(guards={"budget": {"steps": 1}})
        for name in ("one", "other"):
            board.agent(name).consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
        order = await board.publish(Order())
        await board.run_until_idle(SOON, raise_errors=False)
        assert order.run
        events = list(await app.history.events(order.run))
    assert len(every(events, "artifact.consumed")) == len(every(events, "turn.started")) == 1
    assert short(events) == [("steps", 1, 0)]


async def test_each_run_of_a_board_has_a_budget_of_its_own() -> None:
    clerk = Clerk(pack)
    async with Loom(store="memory") as app:
        board = app.board(guards={"budget": {"steps": 1}})
        board.agent("one").consumes(Order).publishes(Parcel).with_engines(clerk)
        await board.publish_many([Order(), Order()])
        await board.run_until_idle(SOON)
    assert len(clerk.tasks) == 2


@pytest.mark.parametrize(
    ("budget", "code", "value"),
    [
        ({"steps": 0}, "W012", "'steps'"),
        ({"wall_time": math.inf}, "W012", "'wall_time'"),
        ({"steps": -1}, "W012", "-1"),
        ({"step": 1}, "W010", "'steps'"),
        ({"cost": 1}, "W012", "prices"),
        ({"prices": {"*": {"input": 1, "output": 1}}}, "W012", "prices"),
        ({"tokens": 10}, "W012", "tokens"),
        ({"wall_time": "soon"}, "W012", "'soon'"),
        ({"cost": 1, "prices": {"m": {"input": 1, "output": 1}}}, "W068", "'one'"),
    ],
)
async def test_a_board_refuses_guards_that_make_no_sense(
    budget: Any, code: str, value: str
) -> None:
    async with Loom(store="memory") as app:
        board = app.board(guards={"budget": budget})
        board.agent("one").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
        with pytest.raises(DefinitionError) as refused:
            await board.publish(Order())
    (problem,) = [each for each in refused.value.diagnostics if each.severity == "error"]
    assert problem.code == code and value in f"{problem.message} {problem.remedy}"


async def test_a_run_of_a_board_is_pinned_to_its_budget() -> None:
    store, gate = MemoryStore(codec()), Gate()

    def board(app: Loom, steps: int) -> Board:
        made = app.board(guards={"budget": {"steps": steps}})
        made.agent("one").consumes(Order).publishes(Parcel).with_engines(gate)
        return made

    async with Loom(store=store) as app:
        await board(app, 7).publish(Order())
        await gate.holds(1)
    gate.open()
    async with Loom(store=store) as app:
        with pytest.raises(PlanChanged) as refused:
            await board(app, 8).resume()
        assert '"steps": 7' in str(refused.value) and '"steps": 8' in str(refused.value)
    async with Loom(store=store) as app:
        again = board(app, 7)
        await again.resume()
        assert await again.run_until_idle(SOON) is None
