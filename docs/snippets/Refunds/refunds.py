"""A flow in which an amount decides who approves a refund."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow


class Refund(BaseModel):
    model_config = ConfigDict(frozen=True)
    amount: int = 300
    approved_by: str = ""


def check(state: Refund) -> dict[str, Any]:
    return {"amount": state.amount}


def is_large(state: Refund) -> bool:
    return state.amount > 100


def ask_manager(state: Refund) -> dict[str, Any]:
    return {"approved_by": "manager"}


def approve(state: Refund) -> dict[str, Any]:
    return {"approved_by": "clerk"}


flow = Flow("refunds", Refund).start_with(check)
flow.branch(is_large, {True: ask_manager, False: approve})
