"""Answers from a library: agents that are shown the passages that fit a question, and no others.

Documents are put into a collection, questions are published, and each turn is shown what a search
finds, within a budget of tokens. The log then tells which passages those were, how well they fit,
and what had no room.

Run it from any folder, as often as you like: python examples/research_library.py
It needs the extras `vectors` and `embeddings`; TURNLOOM_VECTORS says where the collection is kept.
"""

import asyncio
from pathlib import Path

from pydantic import BaseModel

from turnloom import (
    Budget,
    Chunking,
    ContextFormat,
    Document,
    Loom,
    RagCollection,
    Task,
    artifact_type,
    from_literal,
    from_retrieval,
)

DOCUMENTS = Path(__file__).with_name("library")

QUESTIONS = (
    "How do bees tell each other where flowers are?",
    "When are the tides highest?",
    "How long does bread bake?",
)


class Library(RagCollection):
    name = "research-library"
    chunking = Chunking(tokens=60, overlap=0)


@artifact_type
class Question(BaseModel):
    text: str


@artifact_type
class Quote(BaseModel):
    passage: str


class QuotingEngine:
    """Answers without a model: it quotes the passage that fits best, with its source."""

    def __init__(self) -> None:
        self.asked: list[Task] = []

    async def __call__(self, task: Task) -> Quote:
        self.asked.append(task)
        passages = [each["content"] for each in task.context.items if each["type"] == "retrieval"]
        return Quote(passage=" ".join(passages[0].split()))


async def fill(app: Loom) -> None:
    """Put the documents into the collection; those that are there already stay as they are."""
    documents = [
        Document(path.name, path.read_text(encoding="utf-8"), {"path": path.name}, "markdown")
        for path in sorted(DOCUMENTS.glob("*.md"))
    ]
    await app.collection(Library).add(documents)


async def main() -> None:
    """Ask questions, and see what each was answered from."""
    engine = QuotingEngine()
    async with Loom() as app:
        board = app.board("research")
        (
            board.agent("librarian")
            .description("Answers with a quotation.")
            .consumes(Question)
            .publishes(Quote)
            .with_sources(
                from_literal("Quote one passage. Do not add to it.", priority=9),
                from_retrieval(Library, "{text}", top_k=4, min_relevance=0.2),
                budget=Budget(100),
                format=ContextFormat(citation=" [{source_id}]"),
            )
            .with_engines(engine)
        )
        await fill(app)
        for text in QUESTIONS:
            question = await board.publish(Question(text=text))
            await board.run_until_idle()
            print(text)
            for item in engine.asked[-1].context.items:
                print(f"  {item['origin']}: {' '.join(item['content'].split())}")
            print(f"\n{await app.explain.turn(str(question.run), 1)}\n")


if __name__ == "__main__":
    asyncio.run(main())
