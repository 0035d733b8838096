"""A flow that waits for a person across a restart."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import Flow, Loom, Path, StepContext, escalate_to


class Invoice(BaseModel):
    model_config = ConfigDict(frozen=True)

    amount: int
    status: str = ""


async def book(invoice: Invoice, ctx: StepContext) -> dict[str, Any]:
    return {"status": "booked"}


async def send_back(invoice: Invoice, ctx: StepContext) -> dict[str, Any]:
    return {"status": "sent back"}


async def pay(invoice: Invoice, ctx: StepContext) -> dict[str, Any]:
    decided = ctx.approvals["release"]
    return {"status": f"paid; {decided.approver} said: {decided.instructions}"}


INVOICES = (
    Flow("invoices", Invoice)
    .start_with(book)
    .await_approval(
        "controller",
        context=lambda invoice: f"Pay {invoice.amount}?",
        timeout=24 * 3600,
        on_timeout=escalate_to("head of finance"),
        on_rejection=Path(send_back).complete(),
        name="release",
    )
    .finally_(pay)
)


async def main() -> None:
    async with Loom() as app:
        outcome = await app.run(INVOICES, Invoice(amount=120))
        print(outcome.status, outcome.state.status)
    async with Loom() as app:  # another day, another process
        app.register_flow(INVOICES)
        run = await app.resume(outcome.run_id)
        question = await run.question()
        assert question is not None
        print(f"{question.to}: {question.prompt}")
        decision = {"decision": "approve", "instructions": "in May"}
        await run.answer(question.id, decision, user_id="controller")
        state = (await run.outcome()).state
        assert isinstance(state, Invoice)
        print(state.status)


if __name__ == "__main__":
    asyncio.run(main())
