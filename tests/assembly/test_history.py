"""What was said: windows of it, and summaries that say what they stand for."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.assembly.situations import Run
from turnloom.assembly.events import HistorySummarised
from turnloom.assembly.logic import estimate, spoken
from turnloom.assembly.logic.drafts import span_of
from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.service.assembling import Assembler, AssemblyResult, assemble
from turnloom.assembly.service.situations import Situation
from turnloom.assembly.spec import Message, Transcript
from turnloom.assembly.spec.formats import Budget
from turnloom.assembly.spec.segments import HistorySegment, HistorySummary
from turnloom.assembly.spec.sources import from_history
from turnloom.errors import ContextUnavailable


def talk(count: int) -> Transcript:
    return Transcript([Message(2 * n, "ab"[n % 2], f"word{n}") for n in range(1, count + 1)])


class InShort:
    """A summary that tells what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def __call__(self, messages: Sequence[Message]) -> str:
        self.calls.append([each.seq for each in messages])
        return f"{len(messages)} things were said"


def withheld(assembled: AssemblyResult) -> list[tuple[str, str]]:
    return [(each.origin, each.reason) for each in assembled.context.withheld]


async def test_everything_that_was_said_is_shown() -> None:
    assembled = await assemble([from_history()], Situation(history=talk(3)))
    assert assembled.context.to_prompt_string() == "b: word1\n\na: word2\n\nb: word3"
    assert assembled.context.withheld == ()
    assert [each.reason.split()[-1] for each in assembled.pieces] == ["2", "4", "6"]


async def test_nothing_said_is_told() -> None:
    assembled = await assemble([from_history()], Situation())
    assert withheld(assembled) == [("context[0] from_history", "empty")]


async def test_a_window_shows_the_last_messages_and_tells_of_the_others() -> None:
    assembled = await assemble([from_history(last=2)], Situation(history=talk(5)))
    assert assembled.context.to_prompt_string() == "a: word4\n\nb: word5"
    assert withheld(assembled) == [("context[0] from_history: events 2 to 6", "filtered")]
    assert "3" in assembled.context.withheld[0].detail


async def test_a_window_of_tokens_shows_whole_messages() -> None:
    each = estimate(spoken("a", "word4"))
    for tokens, shown in ((each - 1, 0), (each, 1), (3 * each - 1, 2), (99, 5)):
        source = from_history(tokens=tokens)
        assembled = await assemble([source], Situation(history=talk(5)))
        assert len(assembled.pieces) == shown
        reasons = [each.reason for each in assembled.context.withheld]
        assert reasons == ["over_budget"] * (shown < 5) + ["empty"] * (shown == 0)
    both = from_history(last=1, tokens=99)
    assert len((await assemble([both], Situation(history=talk(5)))).pieces) == 1


async def test_a_summary_stands_in_the_place_of_what_is_outside_and_says_of_what() -> None:
    run, in_short = Run(), InShort()
    source = from_history(last=2, summarise=in_short)
    assembled = await assemble([source], run.next(history=talk(5)))
    assert assembled.context.to_prompt_string() == (
        "summary: 3 things were said\n\na: word4\n\nb: word5"
    )
    (segment,) = assembled.context.segments
    span = span_of(talk(3))
    assert isinstance(segment, HistorySegment)
    assert segment.summary == HistorySummary("3 things were said", 2, 6, 3, span.digest)
    (fact,) = run.facts(HistorySummarised)
    assert (fact.turn, fact.agent, fact.first, fact.last) == (1, "ann", 2, 6)
    assert (fact.count, fact.digest, fact.text) == (3, span.digest, "3 things were said")
    assert withheld(assembled) == [("context[0] from_history: events 2 to 6", "filtered")]


async def test_the_same_messages_are_summarised_once_in_a_run() -> None:
    run, in_short = Run(), InShort()
    source = from_history(last=2, summarise=in_short)
    assembler = Assembler([source], Estimate())
    for count in (2, 5, 5, 7, 7):
        await assembler.assemble(run.next(history=talk(count)))
    assert in_short.calls == [[2, 4, 6], [2, 4, 6, 8, 10]]
    again = await Assembler([source], Estimate()).assemble(run.next(history=talk(7)))
    assert len(in_short.calls) == 2, "another process finds it on record"
    assert again.context.segments[0].content.startswith("summary: 5 things were said")
    assert run.facts(HistorySummarised)[1].digest == span_of(talk(5)).digest


async def test_a_history_that_became_shorter_is_looked_through_anew() -> None:
    run, in_short = Run(), InShort()
    assembler = Assembler([from_history(last=1, summarise=in_short)], Estimate())
    for count in (5, 3):
        await assembler.assemble(run.next(history=talk(count)))
    assert in_short.calls == [[2, 4, 6, 8], [2, 4]]


async def test_nothing_outside_is_nothing_to_summarise() -> None:
    run, in_short = Run(), InShort()
    await assemble([from_history(last=9, summarise=in_short)], run.next(history=talk(3)))
    assert in_short.calls == [] and run.record == {}


async def test_a_coroutine_may_summarise() -> None:
    async def in_short(messages: Sequence[Message]) -> str:
        return "short"

    source = from_history(last=1, summarise=in_short)
    assembled = await assemble([source], Run().next(history=talk(2)))
    assert assembled.context.to_prompt_string() == "summary: short\n\na: word2"


def fails(messages: Sequence[Message]) -> str:
    raise ValueError("no words")


@pytest.mark.parametrize(("summarise", "said"), [(fails, "ValueError: no words"), (len, "'int'")])
async def test_a_summary_that_fails_is_told_and_not_on_record(summarise: Any, said: str) -> None:
    run = Run()
    with pytest.raises(ContextUnavailable, match=f"`summarise` of summary/ann/.*{said}"):
        source = from_history(last=1, summarise=summarise)
        await assemble([source], run.next(history=talk(2)))
    assert run.record == {}


async def test_over_budget_the_oldest_goes_first() -> None:
    source = from_history(last=3, summarise=InShort())
    for room, shown in ((99, "summary"), (9, "b: word3"), (6, "a: word4"), (2, "b: word5")):
        assembled = await assemble([source], Run().next(history=talk(5)), Budget(room))
        text = assembled.context.to_prompt_string()
        assert text.startswith(shown), room
        assert assembled.context.tokens <= room
        assert text.endswith("b: word5")
