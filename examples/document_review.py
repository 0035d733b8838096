"""A document is reviewed against a style guide, and an editor decides.

A search finds the rules for the document; the reviewer gets them and answers with structured
output. Then the run waits for the editor, for days if needed, and across restarts. The log has the
rules that the reviewer saw, their scores, and the decision.

Run it from any folder, repeatedly: python examples/document_review.py
It needs the extras `vectors` and `embeddings`; TURNLOOM_VECTORS is the URL of the collection.
"""

import asyncio
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from turnloom import (
    AgentStep,
    Answer,
    AssembledContext,
    ContextFormat,
    Document,
    Flow,
    Loom,
    Path,
    RagCollection,
    StepContext,
    Task,
    append,
    complete,
    from_literal,
    from_retrieval,
    from_state,
)

RULES = [
    Document("headings", "Headings and titles are short: six words at most."),
    Document("dates", "Write dates and days in full, with the year: 3 May 2026."),
    Document("numbers", "Spell out numbers up to twelve."),
    Document("images", "Every picture needs a caption and the name of the photographer."),
]


class StyleGuide(RagCollection):
    name = "style-guide"


class Piece(BaseModel):
    model_config = ConfigDict(frozen=True)

    title: str
    text: str
    remarks: Annotated[list[str], append] = []
    cited: Annotated[list[str], append] = []
    status: str = "draft"


class Review(BaseModel):
    remarks: list[str]
    confidence: float


class Rulebook:
    """Compare the document with the given rules, without a model."""

    async def __call__(self, task: Task) -> Answer:
        shown = [each["content"] for each in task.context.items if each["type"] == "retrieval"]
        remarks = [f"Mind: {rule.removeprefix('---').strip()}" for rule in shown]
        return Answer(json.dumps({"remarks": remarks, "confidence": 0.9}))


class Reviewer(AgentStep[Piece, Review]):
    """Reviews a document against the rules that fit it."""

    output_type = Review
    engine = Rulebook()

    def instructions(self) -> str:
        return "You review documents. Every remark cites a rule."

    def user_prompt(self, state: Piece) -> str:
        return f"Review this:\n{state.text}"

    def apply(self, state: Piece, answer: Review, context: AssembledContext) -> Any:
        cited = [str(each.source_id) for each in context.retrieval_results]
        return {"remarks": answer.remarks, "cited": cited}


async def load(piece: Piece, ctx: StepContext) -> dict[str, Any]:
    return {"status": "in review"}


async def publish(piece: Piece, ctx: StepContext) -> dict[str, Any]:
    decided = ctx.approvals["editor_decides"]
    return {"status": f"published, {decided.instructions}"}


async def drop(piece: Piece, ctx: StepContext) -> dict[str, Any]:
    return {"status": "dropped"}


REVIEW = (
    Flow("review", Piece)
    .start_with(load)
    .then(
        Reviewer,
        context=[
            from_state("title", title="Title"),
            from_retrieval(StyleGuide, query=lambda piece: piece.text, top_k=2, min_relevance=0.2),
            from_literal("Be brief."),
        ],
        format=ContextFormat(citation=" [{source_id}]"),
        retry=1,
        timeout=30,
        require_confidence=0.5,
        on_low_confidence=Path().await_approval("chief reviewer", name="second_look"),
    )
    .await_approval(
        "editor",
        context=lambda piece: f"Publish {piece.title!r} with {len(piece.remarks)} remarks?",
        timeout=3 * 24 * 3600,
        on_timeout=[drop, complete()],
        on_rejection=Path().then(drop, name="reject").complete(),
        name="editor_decides",
    )
    .finally_(publish)
)


async def main() -> None:
    """Review a document, and decide about it."""
    piece = Piece(title="Tide tables", text="On Friday the picture of the day shows 2 seals.")
    async with Loom() as app:
        await app.collection(StyleGuide).add(RULES)
        run = await app.start(REVIEW, piece)
        waiting = await run.outcome()
        assert waiting.question is not None
        print(f"{waiting.question.to} is asked: {waiting.question.prompt}")
        for remark in waiting.state.remarks:
            print(f"  {remark}")
        decision = {"decision": "approve", "instructions": "after the captions"}
        await run.answer(waiting.question.id, decision, user_id=waiting.question.to)
        outcome = await run.outcome()
        print(f"{outcome.status}: {outcome.state.status}; cited: {', '.join(outcome.state.cited)}")
        print(f"\n{await app.explain.turn(run.id, 1)}")


if __name__ == "__main__":
    asyncio.run(main())
