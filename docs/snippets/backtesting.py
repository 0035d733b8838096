"""A backtest is a value: how many runs differ, and how."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom


class Refund(BaseModel):
    model_config = ConfigDict(frozen=True)
    amount: int
    by: str = ""


def refunds(limit: int) -> Flow[Refund]:
    """A flow in which a manager approves what is above a limit."""
    flow = Flow("refunds", Refund).start_with(check)
    return flow.branch(lambda it: it.amount > limit, {True: manager, False: clerk})


async def check(state: Refund) -> dict[str, Any]:
    return {"amount": state.amount}


async def manager(state: Refund) -> dict[str, Any]:
    return {"by": "manager"}


async def clerk(state: Refund) -> dict[str, Any]:
    return {"by": "clerk"}


async def main() -> None:
    async with Loom(store="memory") as app:
        for amount in (20, 150, 300):
            await app.run(refunds(100), Refund(amount=amount))
        backtest = await app.history.backtest(refunds(200), last=10)
        rate = backtest.rate("route")
        print(f"{rate.runs} of {rate.of} runs take another route")
        for run in backtest.runs:
            if run.first is not None:
                print(run.first.name, run.first.recorded, "→", run.first.edited)


asyncio.run(main())
