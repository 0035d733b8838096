"""A slogan is drafted and criticised until the critic is content, at most so often.

The writer remembers what was said in its thread, so that each draft answers the criticism of the
one before. The log tells how often the loop was walked, why it ended, and what each agent saw.

Run it from any folder, as often as you like: python examples/refinement.py
"""

import asyncio
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from weft import (
    AgentStep,
    Answer,
    AssembledContext,
    Flow,
    Path,
    StepContext,
    Task,
    Weft,
    append,
    from_state,
)

DRAFTS = (
    "The kettle that boils water faster than any other kettle you have ever had",
    "Boils water faster than you can find a cup",
    "Tea before you find a cup",
)


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
    """Answers without a model: each time it is criticised, it has a shorter draft."""

    async def __call__(self, task: Task) -> Answer:
        said = sum(message.author == task.agent for message in task.transcript)
        return Answer(DRAFTS[min(said, len(DRAFTS) - 1)])


class Counter:
    """Answers without a model: it counts words."""

    async def __call__(self, task: Task) -> Answer:
        words = len(task.transcript[-1].text.partition(": ")[2].split())
        criticism = f"{words} words, use at most six" if words > 6 else "good"
        return Answer(json.dumps({"criticism": criticism, "score": max(0, 16 - words)}))


class Draft(AgentStep[Slogan]):
    """Writes a slogan, knowing what it wrote before."""

    engine = Poet()
    thread = "writing"

    def instructions(self) -> str:
        return "You write slogans."

    def user_prompt(self, state: Slogan) -> str:
        return f"A slogan for a {state.product}, please."

    def apply(self, state: Slogan, answer: str, context: AssembledContext) -> Any:
        return {"text": answer, "drafts": [answer]}


class Critic(AgentStep[Slogan]):
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


REFINE = (
    Flow("refinement", Slogan)
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
    """Refine a slogan, and see how that went."""
    async with Weft() as app:
        outcome = await app.run(REFINE, Slogan(product="kettle"))
        for number, draft in enumerate(outcome.state.drafts, 1):
            print(f"draft {number}: {draft}")
        print(f"{outcome.status}: {outcome.state.text}")
        for event in await app.log(outcome.run_id):
            if event.kind == "loop.ended":
                print(f"{event.data.loop} ended after {event.data.passes}: {event.data.reason}")
        print(f"\n{await app.explain(outcome.run_id, turn=3)}")


if __name__ == "__main__":
    asyncio.run(main())
