"""Context from sources: declared, checked, assembled and fitted."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from turnloom import (
    AssembledContext,
    Budget,
    ContextFormat,
    RagCollection,
    RetrievalResult,
    from_history,
    from_literal,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.assembly.logic.checking import check_sources
from turnloom.assembly.logic.descriptions import describe_sources
from turnloom.assembly.service import Situation, assemble
from turnloom.assembly.spec import Message
from turnloom.testing import InMemorySearch
from turnloom.variables.logic.exposure import VariableValues


class Handbook(RagCollection):
    name = "handbook"


class Review(BaseModel):
    summary: str
    question: str
    team: str


def question(state: Review) -> str:
    return state.question


def team(state: Review) -> str:
    return state.team


SOURCES = [
    from_state("summary", title="Summary", priority=1),
    from_retrieval(Handbook, query=question, top_k=3, filters={"team": team}),
    from_literal("Always cite sources.", priority=2),
    from_variables("tone"),
]


def in_short(messages: Sequence[Message]) -> str:
    return f"{len(messages)} messages about holidays"


def situation() -> Situation:
    handbook = InMemorySearch()
    for number, text in enumerate(("Thirty days a year.", "Ask your lead first.")):
        found = RetrievalResult(text, 0.9 - number / 10, f"leave-{number}", {"team": "people"})
        handbook.seed(found)

    async def search(
        collection: type[RagCollection],
        query: str,
        k: int,
        least: float | None,
        by: Mapping[str, Any],
    ) -> Sequence[RetrievalResult]:
        return await handbook.search(query, k, least, by)

    return Situation(
        state=Review(summary="Ann wants a holiday.", question="How many days?", team="people"),
        values=VariableValues({"tone": "calm"}, {}, {}),
        history=[Message(n, "ann", f"Message {n}.") for n in range(1, 6)],
        search=search,
    )


def show(title: str, context: AssembledContext, format: ContextFormat) -> None:
    print(f"== {title}")
    print(context.to_prompt_string(format))
    for each in context.withheld:
        print(f"({each.origin}: {each.reason}, {each.detail})")


async def main() -> None:
    print(describe_sources(SOURCES))
    for problem in check_sources([from_state("sumary")], Review):
        print(problem.message, problem.remedy)
    here, plain = situation(), ContextFormat()
    assembled = await assemble(SOURCES, here)
    show("plain", assembled.context, plain)

    cited = ContextFormat(header="## {title}\n", citation=" [{source_id}]")
    show("cited", assembled.context, cited)

    fitted = await assemble(SOURCES, here, Budget(20))
    show("in 20 tokens", fitted.context, plain)

    windowed = await assemble([from_history(last=2, summarise=in_short)], here)
    show("what was said", windowed.context, plain)


asyncio.run(main())
