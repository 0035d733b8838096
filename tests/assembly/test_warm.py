"""What does not change between turns is not made anew."""

from typing import Any

import pytest

from tests.assembly.situations import Library, Run, values
from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.service.assembling import Assembler, TokenCounts, assemble
from turnloom.assembly.spec import Message
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.sources import (
    from_history,
    from_literal,
    from_retrieval,
    from_state,
    from_variables,
)

SOURCES = [
    from_literal("Rules."),
    from_state("summary"),
    from_state("facts"),
    from_variables("tone"),
    from_retrieval(Library, "cats {topic}"),
    from_history(last=2),
]
SAID = [Message(1, "a", "Hi."), Message(2, "b", "Hello.")]


def given(**other: Any) -> dict[str, Any]:
    state = {"summary": "S", "facts": [1], "topic": "t"} | other.pop("state", {})
    return {"state": state, "values": values(tone="calm"), "history": SAID} | other


CHANGED = [
    given(state={"summary": "T"}),
    given(state={"facts": [1, 2]}),
    given(values=values(tone="harsh")),
    given(state={"topic": "dogs"}),
    given(history=[*SAID, Message(3, "a", "Bye.")]),
]


class Counter(Estimate):
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def count(self, text: str) -> int:
        self.asked += 1
        return super().count(text)


def run() -> Run:
    found = Run()
    found.search.seed(("Cats purr.", 0.9), ("Cats sleep.", 0.8))
    return found


async def test_a_turn_in_which_nothing_changed_has_the_same_context() -> None:
    a_run, counter = run(), Counter()
    assembler = Assembler(SOURCES, counter)
    first = await assembler.assemble(a_run.next(**given()))
    asked = counter.asked
    again = await assembler.assemble(a_run.next(**given()))
    assert again is first and counter.asked == asked


@pytest.mark.parametrize("other", CHANGED, ids=range(len(CHANGED)))
@pytest.mark.parametrize("budget", [None, Budget(20)])
async def test_whatever_changes_is_seen_and_all_else_stays(
    other: dict[str, Any], budget: Budget | None
) -> None:
    a_run = run()
    assembler = Assembler(SOURCES, Estimate(), budget)
    first = await assembler.assemble(a_run.next(**given()))
    second = await assembler.assemble(a_run.next(**other))
    assert second == await assemble(SOURCES, a_run.next(**other), budget)
    back = await assembler.assemble(a_run.next(**given()))
    assert back == first
    if budget is None:
        kept = [each for each in second.pieces if any(each is it for it in first.pieces)]
        assert len(kept) >= len(first.pieces) - 2


async def test_a_value_that_is_changed_in_its_place_is_seen() -> None:
    facts = [1]
    assembler = Assembler([from_state("facts")], Estimate())
    for number in (2, 3):
        assembled = await assembler.assemble(run().next(state={"facts": facts}))
        assert assembled.context.to_prompt_string().endswith(f"{number - 1}]")
        facts.append(number)


async def test_a_format_is_kept() -> None:
    assembler = Assembler(SOURCES[:2], Estimate(), format=ContextFormat(separator="|"))
    a_run = run()
    for _ in range(2):
        assembled = await assembler.assemble(a_run.next(**given()))
        assert "".join(each.text for each in assembled.pieces) == "Rules.|S"


def test_counts_are_kept_by_digest_and_the_oldest_go() -> None:
    counter = Counter()
    counts = TokenCounts(counter, most=2)
    for text in ("a", "a", "b", "c", "c", "a"):
        assert counts(text) == 1
    assert counter.asked == 4
    assert counts.name == "characters/4"
