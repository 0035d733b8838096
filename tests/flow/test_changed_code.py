"""A run that is resumed with other code than it began with says so in its log."""

from pathlib import Path as FilePath
from typing import Any

import pytest

from tests.flow.scenes import facts
from turnloom import Flow, Loom
from turnloom.wiring import flows_in

PROGRAM = """
from typing import Annotated
from pydantic import BaseModel, ConfigDict
from turnloom import AgentStep, Flow, Path


def newest(now, given):
    return given or now


class Order(BaseModel):
    model_config = ConfigDict(frozen=True)
    number: Annotated[int, newest] = 0


async def pay(order):
    return {"number": 1}


async def refund(order):
    return None


class Greet:
    words = "Good morning"

    async def run(self, order):
        return {"number": 2}


class Ask(AgentStep[Order]):
    def user_prompt(self, order):
        return "Well?"

    def apply(self, order, answer, context):
        return {"number": 3}


def is_far(order):
    return order.number > 5


flow = (
    Flow("orders", Order)
    .start_with(pay, compensate=refund, validate=(lambda order: order.number < 9, "too many"))
    .await_approval("boss", context=lambda order: f"Pay {order.number}?")
    .branch(is_far, {True: Path(Greet)}, otherwise=Path(Ask))
    .repeat_until(lambda order: order.number > 0, Path().then(Greet, name="bye"))
    .finally_(pay, name="again")
)
"""
CHANGES = {
    "nothing": ("# no change", []),
    "return None": ("return {}", ["pay.compensate"]),
    '"number": 1': ("'number': 1", ["pay", "again"]),
    '"number": 2': ('"number": 7', ["Greet", "bye"]),
    "Good morning": ("Good evening", ["Greet", "bye"]),
    "Well?": ("Well, well?", ["Ask"]),
    "> 5": ("> 50", ["branch.on"]),
    "> 0": (">= 1", ["loop.until"]),
    "Pay {": ("Really pay {", ["approval.context"]),
    "given or now": ("given", ["state.number"]),
    "number < 9": ("number < 8", ["pay.validate"]),
}


def written(file: FilePath, text: str) -> Flow[Any]:
    """The flow of a program that is written into a file."""
    file.write_text(text, "utf-8")
    (flow,) = flows_in(str(file))
    return flow


@pytest.mark.parametrize("part", CHANGES)
async def test_changed_code_is_named_when_a_run_is_resumed(tmp_path: FilePath, part: str) -> None:
    store, file = str(tmp_path / "turnloom.db"), tmp_path / "orders.py"
    other, changed = CHANGES[part]
    async with Loom(store=store, engine=lambda task: "well") as app:
        run = (await app.run(written(file, PROGRAM))).run_id
    async with Loom(store=store, engine=lambda task: "well") as app:
        app.register_flow(written(file, PROGRAM.replace(part, other)))
        again = await app.resume(run)
        await again.answer(None, "approve", user_id="boss")
        assert (await again.outcome()).status == "finished"
        marks = await facts(app, run, "run.resumed")
    assert [name for mark in marks for name in mark.changed_code] == changed
