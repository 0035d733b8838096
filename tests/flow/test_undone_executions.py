"""What makes up for a step is told which execution of it, and what that was given and gave."""

from pathlib import Path as FilePath
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict

from turnloom import Flow, FlowFailed, Loom, Path, StepContext, append


class Trip(BaseModel):
    """Tickets that are booked one after the other."""

    model_config = ConfigDict(frozen=True)

    ticket: str = ""
    wanted: int = 0
    log: Annotated[list[str], append] = []


class Seat(BaseModel):
    """What a step can book beside tickets."""

    model_config = ConfigDict(frozen=True)

    row: int


class Seated(Trip):
    """A trip with a seat that is a model of its own."""

    seat: Seat | None = None


class Office:
    """Books tickets, and takes them back; remembers what it was told then."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.ids: list[str] = []
        self.undone: list[Any] = []
        self.states: list[Any] = []

    async def want(self, trip: Trip) -> dict[str, Any]:
        """Say which ticket is next."""
        return {"wanted": trip.wanted + 1}

    async def book(self, trip: Trip, ctx: StepContext) -> dict[str, Any]:
        """Book a ticket."""
        self.keys.append(ctx.idempotency_key)
        self.ids.append(ctx.execution_id)
        return {"ticket": f"t{trip.wanted}", "log": [f"booked t{trip.wanted}"]}

    async def cancel(self, trip: Trip, ctx: StepContext) -> dict[str, Any]:
        """Take a ticket back."""
        self.undone.append(ctx.undoes)
        self.states.append(trip)
        return {"log": ["cancelled"]}

    async def fails(self, trip: Trip) -> None:
        """Fail."""
        raise ValueError("no more")

    def trips(self) -> Flow[Trip]:
        """A flow that books three tickets, and then asks."""
        return (
            Flow("trips", Trip)
            .start_with(self.want, name="first")
            .repeat_until(
                lambda trip: trip.wanted == 4,
                Path().then(self.book, compensate=self.cancel).then(self.want),
            )
            .await_approval("boss")
            .finally_(self.fails)
        )


@pytest.fixture
def office() -> Office:
    return Office()


def assert_undone(office: Office) -> None:
    """That each ticket was taken back, the last one first."""
    assert [each.result for each in office.undone] == [
        {"ticket": f"t{n}", "log": [f"booked t{n}"]} for n in (3, 2, 1)
    ]
    assert [each.state.wanted for each in office.undone] == [3, 2, 1]
    assert [each.state.ticket for each in office.undone] == ["t2", "t1", ""]
    assert [each.idempotency_key for each in office.undone] == office.keys[::-1]
    assert [each.execution_id for each in office.undone] == office.ids[::-1]
    assert {each.step for each in office.undone} == {"book"}
    # The state itself is the one that there is now, with what was undone before.
    assert [each.ticket for each in office.states] == ["t3"] * 3
    assert [each.log.count("cancelled") for each in office.states] == [0, 1, 2]


async def test_each_pass_is_undone_with_what_it_gave(app: Loom, office: Office) -> None:
    run = await app.start(office.trips(), Trip())
    assert (await run.outcome()).status == "waiting"
    await run.answer(None, "approve", user_id="boss")
    assert (await run.outcome()).status == "failed"
    assert_undone(office)


async def test_another_process_undoes_with_what_the_log_holds(
    tmp_path: FilePath, office: Office
) -> None:
    store = str(tmp_path / "turnloom.db")
    async with Loom(store=store) as app:
        run_id = (await app.run(office.trips(), Trip())).run_id
    async with Loom(store=store) as app:
        app.register_flow(office.trips())
        assert await app.handle(run_id).cancel()
    assert_undone(office)


async def test_values_of_a_result_are_what_the_state_says_that_they_are(app: Loom) -> None:
    undone: list[Any] = []

    async def book(trip: Seated) -> dict[str, Any]:
        return {"seat": Seat(row=3)}

    async def cancel(trip: Seated, ctx: StepContext) -> None:
        undone.append(ctx.undoes)

    async def fails(trip: Seated) -> None:
        raise ValueError("no")

    flow = Flow("seated", Seated).start_with(book, compensate=cancel).finally_(fails)
    with pytest.raises(FlowFailed):
        await app.run(flow, Seated())
    assert undone[0].result == {"seat": Seat(row=3)} and undone[0].state == Seated()


async def test_a_step_that_did_not_complete_has_no_result(app: Loom, office: Office) -> None:
    async def book(trip: Trip, ctx: StepContext) -> None:
        office.ids.append(ctx.execution_id)
        raise ValueError("no")

    flow = (
        Flow("trip", Trip).start_with(office.want).finally_(book, compensate=office.cancel, retry=1)
    )
    with pytest.raises(FlowFailed):
        await app.run(flow, Trip())
    (undone,) = office.undone
    assert undone.result is None and undone.state.wanted == 1
    assert undone.execution_id == office.ids[-1] != office.ids[0]


async def test_a_path_of_a_fork_is_undone_with_its_own_state(app: Loom, office: Office) -> None:
    async def other(trip: Trip) -> dict[str, Any]:
        return {"log": ["other"]}

    async def join(trip: Trip) -> None:
        return None

    path = Path().then(office.want, name="next").then(office.book, compensate=office.cancel)
    flow = Flow("trip", Trip).start_with(office.fails, on_failure=office.want, recover=True)
    flow = flow.fork(path, Path(other), join=join)
    with pytest.raises(FlowFailed):
        await app.run(flow.finally_(office.fails, name="last"), Trip())
    (undone,) = office.undone
    assert undone.result["ticket"] == "t2"
    assert undone.state == Trip(wanted=2)


async def test_a_step_that_undoes_nothing_is_told_of_nothing(app: Loom, office: Office) -> None:
    await app.run(Flow("trip", Trip).start_with(office.cancel), Trip())
    assert office.undone == [None]
