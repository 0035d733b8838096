"""An agent step: it gets context, and answers with structured output."""

import asyncio
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import AgentStep, Answer, AssembledContext, Flow, Loom, Task, from_literal, from_state


class Ticket(BaseModel):
    model_config = ConfigDict(frozen=True)

    customer: str
    text: str
    team: str = ""


class Choice(BaseModel):
    team: str
    confidence: float


async def engine(task: Task) -> Answer:
    for message in task.transcript:
        print(f"{message.author}: {message.text}")
    return Answer(output={"team": "billing", "confidence": 0.9})


class Triage(AgentStep[Ticket, Choice]):
    output_type = Choice
    engine = engine

    def instructions(self) -> str:
        return "You route tickets."

    def user_prompt(self, state: Ticket) -> str:
        return f"Which team? {state.text}"

    def apply(self, state: Ticket, answer: Choice, context: AssembledContext) -> Any:
        return {"team": answer.team}


TRIAGE = Flow("triage", Ticket).start_with(
    Triage,
    context=[from_literal("Teams: billing, shipping."), from_state("customer", title="Customer")],
    retry=2,
    timeout=30,
)


async def main() -> None:
    async with Loom(store="memory") as app:
        outcome = await app.run(TRIAGE, Ticket(customer="Ada", text="I paid twice."))
        print("→", outcome.state.team)


asyncio.run(main())
