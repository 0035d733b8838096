"""Runs continue when the model of their state changed, as far as their states are ones of today."""

from pathlib import Path as FilePath
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.flow.scenes import facts
from turnloom import DefinitionError, Flow, Loom, Path, PlanChanged, StepContext, append, complete


class Old(BaseModel):
    """The state as it was."""

    model_config = ConfigDict(frozen=True)

    kilos: int = 2
    notes: Annotated[list[str], append] = []


class More(Old):
    """With another field, which has a default and a reducer that is code."""

    best: Annotated[int, max] = 5


class Needed(Old):
    """With another field, which every state must have."""

    owner: str


class Renamed(BaseModel):
    """With a field of another name."""

    model_config = ConfigDict(frozen=True)

    weight: int = 0
    notes: Annotated[list[str], append] = []


class Forgetful(BaseModel):
    """Without a list that had a reducer."""

    model_config = ConfigDict(frozen=True)

    kilos: int = 2


def prepend(now: list[str], given: list[str]) -> list[str]:
    """What is given comes before what is there."""
    return [*given, *now]


class Replacing(Old):
    """With a list that changes replace."""

    notes: list[str] = []


class Prepending(Old):
    """With a list that code reduces."""

    notes: Annotated[list[str], prepend] = []


SEEN: list[Any] = []


async def book(state: Any) -> dict[str, Any]:
    """Note that it was taken."""
    print("booked")
    change: dict[str, Any] = {"notes": ["booked"]}
    return change


async def send(state: Any) -> dict[str, Any]:
    """Send what there is now."""
    SEEN.append(state)
    change: dict[str, Any] = {"best": 7} if isinstance(state, More) else {}
    return change


async def undo(state: Any, ctx: StepContext) -> None:
    """Keep what is undone."""
    SEEN.append(ctx.undoes)


def parcels(model: Any, **settings: Any) -> Flow[Any]:
    """A flow that waits for a person before it sends."""
    flow = Flow("parcels", model, **settings).start_with(book, compensate=undo)
    return flow.await_approval("boss").finally_(send)


@pytest.fixture
async def parked(tmp_path: FilePath) -> tuple[str, str]:
    """A run of the flow with the old state, which waits, and its store."""
    SEEN.clear()
    store = str(tmp_path / "turnloom.db")
    async with Loom(store=store) as app:
        return store, (await app.run(parcels(Old), Old(kilos=3))).run_id


async def sent(parked: tuple[str, str], flow: Flow[Any]) -> tuple[Any, list[Any]]:
    """The state at the end of a run that another flow continues, and what was migrated."""
    store, run_id = parked
    async with Loom(store=store) as app:
        app.register_flow(flow)
        run = await app.resume(run_id)
        await run.answer(None, "approve", user_id="boss")
        outcome = await run.outcome()
        assert outcome.status == "finished"
        return outcome.state, await facts(app, run_id, "state.migrated")


async def test_a_field_with_a_default_may_be_added(parked: tuple[str, str]) -> None:
    state, migrated = await sent(parked, parcels(More))
    assert state == More(kilos=3, notes=["booked"], best=7)
    assert SEEN == [More(kilos=3, notes=["booked"], best=5)]
    assert [each.states for each in migrated] == [
        {"": {"kilos": 3, "notes": ["booked"], "best": 5}}
    ]


async def test_a_state_is_what_migrate_makes_of_it(parked: tuple[str, str]) -> None:
    def migrate(old: dict[str, Any]) -> dict[str, Any]:
        return {"weight": old["kilos"] * 1000, "notes": old["notes"]}

    state, migrated = await sent(parked, parcels(Renamed, migrate=migrate))
    assert state == SEEN[0] == Renamed(weight=3000, notes=["booked"])
    assert len(migrated) == 1


async def test_migrate_may_give_a_state(parked: tuple[str, str]) -> None:
    state, _ = await sent(parked, parcels(Needed, migrate=lambda old: Needed(**old, owner="ada")))
    assert state == Needed(kilos=3, notes=["booked"], owner="ada")


@pytest.mark.parametrize(
    ("model", "migrate"),
    [
        (Needed, None),
        (Renamed, None),
        (Needed, lambda old: old),
        (Needed, lambda old: 5),
        (Needed, lambda old: old["nothing"]),
        (Forgetful, lambda old: {"kilos": old["kilos"]}),
    ],
)
async def test_a_state_that_is_none_of_today_is_refused_and_the_run_stays_as_it_is(
    parked: tuple[str, str], model: Any, migrate: Any
) -> None:
    store, run_id = parked
    async with Loom(store=store) as app:
        app.register_flow(parcels(model, migrate=migrate))
        before = await app.history.events(run_id)
        with pytest.raises(PlanChanged):
            await (await app.resume(run_id)).outcome()
        assert await app.history.events(run_id) == before
    state, _ = await sent(parked, parcels(Old))
    assert state == Old(kilos=3, notes=["booked"])


async def test_other_differences_are_refused_as_before(parked: tuple[str, str]) -> None:
    store, run_id = parked
    async with Loom(store=store) as app:
        app.register_flow(parcels(More, timeout=60))
        with pytest.raises(PlanChanged):
            await (await app.resume(run_id)).outcome()


@pytest.mark.parametrize("model", [Replacing, Prepending])
async def test_a_field_that_is_reduced_otherwise_is_refused(
    parked: tuple[str, str], model: Any
) -> None:
    store, run_id = parked
    async with Loom(store=store) as app:
        app.register_flow(parcels(model, migrate=lambda old: old))
        with pytest.raises(PlanChanged) as refused:
            await (await app.resume(run_id)).outcome()
    assert '"notes": "appended"' in str(refused.value)
    state, _ = await sent(parked, parcels(Old))
    assert state == Old(kilos=3, notes=["booked"])


async def test_a_cancelled_run_has_the_state_that_its_own_reducers_made(tmp_path: FilePath) -> None:
    def twice(model: Any) -> Flow[Any]:
        flow = Flow("twice", model).start_with(book).then(book, name="again")
        return flow.then(send, compensate=undo).await_approval("boss")

    SEEN.clear()
    store = str(tmp_path / "turnloom.db")
    async with Loom(store=store) as app:
        run_id = (await app.run(twice(Old), Old())).run_id
    async with Loom(store=store) as app:
        app.register_flow(twice(Replacing))
        assert await app.handle(run_id).cancel()
    assert SEEN[-1].state == Replacing(notes=["booked", "booked"])


async def test_what_was_done_before_is_undone_with_a_state_of_today(
    parked: tuple[str, str],
) -> None:
    def migrate(old: dict[str, Any]) -> dict[str, Any]:
        return {"weight": old["kilos"], "notes": old["notes"]}

    store, run_id = parked
    async with Loom(store=store) as app:
        app.register_flow(parcels(Renamed, migrate=migrate))
        assert await app.handle(run_id).cancel()
    assert [each.state for each in SEEN] == [Renamed(weight=3)]
    assert [each.result for each in SEEN] == [{"notes": ["booked"]}]


async def test_paths_of_a_fork_continue_with_the_state_of_today(tmp_path: FilePath) -> None:
    def forked(model: Any) -> Flow[Any]:
        asked = Path().await_approval("boss", on_rejection=complete())
        flow = Flow("forked", model).start_with(book, name="first")
        return flow.fork(Path(book), asked, join=send)

    SEEN.clear()
    store = str(tmp_path / "turnloom.db")
    async with Loom(store=store) as app:
        run_id = (await app.run(forked(Old), Old())).run_id
    state, _ = await sent((store, run_id), forked(More))
    assert state == More(notes=["booked", "booked"], best=7)


@pytest.mark.parametrize("migrate", [5, lambda: {}, sent])
def test_what_cannot_migrate_is_refused(migrate: Any) -> None:
    with pytest.raises(DefinitionError) as refused:
        parcels(Old, migrate=migrate)
    assert [each.code for each in refused.value.diagnostics] == ["W126"]
