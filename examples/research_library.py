"""Answers from a library: an agent sees the passages that match a question, and no others.

Documents are added to a collection, questions are published, and each turn gets the results of a
search, within a budget of tokens. The log has the passages, their scores, and what did not fit.

Run it from any folder, repeatedly: python examples/research_library.py
It needs the extras `vectors` and `embeddings`; TURNLOOM_VECTORS is the URL of the collection.
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
    """Answer without a model: quote the best passage, with its source."""

    def __init__(self) -> None:
        self.asked: list[Task] = []

    async def __call__(self, task: Task) -> Quote:
        self.asked.append(task)
        passages = [each["content"] for each in task.context.items if each["type"] == "retrieval"]
        return Quote(passage=" ".join(passages[0].split()))


async def fill(app: Loom) -> None:
    """Add the documents to the collection; existing ones stay unchanged."""
    documents = [
        Document(path.name, path.read_text(encoding="utf-8"), {"path": path.name}, "markdown")
        for path in sorted(DOCUMENTS.glob("*.md"))
    ]
    await app.collection(Library).add(documents)


async def main() -> None:
    """Ask questions, and print the passages behind each answer."""
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
