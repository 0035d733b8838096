"""A shop: what is published on boards whose logs are golden, and who answers there."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from turnloom import (
    Answer,
    Board,
    ContextRequest,
    ContextSlice,
    Loom,
    Task,
    ToolCall,
    artifact_type,
)

# Seconds within which everything that a scene waits for happens, however busy the machine is.
SOON = 50.0
MINUTE = timedelta(minutes=1)


@artifact_type(name="shop.Order")
class Order(BaseModel):
    """What most agents here wait for."""

    item: str = "tea"
    number: int = 0


@artifact_type(name="shop.Payment")
class Payment(BaseModel):
    """What belongs to an order."""

    item: str = "tea"
    amount: int = 0


@artifact_type(name="shop.Parcel")
class Parcel(BaseModel):
    """What most agents here make."""

    item: str = "tea"
    notes: str = ""


@artifact_type(name="shop.Receipt")
class Receipt(BaseModel):
    """What comes of it in the end."""

    total: int = 0


async def pack(task: Task) -> Parcel:
    """A parcel with what the first input is about."""
    return Parcel(item=task.inputs[0].payload["item"])


async def charge(task: Task) -> Payment:
    """A payment for what the first input is about."""
    return Payment(item=task.inputs[0].payload["item"], amount=3)


async def sign(task: Task) -> Receipt:
    """A receipt for all inputs."""
    return Receipt(total=len(task.inputs))


async def look(task: Task) -> str:
    """Words, and nothing else."""
    return f"{task.agent} has seen it."


async def fail(task: Task) -> Any:
    """Nothing at all."""
    raise RuntimeError("out of stock")


def failing_once() -> Callable[[Task], Awaitable[Any]]:
    """An engine that fails the first time that it is asked."""
    tasks: list[Task] = []

    async def once(task: Task) -> Any:
        tasks.append(task)
        return await (fail(task) if len(tasks) == 1 else pack(task))

    return once


def calling(*calls: ToolCall) -> Callable[[Task], Awaitable[Any]]:
    """An engine that calls tools, and packs what they gave."""

    async def call(task: Task) -> Any:
        if not task.exchanges:
            return Answer(calls=calls)
        results = task.exchanges[0].results
        return Parcel(notes=", ".join(str(each.value) for each in results))

    return call


async def idle(board: Board) -> list[Exception]:
    """Wait until nothing goes on; what failed."""
    group = await board.run_until_idle(SOON, raise_errors=False)
    return [] if group is None else [*group.exceptions]


async def kinds(app: Loom) -> list[str]:
    """The kinds of all events of all runs."""
    runs = [summary.run for summary in await app.runs()]
    return [event.kind for run in runs for event in await app.history.events(run)]


async def until(app: Loom, board: Board, kind: str, number: int = 1) -> None:
    """Wait until so many events of a kind are on record."""

    async def are_there() -> bool:
        return (await kinds(app)).count(kind) >= number

    await board.run_until(are_there, SOON)


async def remember(request: ContextRequest) -> ContextSlice:
    """The same context at any time, whatever others do meanwhile."""
    return ContextSlice([{"type": "Note", "payload": {"for": request.agent.name}}])


def side_by_side(board: Board) -> None:
    """Two agents that take an order at the same time, and are shown nothing of one another."""
    packer = board.agent("packer").description("You pack.").consumes(Order)
    packer.publishes(Parcel, tags={"packed"}).with_engines(pack).with_context(remember)
    cashier = board.agent("cashier").consumes(Order).publishes(Payment)
    cashier.with_engines(charge).with_context(remember)


def derived(default: Any, type: str, *triggers: Mapping[str, Any]) -> dict[str, Any]:
    """A variable that is derived, as a board declares it."""
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type, "source": source}
