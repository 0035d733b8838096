"""A slogan is drafted and criticised until the critic accepts it, up to a limit.

The writer is stubborn: it ignores the critic and repeats itself. A guard detects the loop, and
gives both agents a hint in their next turns; that helps. The log has the detected loop, what each
agent saw, the number of passes, and why the loop ended.

Run it from any folder, repeatedly: python examples/refinement.py
"""

import asyncio
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    Flow,
    Guards,
    Loom,
    LoopDetection,
    Path,
    StepContext,
    Task,
    append,
    from_state,
)

LONG = "The kettle that boils water faster than any other kettle you have ever had"
SHORT = "Tea before you find a cup"
INSTRUCTIONS = "You write slogans."


class Slogan(BaseModel):
    model_config = ConfigDict(frozen=True)

    product: str
    text: str = ""
    criticism: str = ""
    score: int = 0
    drafts: Annotated[list[str], append] = []


class Verdict(BaseModel):
    criticism: str
    score: int


class Poet:
    """Answer without a model: repeat the slogan, unless a hint says to finish."""

    async def __call__(self, task: Task) -> Answer:
        return Answer(LONG if task.system == INSTRUCTIONS else SHORT)


class Counter:
    """Answer without a model: count words."""

    async def __call__(self, task: Task) -> Answer:
        words = len(task.transcript[-1].text.partition(": ")[2].split())
        criticism = f"{words} words, use at most six" if words > 6 else "good"
        return Answer(json.dumps({"criticism": criticism, "score": max(0, 16 - words)}))


class Draft(AgentStep[Slogan]):
    """Writes a slogan, knowing what it wrote before."""

    engine = Poet()
    thread = "writing"

    def instructions(self) -> str:
        return INSTRUCTIONS

    def user_prompt(self, state: Slogan) -> str:
        return f"A slogan for a {state.product}, please."

    def apply(self, state: Slogan, answer: str, context: AssembledContext) -> Any:
        return {"text": answer, "drafts": [answer]}


class Critic(AgentStep[Slogan, Verdict]):
    """Says what is wrong with a slogan."""

    output_type = Verdict
    engine = Counter()

    def instructions(self) -> str:
        return "You criticise slogans."

    def user_prompt(self, state: Slogan) -> str:
        return f"Criticise: {state.text}"

    def apply(self, state: Slogan, answer: Verdict, context: AssembledContext) -> Any:
        return {"criticism": answer.criticism, "score": answer.score}


async def brief(slogan: Slogan, ctx: StepContext) -> dict[str, Any]:
    return {"criticism": "nothing yet"}


async def sign(slogan: Slogan, ctx: StepContext) -> dict[str, Any]:
    return {"text": f"{slogan.text}."}


GUARDS = Guards(loop_detection=LoopDetection(window=4, similarity=None, then="stop"))

REFINE = (
    Flow("refinement", Slogan, guards=GUARDS)
    .start_with(brief)
    .repeat_until(
        lambda slogan: slogan.score >= 10,
        Path().then(Draft, context=[from_state("criticism", title="Criticism")]).then(Critic),
        max_iterations=5,
        name="refine",
    )
    .finally_(sign)
)


async def main() -> None:
    """Refine a slogan, and print the drafts and the outcome."""
    async with Loom() as app:
        outcome = await app.run(REFINE, Slogan(product="kettle"))
        for number, draft in enumerate(outcome.state.drafts, 1):
            print(f"draft {number}: {draft}")
        print(f"{outcome.status}: {outcome.state.text}")
        for event in await app.history.events(outcome.run_id):
            if event.kind == "loop.detected":
                print(f"noticed: {event.data.loop}; done about it: {event.data.strategy}")
            if event.kind == "loop.ended":
                print(f"{event.data.loop} ended after {event.data.passes}: {event.data.reason}")
        print(f"\n{await app.explain.turn(outcome.run_id, 5)}")


if __name__ == "__main__":
    asyncio.run(main())
