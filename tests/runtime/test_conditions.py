"""Conditions that users write say yes or no; what says neither fails, and is told."""

from typing import Any, cast

import pytest
from pydantic import BaseModel

from tests.flow.scenes import Work, note
from turnloom import (
    Flow,
    FlowFailed,
    Loom,
    PredicateFailed,
    ReactionFailed,
    UsageError,
    artifact_type,
)


@artifact_type(name="conditions.Order")
class Order(BaseModel):
    n: int = 0


def forgets(*given: object) -> Any:
    """A condition without `return`."""


def gives_text(*given: object) -> Any:
    return "no"


NEITHER = [forgets, gives_text]


async def pay(task: object) -> Any:
    return Order(n=1)


@pytest.mark.parametrize("condition", NEITHER)
async def test_a_loop_and_a_check_fail(condition: Any) -> None:
    begun = Flow("work", Work).start_with(note("a"))
    loop = begun.repeat_until(condition, note("b")).finally_(note("c"))
    check = Flow("work", Work).start_with(note("a"), validate=(condition, "no")).finally_(note("b"))
    async with Loom(store="memory") as app:
        for flow in (loop, check):
            with pytest.raises(FlowFailed) as failed:
                await app.run(flow)
            failure = failed.value.outcome.failure
            assert failure is not None and failure.error == "TypeError"


@pytest.mark.parametrize("condition", NEITHER)
async def test_a_subscription_is_not_woken(condition: Any) -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("clerk").consumes(Order, where=condition).with_engines(pay)
        order = await board.publish(Order())
        with pytest.RaisesGroup(PredicateFailed):
            await board.run_until_idle()
        events = await app.history.events(order.run or "")
        (offered,) = [each.data for each in events if each.kind == "artifact.offered"]
        assert [verdict.verdict for verdict in offered.to] == ["where_failed"]


async def test_what_is_made_is_refused_by_anything_but_yes() -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("clerk").consumes(Order).publishes(Order, validate=lambda made: 5).with_engines(
            pay
        )
        await board.publish(Order())
        errors = await board.run_until_idle(raise_errors=False)
        assert errors is not None and errors.subgroup(ReactionFailed) is not None


async def test_waiting_for_nothing_is_refused() -> None:
    async with Loom(store="memory") as app:
        with pytest.raises(UsageError):
            await app.board().run_until(cast(Any, forgets))
