"""Two models answer questions, and the flow learns which model to use for which category.

The small model is cheap and cannot count; the large one can do both. Each question goes to the
model with the best outcomes in its category so far, minus its cost. The log has every choice: the
beliefs, the draws, and the outcomes.

Run it from any folder, repeatedly: python examples/model_routing.py
"""

import asyncio
from collections import Counter
from typing import Any

from pydantic import BaseModel, ConfigDict

from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    Category,
    Flow,
    Loom,
    Selection,
    StepContext,
    Task,
)

QUESTIONS = ["Greet Ann.", "What is 6 * 7?"] * 30


class Asked(BaseModel):
    model_config = ConfigDict(frozen=True)

    question: str
    category: str = ""
    answer: str = ""


class Small:
    """Answer without a model: greet, and guess numbers."""

    async def __call__(self, task: Task) -> Answer:
        question = task.transcript[-1].text
        return Answer("Hello!" if question.startswith("Greet") else "Many.")


class Large:
    """Answer without a model: greet, and count."""

    async def __call__(self, task: Task) -> Answer:
        question = task.transcript[-1].text
        return Answer("Good morning!" if question.startswith("Greet") else "42")


class Answering(AgentStep[Asked]):
    """Answers a question; a number has to be one."""

    engines = {"small": Small(), "large": Large()}

    def user_prompt(self, state: Asked) -> str:
        return state.question

    def apply(self, state: Asked, answer: str, context: AssembledContext) -> Any:
        if state.category == "numbers" and not answer.isdigit():
            raise ValueError(f"{answer!r} is no number")
        return {"answer": answer}


async def sort(asked: Asked, ctx: StepContext) -> dict[str, Any]:
    return {"category": "numbers" if "*" in asked.question else "words"}


ROUTING = (
    Flow("routing", Asked)
    .start_with(sort)
    .finally_(
        Answering,
        select=Selection(
            candidates=("small", "large"),
            category=Category(function=lambda asked: asked.category),
            costs={"large": 0.3},
            seed=7,
        ),
        retry=20,
    )
)


async def main() -> None:
    """Ask many questions, and print which model answered."""
    chosen: Counter[tuple[str, str]] = Counter()
    answers: list[str] = []
    async with Loom(store="memory") as app:
        for question in QUESTIONS:
            outcome = await app.run(ROUTING, Asked(question=question))
            answers.append(outcome.state.answer)
            for event in await app.history.events(outcome.run_id):
                if event.kind == "selection.made":
                    chosen[event.data.category, event.data.chosen] += 1
        for (category, name), times in sorted(chosen.items()):
            print(f"{category}: {name} was asked {times} times")
        print(f"answers to {QUESTIONS[1]} {sorted({*answers[1::2]})}")


if __name__ == "__main__":
    asyncio.run(main())
