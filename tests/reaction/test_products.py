"""What agents publish: kept as their engines made it, or refused with a reason."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tests.reaction.scenes import (
    Clerk,
    Order,
    Parcel,
    Receipt,
    everything,
    facts,
    failures,
    idle,
)
from turnloom import Board, Loom
from turnloom.agents.spec import Answer, Publication, Task
from turnloom.board.spec import After, Labelled, Private, Public, Reader
from turnloom.reaction.spec import AgentBuilder

BOSS = Reader(labels={"boss"})


def declare(board: Board, made: Any) -> AgentBuilder:
    """An agent that makes this of every order."""
    return board.agent("clerk").consumes(Order).with_engines(Clerk(lambda task: made))


async def refused(app: Loom, board: Board) -> list[str]:
    """Publish an order; why what was made of it is refused, each time that it was tried."""
    await board.publish(Order())
    (failure,) = await failures(board)
    problems = [each.problem for each in await facts(app, "output.refused")]
    assert f"TooManyMistakes: {problems[-1]}" in failure
    assert await everything(board, "Parcel") == []
    return problems


MADE: dict[str, Any] = {
    "a value": Parcel(item="box"),
    "an answer with an output": Answer(output={"item": "box"}),
    "an answer with an artifact": Answer(artifacts=(Publication(Parcel(item="box")),)),
    "a publication": Publication(Parcel(item="box")),
    "a list": [Parcel(item="box")],
    "data as text": '{"item": "box"}',
    "data in a fence": 'Here:\n```json\n{"item": "box"}\n```',
}


@pytest.mark.parametrize("form", MADE)
async def test_an_engine_says_in_its_own_way_what_it_made(board: Board, form: str) -> None:
    declare(board, MADE[form]).publishes(Parcel)
    order = await board.publish(Order())
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload == {"item": "box", "notes": ""}
    assert parcel.parents == (order.id,)
    assert (parcel.tags, parcel.visibility) == (frozenset(), Public())


@pytest.mark.parametrize("nothing", [None, "", Answer(), [], ()])
async def test_an_engine_may_make_nothing(app: Loom, board: Board, nothing: Any) -> None:
    declare(board, nothing).publishes(Parcel)
    await board.publish(Order())
    await idle(board)
    assert len(await everything(board)) == 1
    assert [each.status for each in await facts(app, "turn.finished")] == ["done"]


async def test_several_of_one_type_are_published(board: Board) -> None:
    made = [Parcel(item="a"), Receipt(total=1), Parcel(item="b"), Parcel(item="b")]
    declare(board, made).publishes(Parcel, Receipt)
    order = await board.publish(Order())
    await idle(board)
    parcels = await everything(board, "Parcel")
    assert [each.payload["item"] for each in parcels] == ["a", "b", "b"]
    assert len({each.id for each in await everything(board)}) == 5
    assert {each.parents for each in parcels} == {(order.id,)}


async def test_several_are_said_as_data_by_type(board: Board) -> None:
    said = {
        "artifacts": [
            {"type": "Parcel", "payload": {"item": "a"}},
            {"type": "shop.Receipt", "payload": {"total": 3}},
            {"type": "Parcel", "payload": {"item": "b"}},
        ]
    }
    declare(board, Answer(output=said)).publishes(Parcel, Receipt)
    await board.publish(Order())
    await idle(board)
    made = [each.payload for each in await everything(board) if each.produced_by == "clerk"]
    assert made == [{"item": "a", "notes": ""}, {"total": 3}, {"item": "b", "notes": ""}]


async def test_what_holds_for_a_type_holds_for_each_of_it(board: Board) -> None:
    clerk = declare(board, [Parcel(), Receipt()])
    clerk.publishes(Parcel, visibility=Labelled({"boss"}), tags=["packed", "new"])
    clerk.publishes(Receipt)
    await board.publish(Order())
    await idle(board)
    assert [each.type for each in await everything(board)] == ["shop.Order", "shop.Receipt"]
    (parcel,) = await everything(board, "Parcel", reader=BOSS)
    assert (parcel.tags, parcel.visibility) == ({"packed", "new"}, Labelled({"boss"}))


async def test_what_the_engine_says_of_an_artifact_is_kept(board: Board) -> None:
    special = Publication(Parcel(), {"rush"}, Private({"chief"}), "north")
    clerk = declare(board, [special, Publication(Parcel(item="usual"))])
    clerk.publishes(Parcel, visibility=Labelled({"boss"}), tags={"packed"})
    await board.publish(Order())
    await idle(board)
    (parcel,) = await everything(board, "Parcel", reader=Reader("chief"))
    assert (parcel.tags, parcel.visibility) == ({"rush"}, Private({"chief"}))
    assert parcel.partition == "north"
    (usual,) = await everything(board, "Parcel", reader=BOSS)
    assert (usual.tags, usual.payload["item"]) == ({"packed"}, "usual")


async def test_tags_that_engines_set_wake_others(board: Board) -> None:
    rush = Clerk()
    made = [Publication(Parcel(item="a"), {"rush"}), Parcel(item="b")]
    declare(board, made).publishes(Parcel)
    board.agent("courier").consumes(Parcel, tags={"rush"}).with_engines(rush)
    await board.publish(Order())
    await idle(board)
    assert rush.given == [["a"]]


async def test_who_makes_something_for_others_need_not_see_it(board: Board) -> None:
    courier = Clerk()
    declare(board, Parcel()).publishes(Parcel, visibility=Private({"courier"}))
    board.agent("courier").consumes(Parcel).with_engines(courier)
    await board.publish(Order())
    await idle(board)
    assert courier.given == [["tea"]]


async def test_a_type_that_is_not_declared_is_refused_with_a_reason(
    app: Loom, board: Board
) -> None:
    board.register(Receipt)
    declare(board, [Parcel(), Receipt()]).publishes(Parcel)
    problems = await refused(app, board)
    assert problems == problems[:1] * 4, "the engine is told, a few times"
    assert "'shop.Receipt'" in problems[0] and "shop.Parcel" in problems[0]


async def test_the_engine_is_told_why_and_may_do_better(board: Board) -> None:
    def learn(task: Task) -> Any:
        told = [exchange.problem for exchange in task.exchanges]
        return Parcel(notes=told[-1]) if told else Receipt()

    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(learn))
    await board.publish(Order())
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    assert "'Receipt'" in parcel.payload["notes"]


async def test_an_agent_that_publishes_nothing_publishes_nothing(app: Loom, board: Board) -> None:
    board.register(Parcel)
    declare(board, Parcel())
    problems = await refused(app, board)
    assert len(problems) == 4 and "'shop.Parcel'" in problems[0]


async def test_words_of_an_agent_that_publishes_nothing_are_words(app: Loom, board: Board) -> None:
    declare(board, "All is well.")
    await board.publish(Order())
    await idle(board)
    assert [each.text for each in await facts(app, "agent.text")] == ["All is well."]


async def test_words_beside_artifacts_are_kept(app: Loom, board: Board) -> None:
    answer = Answer("Packed.", artifacts=(Publication(Parcel()),))
    declare(board, answer).publishes(Parcel)
    await board.publish(Order())
    await idle(board)
    assert [each.text for each in await facts(app, "agent.text")] == ["Packed."]
    assert len(await everything(board, "Parcel")) == 1


@pytest.mark.parametrize(
    ("fan_out", "number", "is_right"),
    [(2, 2, True), (2, 1, False), (2, 3, False), ((1, 3), 3, True), ((1, 3), 0, False)]
    + [((1, 3), 4, False), ((2, None), 9, True), ((2, None), 1, False), ((0, 1), 0, True)],
)
async def test_fan_out_says_how_many(
    app: Loom, board: Board, fan_out: Any, number: int, is_right: bool
) -> None:
    declare(board, [Parcel()] * number).publishes(Parcel, fan_out=fan_out)
    if is_right:
        await board.publish(Order())
        await idle(board)
        assert len(await everything(board, "Parcel")) == number
    else:
        problem, *_ = await refused(app, board)
        assert str(number) in problem and "'shop.Parcel'" in problem


async def light(parcel: Parcel) -> bool:
    return parcel.notes != "heavy"


def not_heavy(parcel: Parcel) -> str | None:
    return "too heavy" if parcel.notes == "heavy" else None


def raising(parcel: Parcel) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()
    if parcel.notes == "heavy":
        raise ValueError("who lifts that?")


@pytest.mark.parametrize(
    ("validate", "reason"),
    [
        (light, "validate"),
        (not_heavy, "too heavy"),
        (raising, "who lifts that?"),
    ],
)
async def test_what_does_not_validate_is_refused(
    app: Loom, board: Board, validate: Any, reason: str
) -> None:
    declare(board, [Parcel(), Parcel(notes="heavy")]).publishes(Parcel, validate=validate)
    problem, *_ = await refused(app, board)
    assert "'shop.Parcel'" in problem and reason in problem


@pytest.mark.parametrize("validate", [light, not_heavy, raising])
async def test_what_validates_is_published(board: Board, validate: Any) -> None:
    declare(board, Parcel(notes="light")).publishes(Parcel, validate=validate)
    await board.publish(Order())
    await idle(board)
    assert len(await everything(board, "Parcel")) == 1


async def test_a_payload_that_its_type_refuses_is_refused(app: Loom, board: Board) -> None:
    declare(board, Answer(output={"item": 5})).publishes(Parcel)
    assert "item" in (await refused(app, board))[0]


async def test_what_is_no_answer_fails_the_turn(board: Board) -> None:
    declare(board, 42).publishes(Parcel)
    await board.publish(Order())
    (failure,) = await failures(board)
    assert "EngineError" in failure and "42" in failure


def form(clerk: Clerk) -> Any:
    """The properties of what an engine was asked for."""
    asked = clerk.tasks[0].output
    assert asked is not None
    schema: Any = asked.schema
    return schema["properties"]


async def test_a_form_is_asked_for_that_says_what_is_published(board: Board) -> None:
    one, several = Clerk(), Clerk()
    board.agent("one").consumes(Order).publishes(Parcel).with_engines(one)
    board.agent("several").consumes(Order).publishes(Parcel, fan_out=(2, 5)).publishes(
        Receipt
    ).with_engines(several)
    await board.publish(Order())
    await failures(board)
    assert set(form(one)) == {"item", "notes"}
    listed = form(several)["artifacts"]
    assert listed["minItems"] == 2
    assert str(listed).count("'const'") == 2


async def test_artifacts_that_open_later_are_made_as_well(board: Board) -> None:
    opening = After(datetime.now(UTC) + timedelta(days=1), Labelled({"boss"}))  # noqa: TID251
    declare(board, Parcel()).publishes(Parcel, visibility=opening)
    await board.publish(Order())
    await idle(board)
    assert await everything(board, "Parcel", reader=BOSS) == []


class Unheard(BaseModel):
    """A type that no app knows."""


@pytest.mark.parametrize("made", [Unheard(), Answer(output={"type": "Unheard", "payload": {}})])
async def test_a_type_that_an_agent_does_not_publish_is_its_fault(
    app: Loom, board: Board, made: Any
) -> None:
    wrapped = Answer(output={"artifacts": [made.output]}) if isinstance(made, Answer) else made
    declare(board, wrapped).publishes(Parcel, fan_out=2)
    for problem in await refused(app, board):
        assert "'clerk'" in problem and "'Unheard'" in problem and "egister" not in problem
