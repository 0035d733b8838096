"""What is shared is seen by every tenant. Only the program shares, and it wakes its own only."""

from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.reaction.scenes import Clerk, Order, Parcel, everything, facts, failures, idle, pack
from turnloom import Board, Loom
from turnloom.agents.spec import Answer, Publication
from turnloom.assembly.logic.labels import combine, together
from turnloom.board.logic.rows import read_visibility, write_visibility
from turnloom.board.spec import (
    After,
    Labelled,
    Private,
    Public,
    Reader,
    Shared,
    Tenant,
    Visibility,
)
from turnloom.errors import UsageError
from turnloom.testing import FakeClock

PAST, SOON = datetime(2020, 1, 1, tzinfo=UTC), timedelta(hours=1)
SHARING: list[Visibility] = [Shared(), After(PAST, Shared()), After(PAST, After(PAST, Shared()))]
NARROWER: list[Visibility] = [
    Public(),
    Private({"eve"}),
    Labelled({"staff"}),
    Tenant("ann"),
    After(PAST, Private({"eve"})),
]


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory" if request.param == "memory" else str(tmp_path / "turnloom.db")


def boards(app: Loom) -> tuple[Board, Board, Clerk]:
    """A board of `ann`, one of `bob`, and the engine of an agent of his that wants orders."""
    clerk = Clerk(pack)
    theirs = app.board("theirs", app_id="bob")
    theirs.agent("clerk").consumes(Order).publishes(Parcel).with_engines(clerk)
    return app.board("ours", app_id="ann"), theirs, clerk


@pytest.mark.parametrize("visibility", SHARING)
def test_an_agent_that_declares_to_share_is_refused(visibility: Visibility) -> None:
    board = Loom(store="memory").board()
    with pytest.raises(UsageError):
        board.agent("clerk").consumes(Order).publishes(Parcel, visibility=visibility)


@pytest.mark.parametrize("visibility", SHARING)
@pytest.mark.parametrize("inherits", [False, True])
async def test_an_engine_that_shares_is_refused(visibility: Visibility, inherits: bool) -> None:
    made = Answer(artifacts=(Publication(Parcel(), visibility=visibility),))
    async with Loom(store="memory") as app:
        board = app.board()
        clerk = board.agent("clerk").consumes(Order).with_engines(Clerk(lambda task: made))
        clerk.publishes(Parcel, inherit=inherits)
        await board.publish(Order())
        assert len(await failures(board)) == 1
        refused = await facts(app, "output.refused")
        assert refused and {each.agent for each in refused} == {"clerk"}
        everyone = Reader(role="developer")
        assert await everything(board, "Parcel", reader=everyone) == []
        assert await everything(board, "Parcel", reader=Reader(tenant="bob")) == []


@pytest.mark.parametrize("visibility", SHARING)
async def test_what_inherits_from_what_is_shared_stays_in_its_tenant(
    visibility: Visibility,
) -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        clerk = board.agent("clerk").consumes(Order).with_engines(Clerk(pack))
        clerk.publishes(Parcel, inherit=True)
        await board.publish(Order(), visibility=visibility)
        await idle(board)
        assert len(await everything(board, "Order", reader=Reader(tenant="bob"))) == 1
        assert await everything(board, "Parcel", reader=Reader(tenant="bob")) == []
        assert len(await everything(board, "Parcel")) == 1


@pytest.mark.parametrize("other", NARROWER)
def test_shared_is_the_widest(other: Visibility) -> None:
    for both in permutations((Shared(), other)):
        assert combine(both) == other
    assert together((Shared(), other)) == together((other,))


def test_what_is_made_of_shared_things_alone() -> None:
    assert combine((Shared(), Shared())) == Shared()
    assert together((Shared(), Shared())) == ()
    assert combine((Shared(), After(PAST, Public()))) == After(PAST, Public())


@pytest.mark.parametrize("visibility", SHARING)
async def test_what_a_program_shares_is_seen_and_wakes_none_of_another_tenant(
    store: str, visibility: Visibility
) -> None:
    async with Loom(store=store) as app:
        ours, theirs, clerk = boards(app)
        shared = await ours.publish(Order(item="tea"), visibility=visibility, id="order")
        await ours.publish(Order(item="own"), id="own")
        await idle(ours)
        await idle(theirs)
        assert await everything(theirs) == [shared] and await theirs.get("order") == shared
        assert shared.visibility == visibility and await theirs.get("own") is None
        assert (await theirs.summary()).total == 1
        assert clerk.tasks == [] and await app.runs(app_id="bob") == []


async def test_a_shared_id_is_free_for_others(store: str) -> None:
    """What a tenant publishes under the id of a shared artifact is its own, and wakes its own."""
    async with Loom(store=store) as app:
        ours, theirs, clerk = boards(app)
        shared = await ours.publish(Order(item="tea"), visibility=Shared(), id="order")
        own = await theirs.publish(Order(item="coffee"), id="order")
        await idle(theirs)
        assert clerk.given == [["coffee"]]
        assert await theirs.get("order") == own and await ours.get("order") == shared


async def test_an_agent_is_shown_what_others_share(store: str) -> None:
    """In a correlation of one name, which is the tenant's own."""
    async with Loom(store=store) as app:
        ours, theirs, clerk = boards(app)
        await ours.publish(Order(item="shared"), visibility=Shared(), correlation_id="same")
        await ours.publish(Order(item="hidden"), correlation_id="same")
        await theirs.publish(Order(item="own"), correlation_id="same")
        await idle(theirs)
        assert clerk.given == [["own"]] and clerk.seen == [["shared"]]


async def test_what_is_shared_from_an_instant_on_opens_for_others_then(store: str) -> None:
    clock = FakeClock()
    async with Loom(store=store, clock=clock) as app:
        ours, theirs, _ = boards(app)
        await ours.publish(Order(), visibility=After(clock.now() + SOON, Shared()), id="order")
        developer = theirs.read_as(Reader(tenant="bob", role="developer"))
        assert await theirs.get("order") is None and await developer.get("order") is None
        clock.time += SOON
        seen: list[Any] = [await theirs.get("order"), await developer.get("order")]
        assert [each.id for each in seen] == ["order", "order"]


@pytest.mark.parametrize("visibility", SHARING)
def test_a_round_trip(visibility: Visibility) -> None:
    assert read_visibility(write_visibility(visibility)) == visibility
