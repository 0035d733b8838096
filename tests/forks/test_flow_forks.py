"""Forks of flows: steps, questions, failures and compensation."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.world import at_rest
from turnloom import Flow, Loom, Run, StepContext, use_ui_tool


class Trip(BaseModel):
    model_config = ConfigDict(frozen=True)
    seat: str = ""
    paid: int = 0
    notes: list[str] = []


# What was done.
done: Counter[str] = Counter()


async def choose(trip: Trip) -> dict[str, Any]:
    done["choose"] += 1
    return {"seat": await use_ui_tool("seat", {"prompt": "Which seat?"})}


def pay(trip: Trip) -> dict[str, Any]:
    done[f"pay {trip.seat}"] += 1
    return {"paid": len(trip.seat)}


def refund(trip: Trip, ctx: StepContext) -> None:
    done["refund"] += 1


def check(trip: Trip) -> dict[str, Any]:
    done["check"] += 1
    if trip.seat == "13":
        raise ValueError("There is no seat 13.")
    return {"notes": ["checked"]}


FLOW = Flow("trip", Trip).start_with(choose).then(pay, compensate=refund).finally_(check)


@pytest.fixture(params=["memory", "trips.db"])
async def loom(request: Any, tmp_path: Path) -> AsyncIterator[Loom]:
    done.clear()
    where = request.param if request.param == "memory" else str(tmp_path / request.param)
    async with Loom(store=where) as app:
        app.register_flow(FLOW)
        yield app


async def travelled(loom: Loom, seat: str) -> tuple[Run[Trip], int]:
    """A run with this seat, and the position at which it waited for it."""
    run = await loom.start(FLOW, Trip())
    at = (await at_rest(run)).seq
    await run.answer(None, seat)
    await run.finished()
    return run, at


async def test_steps_are_not_taken_again(loom: Loom) -> None:
    run, at = await travelled(loom, "7A")
    before = dict(done)
    fork = await run.fork(at, answer="7A", tools="recorded")
    assert (await fork.outcome()).state == Trip(seat="7A", paid=2, notes=["checked"])
    assert done == before


async def test_another_answer_leads_to_steps_that_are_asked_for(loom: Loom) -> None:
    run, at = await travelled(loom, "7A")
    done.clear()
    fork = await run.fork(at, answer="22F")
    position = at
    for given in ("allow", {"decision": "replace", "result": {"paid": 99}}, "allow"):
        position = (await at_rest(fork, position)).seq
        await fork.answer(None, given)
    assert (await fork.outcome()).state == Trip(seat="22F", paid=99, notes=["checked"])
    assert done == {"choose": 1, "check": 1}
    assert (await loom.history.replay(fork.id)).divergence is None


async def test_failures_and_compensations_are_as_recorded(loom: Loom) -> None:
    run, at = await travelled(loom, "13")
    before = dict(done)
    assert before["refund"] == 1
    fork = await run.fork(at, answer="13", tools="recorded")
    end = await fork.finished()
    assert end.data == (await run.finished()).data
    assert done == before


async def test_refused_steps_fail(loom: Loom) -> None:
    run, at = await travelled(loom, "7A")
    fork = await run.fork(at, answer="22F", tools="recorded")
    end = await fork.finished()
    assert end.kind == "run.failed" and "EffectRefused" in end.data.message
    with pytest.raises(Exception, match="not a run of a folder"):
        await run.fork(at, folder="elsewhere")
