"""A step that did something and was cut off is made up for, whatever cut it off."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Any

import pytest

from tests.flow.scenes import Work, flow_of, note, taken
from tests.support.timed import Timed
from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    Flow,
    FlowFailed,
    Loom,
    Path,
    StepContext,
    Task,
    ToolCall,
)


class Booking:
    """A step that books something on record, and then does not come to its end."""

    def __init__(self, *, books: bool = True) -> None:
        self.booked = asyncio.Event()
        self.undone = 0
        self._books = books

    async def book(self, state: Work, ctx: StepContext) -> None:
        """Book, and hang."""
        if self._books:
            await ctx.once("book", self._pay)
        self.booked.set()
        await asyncio.sleep(3600)

    async def _pay(self) -> str:
        return "paid"

    async def cancel(self, state: Work, ctx: StepContext) -> dict[str, Any]:
        """Take it back."""
        self.undone += 1
        return {"notes": ["taken back"]}

    async def fails(self, state: Work, ctx: StepContext) -> None:
        """Fail once it is booked."""
        await self.booked.wait()
        raise ValueError("no")

    @property
    def path(self) -> Path:
        return Path().then(self.book, compensate=self.cancel, name="book")


@pytest.fixture
def booking() -> Booking:
    return Booking()


async def cancelled(app: Loom, booking: Booking) -> str:
    flow = flow_of(note("a")).then(booking.book, compensate=booking.cancel, name="book")
    run = await app.start(flow, Work())
    await booking.booked.wait()
    await run.cancel()
    await run.finished()
    return run.id


async def timed_out(app: Timed, booking: Booking) -> str:
    flow = Flow("trip", Work, timeout=1).start_with(note("a"))
    flow = flow.then(booking.book, compensate=booking.cancel, name="book")
    run = await app.start(flow, Work())
    await booking.booked.wait()
    app.clock.advance(timedelta(seconds=2))
    assert (await run.outcome()).status == "failed"
    return run.id


async def beside_a_failure(app: Loom, booking: Booking) -> str:
    flow = flow_of(note("a")).fork(booking.path, Path(booking.fails), join=note("join"))
    with pytest.raises(FlowFailed) as failed:
        await app.run(flow, Work())
    return failed.value.outcome.run_id


ENDS: list[Callable[[Timed, Booking], Awaitable[str]]] = [cancelled, timed_out, beside_a_failure]


@pytest.mark.parametrize("end", ENDS)
async def test_a_step_that_acted_is_made_up_for(timed: Timed, end: Any, booking: Booking) -> None:
    run = await end(timed, booking)
    assert booking.undone == 1
    assert [place for place in await taken(timed, run) if place.endswith("book~")]


@pytest.mark.parametrize("end", ENDS)
async def test_a_step_that_did_nothing_on_record_is_not(timed: Timed, end: Any) -> None:
    idle = Booking(books=False)
    await end(timed, idle)
    assert not idle.undone


async def test_what_acted_comes_before_what_was_completed(app: Loom, booking: Booking) -> None:
    undone: list[str] = []

    async def undo(state: Work, ctx: StepContext) -> None:
        undone.append(f"{ctx.step} after {booking.undone}")

    first = flow_of(note("a")).then(note("b"), compensate=undo, name="b")
    flow = first.then(booking.book, compensate=booking.cancel, name="book")
    run = await app.start(flow, Work())
    await booking.booked.wait()
    await run.cancel()
    await run.finished()
    assert undone == ["undo after 1"]


async def test_a_failure_that_is_handled_leaves_what_acted_to_a_later_end(
    app: Loom, booking: Booking
) -> None:
    async def ends(state: Work, ctx: StepContext) -> None:
        raise ValueError("later")

    fork = Path().fork(booking.path, Path(booking.fails), join=note("join"))
    inner = Path().fork(fork.on_failure(Path(note("handled"))), Path(note("b")), join=note("both"))
    flow = Flow("trip", Work).start_with(note("a")).then(note("c"))
    flow = flow.branch(lambda state: True, {True: inner}).then(ends)
    with pytest.raises(FlowFailed):
        await app.run(flow, Work())
    assert booking.undone == 1


async def test_another_program_makes_up_for_what_the_first_one_did(tmp_path: FilePath) -> None:
    booking, store = Booking(), str(tmp_path / "runs.db")
    flow = flow_of(note("a")).then(booking.book, compensate=booking.cancel, name="book")
    async with Loom(store=store) as app:
        run = await app.start(flow, Work())
        await booking.booked.wait()
    async with Loom(store=store) as app:
        app.register_flow(flow)
        await app.handle(run.id).cancel()
        await app.handle(run.id).finished()
    assert booking.undone == 1


async def test_an_agent_whose_tool_returned_is_made_up_for(app: Loom) -> None:
    asked, undone = asyncio.Event(), asyncio.Event()

    async def pay() -> str:
        """Pay."""
        return "paid"

    async def answer(task: Task) -> Answer:
        if not task.exchanges:
            return Answer("", calls=(ToolCall("pay", {}),))
        asked.set()
        await asyncio.sleep(3600)
        raise AssertionError

    class Payer(AgentStep[Work]):
        tools = (pay,)
        engine = staticmethod(answer)

        def user_prompt(self, state: Work) -> str:
            return "Pay."

        def apply(self, state: Work, answer: Any, context: AssembledContext) -> dict[str, Any]:
            return {"notes": [answer]}

    async def refund(state: Work, ctx: StepContext) -> None:
        undone.set()

    flow = flow_of(note("a")).then(Payer(), compensate=refund)
    run = await app.start(flow, Work())
    await asked.wait()
    await run.cancel()
    await run.finished()
    assert undone.is_set()
