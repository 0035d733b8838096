"""On a board, of the candidates whom an artifact would wake only the chosen one is woken."""

from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.reaction.scenes import SOON, Gate, Order, Parcel, facts, idle, verdicts
from tests.support.timed import Timed
from turnloom import (
    After,
    Answer,
    Batch,
    Board,
    Guards,
    Loom,
    NoCandidates,
    ReactionFailed,
    Selection,
    Task,
    UsageError,
)
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.errors import PlanChanged
from turnloom.explain.logic.causes import Causes
from turnloom.guards.spec import Belief, Pool
from turnloom.runtime.logic import codec

PACKERS = ("ann", "bob")
POOL = Pool("local", "board", "general")


async def pack(task: Task) -> Answer:
    return Answer(output={"item": "tea"})


async def drop(task: Task) -> Answer:
    raise RuntimeError("it fell")


def packers(app: Loom, engine: Any = pack, **said: Any) -> Board:
    """A board with two who pack orders, and one who only watches."""
    guards = Guards(selection=Selection(candidates=PACKERS, **said))
    board = app.board(guards=guards)
    for name in (*PACKERS, "eve"):
        board.agent(name).consumes(Order).publishes(Parcel).with_engines(engine)
    return board


async def known(store: Any, pool: Pool = POOL) -> dict[str, Belief]:
    return dict(await store.beliefs.beliefs(pool, [*PACKERS, "eve"]))


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(codec())


@pytest.mark.parametrize("kept", ["memory", "file"])
async def test_only_the_chosen_candidate_is_woken(kept: str, tmp_path: Path) -> None:
    place: Any = MemoryStore(codec())
    if kept == "file":
        place = SqliteStore(tmp_path / "turnloom.db", codec())
    async with aclosing(place), Loom(store=place) as app:
        board = packers(app)
        for number in range(10):
            await board.publish(Order(number=number), id=f"o{number}")
        await idle(board)
        made, judged = await facts(app, "selection.made"), await facts(app, "selection.judged")
        assert {each.artifact for each in made} == {f"o{n}" for n in range(10)}
        assert {each.chosen for each in made} <= set(PACKERS)
        took = [each.agent for each in await facts(app, "artifact.consumed")]
        assert took.count("eve") == 10 and len(took) == 20
        assert sorted(each.chosen for each in made) == sorted(each.agent for each in judged)
        beliefs = await known(place)
        assert sum(each.observations for each in beliefs.values()) == 10
        assert "eve" not in beliefs


async def test_who_is_passed_over_is_told_why_and_causes_go_over_the_choice() -> None:
    async with Loom(store="memory") as app:
        board = packers(app)
        order = await board.publish(Order())
        await idle(board)
        (made,) = await facts(app, "selection.made")
        (other,) = {*PACKERS} - {made.chosen}
        said = await verdicts(app, order)
        verdict, why = said[f"{other}#1"]
        assert verdict == "not_chosen" and made.chosen in why
        assert said[f"{made.chosen}#1"][0] == said["eve#1"][0] == "taken"
        events = await app.history.events(order.run or "")
        offered = next(event for event in events if event.kind == "artifact.offered")
        told = str(await app.explain.route(order.run or "", offered.seq))
        assert why in told and "Beta(2, 2)" in told
        turn = next(event for event in events if event.kind == "turn.started")
        chain = [cause.kind for cause in Causes(events).of(turn)]
        assert chain[-3:] == ["artifact.offered", "selection.made", "artifact.published"]


async def test_a_failed_turn_is_a_failure_and_a_retry_another_outcome(store: MemoryStore) -> None:
    engine: dict[str, Any] = {"now": drop}

    async def now(task: Task) -> Answer:
        return await engine["now"](task)

    async with Loom(store=store) as app:
        board = app.board(guards=Guards(selection=Selection(candidates=PACKERS)))
        for name in PACKERS:
            board.agent(name).consumes(Order).publishes(Parcel).with_engines(now)
        order = await board.publish(Order())
        failed = await board.run_until_idle(SOON, raise_errors=False)
        assert failed and isinstance(failed.exceptions[0], ReactionFailed)
        (made,) = await facts(app, "selection.made")
        assert await known(store) == {made.chosen: Belief(0.0, 1.0)}
        engine["now"] = pack
        await board.retry(order)
        await idle(board)
        assert len(await facts(app, "selection.made")) == 1
        assert await known(store) == {made.chosen: Belief(1.0, 1.0)}


async def test_a_function_says_the_category_from_the_value(store: MemoryStore) -> None:
    async with Loom(store=store) as app:
        board = packers(app, category=lambda order: order.item, score=lambda parcel: 0.25)
        for item in ("tea", "ink"):
            await board.publish(Order(item=item))
        await idle(board)
        made = await facts(app, "selection.made")
        assert {each.category for each in made} == {"tea", "ink"}
        for each in made:
            there = await known(store, POOL._replace(category=each.category))
            assert there == {each.chosen: Belief(0.25, 0.75)}


async def test_without_candidates_the_run_is_stopped() -> None:
    async with Loom(store="memory") as app:
        out = {"out": {"type": "array", "source": {"type": "static", "value": [*PACKERS]}}}
        guards = Guards(selection=Selection(candidates=PACKERS, exclude_variable="out"))
        board = app.board(guards=guards, variables={"definitions": out})
        for name in PACKERS:
            board.agent(name).consumes(Order).publishes(Parcel).with_engines(pack)
        await board.publish(Order())
        stopped = await board.run_until_idle(SOON, raise_errors=False)
        assert stopped
        (error,) = stopped.exceptions
        assert isinstance(error, NoCandidates)
        assert not await facts(app, "turn.started")


async def test_who_sees_it_later_may_be_chosen_and_nobody_else_is_woken() -> None:
    app = Timed("memory")
    taken: list[str] = []

    async def note(task: Task) -> Answer:
        taken.append(task.agent)
        return await pack(task)

    async with app:
        board = packers(app, note)
        instant = app.clock.now() + timedelta(minutes=1)
        await board.publish(Order(), visibility=After(instant))
        await idle(board)
        assert not await facts(app, "turn.started")
        app.clock.advance(timedelta(minutes=2))
        await board.run_until(lambda: taken, SOON)
        await idle(board)
        (made,) = await facts(app, "selection.made")
        took = [each.agent for each in await facts(app, "artifact.consumed")]
        assert sorted(took) == sorted(["eve", made.chosen])
        assert [each.agent for each in await facts(app, "selection.judged")] == [made.chosen]


async def test_what_is_given_directly_is_not_chosen_for(store: MemoryStore) -> None:
    async with Loom(store=store) as app:
        board = packers(app)
        await board.invoke("ann", Order())
        assert not await facts(app, "selection.made")
        assert await known(store) == {}


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"candidates": ("ann", "zoe")}, "'zoe'"),
        ({"category": {"variable": "topic"}}, "'topic'"),
        ({"exclude_variable": "out"}, "'out'"),
        ({"category": {"function": "by_item"}}, "'by_item'"),
        ({"score": "rate"}, "'rate'"),
    ],
)
async def test_a_guard_that_names_what_is_not_there_is_refused(
    said: dict[str, Any], value: str
) -> None:
    async with Loom(store="memory") as app:
        guards = Guards(selection=Selection(**{"candidates": PACKERS, **said}))
        board = app.board(guards=guards)
        for name in PACKERS:
            board.agent(name).consumes(Order).publishes(Parcel).with_engines(pack)
        with pytest.raises(UsageError) as refused:
            await board.publish(Order())
    assert value in str(refused.value)


async def test_candidates_that_collect_are_refused() -> None:
    async with Loom(store="memory") as app:
        board = app.board(guards=Guards(selection=Selection(candidates=PACKERS)))
        board.agent("ann").consumes(Order).publishes(Parcel).with_engines(pack)
        board.agent("bob").consumes(Order, batch=Batch(2)).publishes(Parcel).with_engines(pack)
        with pytest.raises(UsageError) as refused:
            await board.publish(Order())
    assert "'bob'" in str(refused.value)


async def test_runs_are_pinned_to_the_guards(tmp_path: Any) -> None:
    place, gate = str(tmp_path / "turnloom.db"), Gate()
    async with Loom(store=place) as app:
        await packers(app, gate, seed=1).publish(Order())
        await gate.holds(2)
    gate.open()
    async with Loom(store=place) as app:
        with pytest.raises(PlanChanged) as refused:
            await packers(app, gate, seed=2).resume()
    told = str(refused.value)
    assert '"seed": 1' in told and '"seed": 2' in told
    async with Loom(store=place) as app:
        board = packers(app, gate, seed=1)
        await board.resume()
        await idle(board)
        assert len(await facts(app, "selection.made")) == 1
        assert len(await facts(app, "selection.judged")) == 1
