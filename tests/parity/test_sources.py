"""Nothing that a source, a budget or a format says is inert: each field makes a difference."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest

from tests.assembly.situations import Library, Run, values
from turnloom import (
    Budget,
    ContextFormat,
    ContextRequest,
    ContextSlice,
    RagCollection,
    RetrievalResult,
    from_history,
    from_literal,
    from_provider,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.assembly.logic.slices import WitnessedArtifacts
from turnloom.assembly.service.assembling import AssemblyResult, assemble
from turnloom.assembly.spec import ChosenProvider, Message
from turnloom.assembly.spec.formats import PLAIN
from turnloom.assembly.spec.sources import Share, Source
from turnloom.testing import BoardTurn

LONG = "Long and of little use. " * 10


class Archive(RagCollection):
    pass


async def one(request: ContextRequest) -> ContextSlice:
    return ContextSlice([{"n": 1}])


async def two(request: ContextRequest) -> ContextSlice:
    return ContextSlice([{"n": 2}])


def in_short(messages: Sequence[Message]) -> str:
    return "Much was said."


SHARE = {"priority": 9, "min_tokens": 4, "title": "Title"}
CHANGES: list[tuple[Source, dict[str, Any]]] = [
    (from_state("a"), {"at": "b", **SHARE}),
    (
        from_retrieval(Library, "cats", top_k=2, min_relevance=0.5),
        {
            "collection": Archive,
            "query": "dogs",
            "top_k": 1,
            "min_relevance": 0.85,
            "filters": {"team": "people"},
            **SHARE,
        },
    ),
    (from_literal("Rules."), {"text": "Laws.", **SHARE}),
    (from_variables("tone"), {"names": ("tone", "stage"), **SHARE}),
    (from_provider(one), {"chosen": ChosenProvider(two), **SHARE}),
    (from_history(last=3), {"last": 2, "tokens": 5, "summarise": in_short, **SHARE}),
]
FORMATS = {
    "header": "# {title}\n",
    "separator": " ",
    "separators": {"retrieval": "\n"},
    "templates": {"history": "{content}"},
    "citation": " [{source_id}]",
    "fence": "json",
    "order": "stable",
}
CASES = [
    pytest.param(source, {name: value}, id=f"{type(source).__name__}.{name}")
    for source, others in CHANGES
    for name, value in others.items()
]


async def search(
    collection: type[RagCollection], query: str, top_k: int, least: float, filters: Any
) -> Sequence[RetrievalResult]:
    team = filters.get("team", "all")
    found = [
        RetrievalResult(f"{collection.name} says {n} of {query} to {team}.", score, f"d{n}")
        for n, score in enumerate((0.9, 0.8, 0.6))
    ]
    return [each for each in found if each.score >= least][:top_k]


async def shown(
    *sources: Source, budget: Budget | None = None, format: ContextFormat = PLAIN
) -> AssemblyResult:
    witnessed = WitnessedArtifacts()
    situation = Run().next(
        state={"a": "A of the state.", "b": "B of the state."},
        values=values(tone="calm", stage=2),
        history=[Message(n, "ann", f"Message {n}.") for n in range(1, 6)],
        request=await BoardTurn().request(witnessed.note),
        witnessed=witnessed,
        search=search,
    )
    return await assemble(sources, situation, budget, format)


def test_every_field_of_every_source_is_here() -> None:
    for source, others in CHANGES:
        assert {each.name for each in fields(source)} == set(others)
    assert {type(source) for source, _ in CHANGES} == set(Source.__args__)
    assert {each.name for each in fields(ContextFormat)} == set(FORMATS)
    assert {each.name for each in fields(Share)} == set(SHARE)


@pytest.mark.parametrize(("source", "other"), CASES)
async def test_a_field_of_a_source_makes_a_difference(source: Source, other: Any) -> None:
    changed = replace(source, **other)
    rival = from_literal(LONG, priority=1)
    room = Budget(40) if "priority" in other or "min_tokens" in other else None
    before = (await shown(rival, source, budget=room)).context
    after = (await shown(rival, changed, budget=room)).context
    assert before.to_prompt_string() != after.to_prompt_string()


@pytest.mark.parametrize("name", FORMATS)
async def test_a_field_of_a_format_makes_a_difference(name: str) -> None:
    sources = [replace(source, title="Title") for source, _ in CHANGES]
    format = ContextFormat(**{name: FORMATS[name]})
    before, after = await shown(*sources), await shown(*sources, format=format)
    texts = ["".join(piece.text for piece in each.pieces) for each in (before, after)]
    assert texts[0] != texts[1]


async def test_a_budget_makes_a_difference() -> None:
    whole, cut = await shown(from_literal(LONG)), await shown(from_literal(LONG), budget=Budget(9))
    assert cut.context.tokens <= 9 < whole.context.tokens
