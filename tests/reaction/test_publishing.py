"""Getting things onto a board: ids, correlations, boards and apps that do not meet."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.reaction.scenes import (
    SOON,
    Clerk,
    Order,
    Parcel,
    Payment,
    Receipt,
    everything,
    facts,
    idle,
    pack,
    statuses,
)
from turnloom import Board, Loom
from turnloom.agents.spec import Task
from turnloom.board.spec import After, FilterConfig, Labelled, Private, Reader, artifact_type
from turnloom.errors import ArtifactExists, InvalidArtifact, UnknownType, UsageError


@pytest.fixture(params=["memory", "sqlite", "PostgreSQL"])
def place(request: pytest.FixtureRequest) -> str:
    """Where artifacts are kept: beside the runs, or in a database of their own."""
    return request.param


@pytest.fixture
def store(place: str, tmp_path: Path) -> str:
    return str(tmp_path / "turnloom.db") if place == "sqlite" else "memory"


@pytest.fixture
def artifacts(place: str, request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgres_url") if place == "PostgreSQL" else None


@pytest.fixture
def clerk(board: Board) -> Clerk:
    clerk = Clerk(pack)
    board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    return clerk


async def test_a_value_is_made_out_of_json(board: Board, clerk: Clerk) -> None:
    assert board.value("Order", {"item": "a"}) == Order(item="a")
    with pytest.raises(UnknownType):
        board.value("Ordr", {"item": "a"})
    with pytest.raises(InvalidArtifact):
        board.value("Order", {"item": 5})


async def test_a_publish_begins_a_run_and_what_it_sets_off_belongs_to_it(
    app: Loom, board: Board, clerk: Clerk
) -> None:
    one, two = await board.publish(Order(item="a")), await board.publish(Order(item="b"))
    await idle(board)
    assert one.run != two.run
    assert (one.correlation_id, two.correlation_id) == (one.run, two.run)
    parcels = {each.payload["item"]: each for each in await everything(board, "Parcel")}
    assert (parcels["a"].run, parcels["b"].run) == (one.run, two.run)
    assert await statuses(app) == ["finished", "finished"]


async def test_what_is_published_is_there_before_anything_comes_of_it(
    app: Loom, board: Board, clerk: Clerk
) -> None:
    order = await board.publish(Order(), tags=["hot"])
    assert await board.get(order.id) == order
    published = await facts(app, "artifact.published", order.run)
    assert published[0].artifact == order
    assert (order.produced_by, order.tags, order.parents) == ("user", {"hot"}, ())
    assert order.created_at.tzinfo is not None
    await idle(board)


async def test_a_correlation_is_any_text(app: Loom, board: Board, clerk: Clerk) -> None:
    for name in ("order-42", "Ünïcode/with\nlines", " "):
        first = await board.publish(Order(item="a"), correlation_id=name)
        second = await board.publish(Order(item="b"), correlation_id=name)
        await idle(board)
        assert {first.correlation_id, second.correlation_id} == {name}
    items, _ = await board.query_artifacts(FilterConfig(correlation_id="order-42"))
    assert len(items) == 4


async def test_a_correlation_whose_run_has_ended_goes_on_in_another(
    app: Loom, board: Board, clerk: Clerk
) -> None:
    first = await board.publish(Order(item="a"), correlation_id="one")
    await idle(board)
    second = await board.publish(Order(item="b"), correlation_id="one")
    await idle(board)
    assert first.run != second.run
    assert clerk.seen == [[], ["a", "a"]], "the context is of the correlation"
    assert await statuses(app) == ["finished", "finished"]


async def test_many_are_published_at_once_or_none(board: Board, clerk: Clerk) -> None:
    @artifact_type(name="shop.Odd")
    class Odd(BaseModel):
        value: Any = None

    with pytest.raises(InvalidArtifact):
        await board.publish_many([Order(), Odd(value=object())])
    with pytest.raises(UsageError):
        await board.publish_many([Order(), 5])  # type: ignore[list-item]
    assert await everything(board) == []
    orders = await board.publish_many([Order(item=str(n)) for n in range(100)], tags={"hot"})
    await idle(board)
    assert [each.payload["item"] for each in orders] == [str(n) for n in range(100)]
    assert len({each.run for each in orders}) == 100
    assert len(await everything(board, "Parcel")) == 100
    assert all(each.tags == {"hot"} for each in orders)


async def test_many_of_one_correlation_are_in_one_run(board: Board, clerk: Clerk) -> None:
    app_known = [Order(item="a"), Receipt(total=1), Order(item="b")]
    published = await board.publish_many(
        app_known, correlation_id="one", visibility=Private({"clerk"})
    )
    await idle(board)
    assert sorted(clerk.given) == [["a"], ["b"]]
    assert {each.correlation_id for each in published} == {"one"}
    assert len(await everything(board, "Order", reader=Reader("clerk"))) == 2
    assert await everything(board, "Order") == []


@pytest.mark.parametrize("correlation", [None, "one"])
async def test_an_id_that_is_there_is_a_repeat_or_refused(
    board: Board, clerk: Clerk, correlation: str | None
) -> None:
    async def publish(value: BaseModel, **more: Any) -> Any:
        return await board.publish(value, id="order-1", correlation_id=correlation, **more)

    first = await publish(Order(item="tea"), tags={"a", "b"})
    assert first.id == "order-1"
    assert await publish(Order(item="tea"), tags={"b", "a"}) == first
    with pytest.raises(ArtifactExists, match="order-1"):
        await publish(Order(item="milk"), tags={"a", "b"})
    with pytest.raises(ArtifactExists):
        await publish(Order(item="tea"))
    with pytest.raises(ArtifactExists):
        await publish(Order(item="tea"), tags={"a", "b"}, visibility=Labelled({"x"}))
    with pytest.raises(ArtifactExists):
        await publish(Payment(item="tea"), tags={"a", "b"})
    await idle(board)
    assert clerk.given == [["tea"]]
    assert len(await everything(board, "Order")) == 1


async def test_an_id_in_another_correlation_is_refused(board: Board, clerk: Clerk) -> None:
    await board.publish(Order(), id="order-1", correlation_id="one")
    with pytest.raises(ArtifactExists):
        await board.publish(Order(), id="order-1", correlation_id="two")
    with pytest.raises(ArtifactExists):
        await board.publish(Order(), id="order-1")
    await idle(board)


async def test_many_who_publish_the_same_id_at_once_publish_it_once(
    board: Board, clerk: Clerk
) -> None:
    same = [board.publish(Order(), id="order-1") for _ in range(10)]
    published = await asyncio.gather(*same)
    await idle(board)
    assert len({each.run for each in published}) == 1
    assert clerk.given == [["tea"]]


async def test_an_id_of_what_an_agent_made_is_taken_as_well(board: Board, clerk: Clerk) -> None:
    await board.publish(Order())
    await idle(board)
    (parcel,) = await everything(board, "Parcel")
    with pytest.raises(ArtifactExists):
        await board.publish(Parcel(), id=parcel.id)


async def test_concurrent_publishers_lose_nothing(board: Board, clerk: Clerk) -> None:
    async def publisher(name: str) -> None:
        for number in range(10):
            await board.publish(Order(item=f"{name}{number}"), correlation_id=name)

    await asyncio.gather(*(publisher(name) for name in "abc"))
    await idle(board)
    assert len(await everything(board, "Order")) == len(await everything(board, "Parcel")) == 30
    assert sorted(clerk.given) == sorted([f"{name}{n}"] for name in "abc" for n in range(10))


async def test_what_cannot_be_is_refused_before_it_is_stored(
    app: Loom, board: Board, clerk: Clerk
) -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(InvalidArtifact):
        await board.publish(Order(), visibility=After(naive))
    with pytest.raises(InvalidArtifact):
        await board.publish(Order(), tags="hot")
    with pytest.raises(InvalidArtifact):
        await board.publish(Order(), visibility="public")  # type: ignore[arg-type]
    with pytest.raises(InvalidArtifact):
        await board.publish(Order(), id="")
    with pytest.raises(UsageError, match="since"):
        FilterConfig(since=naive)
    assert await app.runs() == []


async def test_boards_do_not_wake_each_others_agents(app: Loom) -> None:
    clerks = [Clerk(pack), Clerk(pack)]
    boards = [app.board("one"), app.board("two")]
    for board, clerk in zip(boards, clerks, strict=True):
        board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    await boards[0].publish(Order(item="a"), correlation_id="same")
    await boards[1].publish(Order(item="b"), correlation_id="same")
    for board in boards:
        await idle(board)
    assert [clerk.given for clerk in clerks] == [[["a"]], [["b"]]]
    with pytest.raises(UsageError, match="'one'"):
        app.board("one")
    with pytest.raises(UsageError, match="'no/slash'"):
        app.board("no/slash")


async def test_apps_do_not_meet() -> None:
    clerk = Clerk()
    async with Loom(store="memory") as one, Loom(store="memory") as two:
        board, other = one.board(), two.board()
        board.agent("clerk").consumes(Order).with_engines(clerk)
        other.register(Order)
        await other.publish(Order())
        await idle(other)
        assert await everything(board) == []
        assert len(await everything(other)) == 1
        assert clerk.given == []


async def test_a_closed_board_takes_nothing_and_can_be_read(board: Board, clerk: Clerk) -> None:
    order = await board.publish(Order())
    await board.close(SOON)
    assert clerk.given == [["tea"]]
    for call in (board.publish(Order()), board.publish_many([Order()]), board.resume()):
        with pytest.raises(UsageError):
            await call
    for call in (board.invoke("clerk", Order()), board.retry("x"), board.cancel("x")):
        with pytest.raises(UsageError):
            await call
    assert await board.get(order.id) == order
    await idle(board)
    await board.close(SOON)


async def test_a_closed_app_has_no_board(store: str) -> None:
    async with Loom(store=store) as app:
        board = app.board()
    with pytest.raises(UsageError):
        await board.publish(Order())


async def test_an_agent_that_is_declared_later_takes_part_from_then_on(
    board: Board, clerk: Clerk
) -> None:
    late = Clerk()
    await board.publish(Order(item="a"))
    await idle(board)
    board.agent("late").consumes(Order).with_engines(late)
    await board.publish(Order(item="b"))
    await idle(board)
    assert clerk.given == [["a"], ["b"]]
    assert late.given == [["b"]]


async def test_reading_sees_what_the_reader_may(board: Board, clerk: Clerk) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)  # noqa: TID251
    await board.publish(Receipt(total=1))
    await board.publish(Receipt(total=2), visibility=Labelled({"boss"}))
    await board.publish(Receipt(total=3), visibility=After(soon))
    boss = board.read_as(Reader(labels={"boss"}))
    assert (await board.summary()).total == 1
    assert (await boss.summary()).total == 2
    _, total = await boss.query_artifacts(count=True)
    assert total == 2


@pytest.mark.parametrize("is_own", [True, False])
async def test_an_engine_may_publish_while_it_works(board: Board, is_own: bool) -> None:
    async def busy(task: Task) -> Parcel:
        correlation = task.inputs[0].correlation_id if is_own else None
        await board.publish(Payment(item="meanwhile"), correlation_id=correlation)
        (made,) = await board.invoke("helper", Order(item="help"))
        return Parcel(notes=str(made.payload["total"]))

    cashier = Clerk()
    board.agent("busy").consumes(Order).publishes(Parcel).with_engines(busy)
    board.agent("cashier").consumes(Payment).with_engines(cashier)
    board.agent("helper").publishes(Receipt).with_engines(Clerk(lambda task: Receipt(total=5)))
    order = await board.publish(Order())
    await idle(board)
    assert cashier.given == [["meanwhile"]]
    assert (cashier.tasks[0].run == order.run) is is_own
    (parcel,) = await everything(board, "Parcel")
    assert parcel.payload["notes"] == "5"


async def test_an_artifact_may_lie_in_a_partition(board: Board, clerk: Clerk) -> None:
    order = await board.publish(Order(), partition="north")
    await board.publish(Order())
    await idle(board)
    items, _ = await board.query_artifacts(FilterConfig(partition="north"))
    assert [each.id for each in items] == [order.id]


async def test_a_board_is_asked_in_pages(board: Board, clerk: Clerk) -> None:
    await board.publish_many([Order(item=str(number)) for number in range(5)])
    await idle(board)
    filter, items, cursor = FilterConfig(types={"Order"}, limit=2), list[Any](), None
    for size in (2, 2, 1):
        page, total = await board.query_artifacts(
            filter, embed_meta=True, cursor=cursor, count=True
        )
        assert (len(page), total) == (size, 5)
        items += page
        cursor = page.cursor
    assert cursor is None
    assert len({each.id for each in items}) == 5
    assert {each.consumptions[0].agent for each in items} == {"clerk"}
    assert (await board.summary(filter=filter)).by_type == {"shop.Order": 5}


async def test_a_board_is_read_as_a_whole(board: Board, clerk: Clerk) -> None:
    orders = await board.publish_many([Order(item=str(number)) for number in range(5)])
    await idle(board)
    filter, ids = FilterConfig(types={"Order"}), [each.id for each in orders]
    read: list[Any] = [each async for each in board.iter_artifacts(filter, embed_meta=True)]
    assert [each.id for each in read] == ids
    assert {each.consumptions[0].agent for each in read} == {"clerk"}
    three = FilterConfig(types={"Order"}, limit=3)
    assert [each.id async for each in board.iter_artifacts(three)] == ids[:3]
    assert len([each async for each in board.iter_artifacts()]) > 5


async def test_an_artifact_has_the_version_of_its_type(board: Board) -> None:
    @artifact_type(name="shop.Note", version=3)
    class Note(BaseModel):
        text: str = ""

    board.agent("clerk").consumes(Order).publishes(Note).with_engines(Clerk(lambda task: Note()))
    note = await board.publish(Note())
    order = await board.publish(Order())
    await idle(board)
    assert (note.version, order.version) == (3, 1)
    assert [each.version for each in await everything(board, "Note")] == [3, 3]
    with pytest.raises(UsageError, match="0"):
        artifact_type(version=0)


async def test_two_programs_publish_in_one_correlation(tmp_path: Path) -> None:
    """Its runs come one after the other, and each artifact is in one of them."""
    file = str(tmp_path / "shared.db")
    async with Loom(store=file) as one, Loom(store=file) as other:
        boards = [app.board("shared") for app in (one, other)]
        for board in boards:
            board.agent("clerk").consumes(Order).publishes(Parcel).with_engines(Clerk(pack))
        many = [
            board.publish_many(
                [Order(item=f"{n} {item}") for item in range(20)], correlation_id="one"
            )
            for n, board in enumerate(boards)
        ]
        published = [each for some in await asyncio.gather(*many) for each in some]
        for board in boards:
            await idle(board)
        assert len({each.id for each in published}) == 40
        logs = [await one.history.events(each.run) for each in reversed(await one.runs(100))]
        stored = [
            (event.run, event.data.artifact.id)
            for log in logs
            for event in log
            if event.kind == "artifact.published" and event.data.artifact.produced_by == "user"
        ]
    assert sorted(stored) == sorted((each.run or "", each.id) for each in published)
    assert all(log[-1].kind == "run.finished" for log in logs)
    assert all(before[-1].at <= after[0].at for before, after in pairwise(logs))
