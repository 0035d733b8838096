"""Assembling: sources become context in their order, and what is left out is told."""

import math
import re
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.assembly.situations import Library, Run, values
from turnloom import ContextRequest, ContextSlice, RetrievalResult
from turnloom.assembly.events import RetrievalSearched
from turnloom.assembly.logic import estimate
from turnloom.assembly.logic.composing import MARK
from turnloom.assembly.logic.frames import headed
from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.logic.slices import WitnessedArtifacts
from turnloom.assembly.service.assembling import Assembler, AssemblyResult, assemble
from turnloom.assembly.service.situations import Situation
from turnloom.assembly.spec import Message
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.segments import (
    ArtifactSegment,
    LiteralSegment,
    RetrievalSegment,
    ShownArtifact,
    StateSegment,
    VariableSegment,
)
from turnloom.assembly.spec.sources import (
    Source,
    from_history,
    from_literal,
    from_provider,
    from_retrieval,
    from_state,
    from_variables,
)
from turnloom.errors import CollectionUnavailable, ContextTooLarge, ContextUnavailable, UsageError
from turnloom.testing import BoardTurn
from turnloom.testing.contracts.artifacts.samples import ANN, LATER, artifact
from turnloom.variables.logic.exposure import VariableValues
from turnloom.variables.spec import VariableDefinition


class State(BaseModel):
    summary: str | None = "A summary."
    question: str = "What do cats do?"
    team: str = "pets"
    lines: list[int] = [1, 2]


@dataclass
class Order:
    customer: dict[str, Any]


def reasons(assembled: AssemblyResult) -> list[tuple[str, str]]:
    return [(each.origin, each.reason) for each in assembled.context.withheld]


def seeded(*contents: str) -> Run:
    run = Run()
    for n, content in enumerate(contents):
        run.search.seed(RetrievalResult(content, 0.9 - n / 100, f"doc{n}", {"team": "pets"}, n))
    return run


async def test_sources_appear_in_declared_order() -> None:
    run = seeded("Cats purr.", "Cats sleep.")
    sources = [
        from_state("summary"),
        from_retrieval(Library, lambda s: s.question, top_k=2, filters={"team": lambda s: s.team}),
        from_literal("Always cite sources."),
        from_variables("tone", "stage"),
    ]
    situation = run.next(state=State(), values=values(tone="calm", stage=2))
    assembled = await assemble(sources, situation)
    context = assembled.context
    assert context.to_prompt_string() == (
        "A summary.\n\nCats purr.\n---\nCats sleep.\n\nAlways cite sources.\n\n"
        '- tone: "calm"\n- stage: 2'
    )
    assert [type(each) for each in context.segments] == [
        StateSegment,
        RetrievalSegment,
        LiteralSegment,
        VariableSegment,
    ]
    assert [each.origin for each in context.segments] == [
        "context[0] from_state(summary)",
        "context[1] from_retrieval(library)",
        "context[2] from_literal",
        "context[3] from_variables(tone, stage)",
    ]
    assert [each.source_id for each in context.retrieval_results] == ["doc0", "doc1"]
    assert run.search.searches == [("What do cats do?", 4, 0.0, {"team": "pets"})]
    assert context.withheld == () and not context.is_empty


async def test_pieces_make_exactly_the_text_and_count_exactly_its_tokens() -> None:
    run = seeded("Cats purr.", "Cats sleep.")
    sources = [
        from_literal("Rules.", title="R"),
        from_retrieval(Library, "cats"),
        from_state("team"),
    ]
    for format in (ContextFormat(), ContextFormat(fence="xml"), ContextFormat(order="stable")):
        assembled = await assemble(sources, run.next(state=State()), format=format)
        text = "".join(each.text for each in assembled.pieces)
        assert text == assembled.context.to_prompt_string(format)
        assert assembled.context.tokens == sum(estimate(each.text) for each in assembled.pieces)
        assert assembled.context.tokens == sum(each.tokens for each in assembled.context.segments)
        head, first, *_ = headed(assembled.pieces)
        assert head.text == "\n\nuser: Context:\n"
        assert first == assembled.pieces[0]._replace(kind=f"context.{assembled.pieces[0].kind}")
        assert assembled.counter == "characters/4"
    pieces = (await assemble(sources, run.next(state=State()))).pieces
    assert [each.kind for each in pieces] == ["literal", "retrieval", "retrieval", "state"]
    for each, document, score in zip(
        pieces[1:3], ("doc0#0", "doc1#1"), ("0.9", "0.89"), strict=True
    ):
        assert document in each.reason and each.reason.endswith(score)


async def test_nothing_declared_is_nothing_shown_and_nothing_searched() -> None:
    run = seeded("Cats purr.")
    assembled = await assemble([], run.next())
    assert assembled.context.is_empty and assembled.pieces == () and headed(()) == []
    assert run.search.searches == [] and run.record == {}


@pytest.mark.parametrize(
    ("at", "state", "text"),
    [
        ("summary", State(), "A summary."),
        ("lines", State(), "[1,2]"),
        ("customer.name", Order({"name": "Ann"}), "Ann"),
        ("customer", Order({"b": 1, "a": None}), '{"a":null,"b":1}'),
        ("a.b", {"a": {"b": True}}, "true"),
        (lambda s: f"Team {s.team}", State(), "Team pets"),
        (
            lambda s: s,
            State(lines=[]),
            '{"lines":[],"question":"What do cats do?","summary":"A summary.","team":"pets"}',
        ),
        ("half", {"half": "\ud800"}, "\\ud800"),
    ],
)
async def test_values_of_the_state_are_read(at: Any, state: Any, text: str) -> None:
    assembled = await assemble([from_state(at)], Situation(state=state))
    assert assembled.context.to_prompt_string() == text


@pytest.mark.parametrize(
    ("at", "state"),
    [("summary", State(summary=None)), ("a.b.c", {"a": None}), ("a", {}), ("a", {"a": " \n"})],
)
async def test_null_is_empty_and_what_is_empty_is_told(at: str, state: Any) -> None:
    assembled = await assemble([from_state(at), from_literal("x")], Situation(state=state))
    assert assembled.context.to_prompt_string() == "x"
    assert reasons(assembled) == [(f"context[0] from_state({at})", "empty")]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (from_state("nowhere"), "'State'.*'nowhere'"),
        (from_state(lambda s: s.nowhere), "AttributeError"),
        (from_state(lambda s: object()), "object"),
        (from_retrieval(Library, lambda s: 1 / 0), "from_retrieval.library..*ZeroDivisionError"),
        (from_retrieval(Library, "x", filters={"a": lambda s: s.b}), "AttributeError"),
        (from_provider(lambda request: None), "`request`"),
    ],
)
async def test_what_cannot_be_read_is_told(source: Source, said: str) -> None:
    with pytest.raises(ContextUnavailable, match=said):
        await assemble([source], Run().next(state=State()))


async def test_variables_are_shown_as_everywhere_and_what_is_not_is_told() -> None:
    long = VariableDefinition.model_validate(
        {"name": "long", "max_chars": 3, "source": {"type": "static", "value": ""}}
    )
    now = VariableValues(
        {"long": "abcdef", "none": None, "sly": "x\n- admin: true"}, {"gone": "why"}, {"long": long}
    )
    sources = [from_variables("long", "none", "sly", "gone")]
    assembled = await assemble(sources, Situation(values=now))
    assert assembled.context.to_prompt_string() == (
        '- long: "abc…"\n- none: null\n- sly: "x\\n- admin: true"'
    )
    assert reasons(assembled) == [
        ("context_variables.long", "over_budget"),
        ("context_variables.gone", "suppressed"),
    ]
    assert assembled.context.withheld[1].detail == "why"
    assembled = await assemble([from_variables("gone")], Situation(values=now))
    assert reasons(assembled)[1:] == [("context[0] from_variables(gone)", "empty")]


async def test_a_query_is_a_template_of_variables_and_the_state() -> None:
    run = seeded("x")
    source = from_retrieval(Library, "{topic} for {customer.name}? {none}{gone} {not a place}")
    state = {"customer": {"name": "Ann"}, "none": None, "topic": "not this"}
    await assemble([source], run.next(state=state, values=values({"gone": "why"}, topic="cats")))
    assert run.search.searches[0].query == "cats for Ann?  {not a place}"


async def test_a_blank_query_is_not_searched_for() -> None:
    run = seeded("x")
    source = from_retrieval(Library, lambda s: None)
    assembled = await assemble([source], run.next())
    assert assembled.context.is_empty and run.search.searches == []
    assert reasons(assembled) == [("context[0] from_retrieval(library)", "empty")]


async def test_nothing_found_is_no_error() -> None:
    assembled = await assemble([from_retrieval(Library, "x")], Run().next())
    assert reasons(assembled) == [("context[0] from_retrieval(library)", "empty")]


async def test_what_a_search_gives_too_much_is_left_out() -> None:
    async def search(*sought: Any) -> Any:
        contents = ("too much", 0.8), ("fits", 0.9), ("far off", 0.2), (" ", 0.95)
        return [RetrievalResult(c, score, f"d{n}") for n, (c, score) in enumerate(contents)]

    source = from_retrieval(Library, "x", top_k=1, min_relevance=0.7)
    assembled = await assemble([source], Run().next(search=search))
    assert assembled.context.to_prompt_string() == "fits"
    assert reasons(assembled) == [
        ("context[0] from_retrieval(library): d3#0", "empty"),
        ("context[0] from_retrieval(library): d0#0", "filtered"),
        ("context[0] from_retrieval(library): d2#0", "low_relevance"),
    ]


async def test_the_same_search_is_made_once_in_a_run() -> None:
    run = seeded("Cats purr.", "Cats sleep.")
    twice = [
        from_retrieval(Library, "cats", filters={"team": "pets"}),
        from_retrieval(Library, lambda s: "cats", filters={"team": lambda s: "pets"}),
    ]
    first = await assemble(twice, run.next())
    again = await assemble(twice, run.next())
    other = await assemble([from_retrieval(Library, "cats", top_k=1)], run.next())
    assert len(run.search.searches) == 2
    assert first.context == again.context
    assert reasons(first) == [
        (f"context[1] from_retrieval(library): doc{n}#{n}", "duplicate") for n in (0, 1)
    ]
    assert "context[0] from_retrieval(library): doc0#0" in first.context.withheld[0].detail
    searched, once_more = run.facts(RetrievalSearched)
    assert (searched.turn, searched.agent, searched.collection) == (1, "ann", "library")
    assert (searched.query, searched.top_k, searched.filters) == ("cats", 5, {"team": "pets"})
    assert [each.text for each in searched.results] == ["Cats purr.", "Cats sleep."]
    assert [each.text for each in once_more.results] == [None, None], "the run has that text"
    assert other.context.to_prompt_string() == "Cats purr."


async def test_searches_whose_filters_python_takes_for_the_same_are_two() -> None:
    run = Run()
    for found in (1, True):
        run.search.seed(RetrievalResult(f"{found}", 0.9, f"{found}", {"open": found}))
    source = from_retrieval(Library, "x", filters={"open": lambda s: s})
    assembler = Assembler([source], Estimate())
    shown = [(await assembler.assemble(run.next(state=each))).context for each in (1, True)]
    assert [each.to_prompt_string() for each in shown] == ["1", "True"]


@pytest.mark.parametrize("value", [object(), "half \ud800", {"a": 1}])
async def test_a_filter_that_cannot_be_looked_for_is_told(value: Any) -> None:
    source = from_retrieval(Library, "x", filters={"team": lambda s: value})
    with pytest.raises(UsageError, match="'team'"):
        await assemble([source], Run().next())


async def test_searches_go_on_side_by_side_and_the_first_failure_is_raised_as_it_is() -> None:
    going: list[str] = []
    both = anyio.Event()

    async def search(collection: Any, query: str, *more: Any) -> Any:
        going.append(query)
        if query == "a":
            await both.wait()
            await anyio.sleep_forever()
        both.set()
        raise CollectionUnavailable("closed")

    sources = [from_retrieval(Library, "a"), from_retrieval(Library, "b")]
    with pytest.raises(CollectionUnavailable, match="closed"):
        await assemble(sources, Run().next(search=search))
    assert going == ["a", "b"]


async def test_an_adapter_that_gives_something_else_is_told() -> None:
    async def search(*sought: Any) -> Any:
        return ["text"]

    with pytest.raises(ContextUnavailable, match="'library'.*'text'"):
        await assemble([from_retrieval(Library, "a")], Run().next(search=search))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"content": None}, "content None"),
        ({"score": math.nan}, "score nan"),
        ({"score": "0.9"}, "score '0.9'"),
        ({"source_id": None}, "source_id None"),
        ({"chunk": None}, "chunk None"),
        ({"metadata": None}, "metadata None"),
        ({"metadata": {"seen": LATER}}, "metadata {'seen': datetime"),
        ({"metadata": {"half": "\ud800"}}, "metadata {'half'"),
    ],
)
async def test_a_result_that_no_log_could_give_back_is_told(
    fields: dict[str, Any], said: str
) -> None:
    async def search(*sought: Any) -> Any:
        return [RetrievalResult(**{"content": "x", "score": 1, "source_id": "a", **fields})]

    with pytest.raises(ContextUnavailable, match=re.escape(said)):
        await assemble([from_retrieval(Library, "a")], Run().next(search=search))


async def boarded(run: Run, **turn: Any) -> Situation:
    witnessed = WitnessedArtifacts()
    board = BoardTurn(reader=ANN, now=LATER, **turn)
    return run.next(request=await board.request(witnessed.note), witnessed=witnessed)


class Everything:
    """What the board shows, without secrets."""

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        found, _ = await request.board.query_artifacts()
        items = [
            {"type": each.type, "payload": {"n": each.payload["n"]}, "artifact_id": each.id}
            for each in found
        ]
        return ContextSlice(items)


async def broken(request: ContextRequest) -> ContextSlice:
    raise OSError("the archive is closed")


ARTIFACTS = [artifact(id, payload={"n": n, "secret": "s"}) for n, id in enumerate("ab")]


async def test_items_of_providers_are_shown_once_with_what_is_redacted() -> None:
    run = Run()
    sources = [from_provider(Everything()), from_provider(broken, fallback=Everything())]
    assembled = await assemble(sources, await boarded(run, artifacts=ARTIFACTS))
    (segment,) = assembled.context.segments
    assert segment.origin == "context[0] from_provider(Everything)"
    assert isinstance(segment, ArtifactSegment)
    text = '{"artifact_id":"a","payload":{"n":0},"type":"test.Note"}'
    assert segment.artifacts[0] == ShownArtifact(text, "a", "Everything", ("secret",))
    assert "secret" in assembled.pieces[0].reason
    assert [each.reason for each in assembled.context.withheld] == [
        *("redacted", "redacted"),
        *("redacted", "redacted", "duplicate", "duplicate"),
    ]
    assert [each.provider for each in assembled.gathered] == ["Everything", "Everything"]
    assert [each.fallback for each in assembled.gathered] == [False, True]
    assert list(run.record) == ["t1/context/0", "t1/context/1"]


async def test_a_provider_that_fails_fails_the_same_way_again() -> None:
    run = Run()
    for _ in range(2):
        situation = await boarded(run)
        run.turn = 1
        with pytest.raises(ContextUnavailable, match="broken.*OSError: the archive is closed"):
            await assemble([from_provider(broken)], situation)
    assert len(run.record) == 1


async def test_the_same_passage_of_two_documents_is_shown_once() -> None:
    run = seeded("Cats purr.", "Cats purr.", "Cats sleep.")
    assembled = await assemble([from_retrieval(Library, "x")], run.next())
    assert assembled.context.to_prompt_string() == "Cats purr.\n---\nCats sleep."
    assert reasons(assembled) == [("context[0] from_retrieval(library): doc1#1", "duplicate")]


async def test_what_two_sources_give_is_as_important_as_the_more_important_finds_it() -> None:
    run = seeded("Cats purr, and nobody knows why they do so.")
    sources = [
        from_retrieval(Library, "x", priority=0),
        from_literal("filler " * 40, priority=1),
        from_retrieval(Library, "y", priority=2),
    ]
    assembled = await assemble(sources, run.next(), Budget(30))
    assert assembled.context.to_prompt_string().startswith("Cats purr, and nobody knows why")


@pytest.mark.parametrize("first", [0, 3])
async def test_a_minimum_is_kept_also_where_another_source_shows_it(first: int) -> None:
    run = seeded("Only the first query finds this.", "Both of the queries find this.")
    sources = [
        from_retrieval(Library, "x", min_tokens=first),
        from_retrieval(Library, "y", filters={"place": 2}, min_tokens=10),
        from_literal("filler " * 40, priority=1),
    ]
    run.search.seed(RetrievalResult("Both of the queries find this.", 0.9, "same", {"place": 2}))
    assembled = await assemble(sources, run.next(), Budget(30))
    assert "Both of the queries find this." in assembled.context.to_prompt_string()


async def test_over_budget_the_least_important_is_left_out_and_told() -> None:
    run = seeded("Cats purr a lot.", "Cats sleep a lot.", "Cats eat a lot.")
    sources = [
        from_state("summary", priority=1),
        from_retrieval(Library, "cats"),
        from_literal("Always cite sources.", priority=2),
    ]
    whole = await assemble(sources, run.next(state=State()))
    for room in range(1, whole.context.tokens + 1):
        fitted = await assemble(sources, run.next(state=State()), Budget(room))
        assert fitted.context.tokens <= room
        assert sum(each.tokens for each in fitted.pieces) == fitted.context.tokens
        shown = sum(len(each.items) for each in fitted.context.segments)
        trimmed = sum(MARK in each.text for each in fitted.pieces)
        assert shown + len(fitted.context.withheld) - trimmed == 5
    assert fitted.context == whole.context
    fitted = await assemble(sources, run.next(state=State()), Budget(16))
    assert fitted.context.to_prompt_string() == (
        "A summary.\n\nCats purr a lot.\n\nAlways cite sources."
    )
    assert reasons(fitted) == [
        ("context[1] from_retrieval(library): doc1#1", "over_budget"),
        ("context[1] from_retrieval(library): doc2#2", "over_budget"),
    ]
    first, second = fitted.context.withheld
    assert [first.detail, second.detail] == ["5 tokens, 2 free", "4 tokens, 2 free"]
    fitted = await assemble(sources, run.next(state=State()), Budget(10))
    assert "16" in fitted.context.withheld[0].detail


async def test_minimums_are_kept_or_refused() -> None:
    sources = [from_literal("first " * 50, priority=1), from_literal("second " * 50, min_tokens=20)]
    assembled = await assemble(sources, Situation(), Budget(60))
    assert [15 <= each.tokens <= 45 for each in assembled.context.segments] == [True, True]
    with pytest.raises(ContextTooLarge, match="`min_tokens`"):
        await assemble(sources, Situation(), Budget(15))


async def test_secrets_are_masked_before_anything_is_recorded() -> None:
    def masked(text: str) -> str:
        return text.replace("hunter2", "⟨secret:key⟩")

    run = seeded("The key is hunter2.")
    situation = run.next(state={"key": "hunter2"}, received=masked)
    assembled = await assemble([from_state("key"), from_retrieval(Library, "x")], situation)
    assert "hunter2" not in str(assembled) + str(run.record)
    assert assembled.context.to_prompt_string() == "⟨secret:key⟩\n\nThe key is ⟨secret:key⟩."


async def test_a_counter_of_ones_own_counts_each_text_once() -> None:
    class Words:
        name = "words"
        version = "2"
        counted: list[str] = []

        def count(self, text: str) -> int:
            self.counted.append(text)
            return len(text.split())

    words = Words()
    assembled = await assemble(
        [from_literal("one two three"), from_literal("four")], Situation(), Budget(2), counter=words
    )
    assert assembled.counter == "words@2"
    assert len(words.counted) == len({*words.counted})
    assert assembled.context.tokens <= 2


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@given(st.lists(texts, min_size=1, max_size=5), st.integers(0, 4), texts)
async def test_what_changes_last_leaves_all_before_it_as_it_is(
    texts: list[str], place: int, other: str
) -> None:
    """Every source before the one that changes reads the same, to the byte."""
    place %= len(texts)
    sources = [from_state(str(n), title=f"t{n}") for n in range(len(texts))]
    for format in (ContextFormat(), ContextFormat(fence="json"), ContextFormat(order="stable")):
        one = await assemble(sources, Situation(state=dict(enumerate_(texts))), format=format)
        texts_then = [*texts[:place], other, *texts[place + 1 :]]
        then = await assemble(sources, Situation(state=dict(enumerate_(texts_then))), format=format)
        before = await assemble(
            sources[:place], Situation(state=dict(enumerate_(texts))), format=format
        )
        shared = before.context.to_prompt_string(format)
        assert one.context.to_prompt_string(format).startswith(shared)
        assert then.context.to_prompt_string(format).startswith(shared)


def enumerate_(texts: list[str]) -> list[tuple[str, str]]:
    return [(str(n), text) for n, text in enumerate(texts)]


async def test_in_stable_order_what_changes_stands_behind_what_does_not() -> None:
    run = seeded("Cats purr.", "Cats sleep.")
    sources = [
        from_history(),
        from_state("now"),
        from_retrieval(Library, "cats"),
        from_literal("Rules."),
    ]
    format = ContextFormat(order="stable")
    texts = [
        (await assemble(sources, run.next(state={"now": value}), format=format)).context
        for value in ("one", "two")
    ]
    one, two = (each.to_prompt_string(format) for each in texts)
    assert one == "Cats purr.\n---\nCats sleep.\n\nRules.\n\none"
    assert two == one.removesuffix("one") + "two", "all but what changed is shared"


@st.composite
def declared(draw: st.DrawFn) -> list[Source]:
    """Sources of several kinds that compete for room."""
    found: list[Source] = []
    for n in range(draw(st.integers(1, 5))):
        share = {
            "priority": draw(st.integers(-1, 1)),
            "min_tokens": draw(st.sampled_from([0, 0, 3])),
            "title": draw(st.sampled_from(["", "Title"])),
        }
        kinds = (
            lambda share: from_state("text", **share),
            lambda share: from_literal("Something fixed to be said.", **share),
            lambda share: from_variables("tone", "stage", **share),
            lambda share, n=n: from_retrieval(Library, f"query {n % 2}", **share),
            lambda share: from_history(last=3, **share),
        )
        found.append(draw(st.sampled_from(kinds))(share))
    return found


formats = st.sampled_from(
    [ContextFormat(), ContextFormat(fence="json"), ContextFormat(citation=" [{source_id}]")]
)


@given(declared(), st.integers(1, 80), formats)
async def test_whatever_is_declared_fits_and_nothing_is_lost(
    sources: list[Source], room: int, format: ContextFormat
) -> None:
    def situation() -> Situation:
        run = seeded("Cats purr.", "Cats sleep all day and then some more.", "Cats eat.")
        said = [Message(n, "ann", f"Message {n}.") for n in range(1, 4)]
        now = values(tone="calm", stage=2)
        return run.next(state={"text": "Some text of the state."}, values=now, history=said)

    whole = (await assemble(sources, situation(), format=format)).context
    try:
        fitted = await assemble(sources, situation(), Budget(room), format)
    except ContextTooLarge:
        assert sum(each.min_tokens for each in sources) + 4 * len(sources) > room
        return
    context = fitted.context
    assert context.tokens == sum(each.tokens for each in fitted.pieces) <= room
    assert "".join(each.text for each in fitted.pieces) == context.to_prompt_string(format)
    trimmed = sum(MARK in each.text for each in fitted.pieces)
    shown, all_of_it = (sum(len(s.items) for s in each.segments) for each in (context, whole))
    lost = len(context.withheld) - len(whole.withheld)
    assert shown + lost - trimmed == all_of_it
    assert context == (await assemble(sources, situation(), Budget(room), format)).context
