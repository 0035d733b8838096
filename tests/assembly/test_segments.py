"""Segments: a closed union that survives a round trip, and reads as a format says."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.board.strategies import visibilities
from tests.log.strategies import json_values, structs_of, texts
from turnloom.assembly.events import Withheld
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec.formats import ContextFormat
from turnloom.assembly.spec.providers import Message
from turnloom.assembly.spec.retrieval import RetrievalResult
from turnloom.assembly.spec.segments import (
    ArtifactSegment,
    ContextSegment,
    HistorySegment,
    HistorySummary,
    LiteralSegment,
    RetrievalSegment,
    ShownArtifact,
    ShownVariable,
    StateSegment,
    VariableSegment,
)

changes = st.sampled_from(["never", "sometimes", "always"])
shared = {"origin": texts, "title": texts, "tokens": st.integers(0, 99), "changes": changes}
results = st.builds(
    RetrievalResult,
    texts,
    st.floats(0, 1),
    texts,
    st.dictionaries(texts, json_values, max_size=2),
    st.integers(0, 9),
    visibilities,
)
messages = st.builds(Message, st.integers(1, 99), texts, texts, visibilities)


def some(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(inner, max_size=3).map(tuple)


segments = st.one_of(
    st.builds(StateSegment, texts, **shared),
    st.builds(LiteralSegment, texts, **shared),
    st.builds(VariableSegment, some(structs_of(ShownVariable)), **shared),
    st.builds(RetrievalSegment, texts, texts, some(results), **shared),
    st.builds(ArtifactSegment, some(structs_of(ShownArtifact)), **shared),
    st.builds(HistorySegment, some(messages), st.none() | structs_of(HistorySummary), **shared),
)
contexts = st.builds(
    AssembledContext, some(segments), some(structs_of(Withheld)), st.integers(0, 999)
)


@given(segments)
def test_every_segment_survives_a_round_trip(segment: ContextSegment) -> None:
    line = msgspec.json.encode(segment)
    again = msgspec.json.decode(line, type=ContextSegment)
    assert again == segment and type(again) is type(segment)
    assert msgspec.json.decode(line)["kind"] == segment.kind


@given(contexts)
def test_assembled_context_survives_a_round_trip(context: AssembledContext) -> None:
    line = msgspec.json.encode(context)
    assert msgspec.json.decode(line, type=AssembledContext) == context


@pytest.mark.parametrize("line", [b'{"kind":"other"}', b'{"kind":"literal","content":"","x":1}'])
def test_a_segment_of_another_kind_is_refused(line: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(line, type=ContextSegment)


@given(contexts, st.sampled_from(["none", "json", "xml"]))
def test_all_of_it_can_be_written(context: AssembledContext, fence: str) -> None:
    text = context.to_prompt_string(ContextFormat(fence=fence))
    assert isinstance(text, str)
    if fence == "json":
        lines = text.split("\n")
        objects = [line for line in lines if line.startswith("{")]
        assert all(isinstance(msgspec.json.decode(line), dict) for line in objects)


CATS = RetrievalResult("Cats purr.", 0.9, "cats.md", {"lang": "en"}, 1)
DOGS = RetrievalResult("Dogs bark.", 0.8, "dogs.md")
CONTEXT = AssembledContext(
    (
        StateSegment("A summary."),
        RetrievalSegment("library", "pets", (CATS, DOGS)),
        LiteralSegment("Cite.", title="Rules"),
        VariableSegment((ShownVariable("tone", '"calm"'), ShownVariable("n", "3"))),
        ArtifactSegment((ShownArtifact('{"n":1}', "a1", "P"),)),
        HistorySegment((Message(4, "ann", "Hi."),), HistorySummary("Long talk.", 1, 3, 3, "d")),
    )
)


def test_plain_text_parts_segments_by_a_blank_line_and_results_by_dashes() -> None:
    assert CONTEXT.to_prompt_string() == (
        "A summary.\n\nCats purr.\n---\nDogs bark.\n\nRules:\nCite.\n\n"
        '- tone: "calm"\n- n: 3\n\n{"n":1}\n\nsummary: Long talk.\n\nann: Hi.'
    )
    empty = AssembledContext((StateSegment(""), LiteralSegment("x")))
    assert empty.to_prompt_string() == "\n\nx", "null is empty text"
    assert [each.content for each in CONTEXT.segments[:3]] == [
        "A summary.",
        "Cats purr.\n---\nDogs bark.",
        "Cite.",
    ]


def test_every_part_of_a_format_has_its_effect() -> None:
    def shown(**said: object) -> str:
        return CONTEXT.to_prompt_string(ContextFormat(**said))

    assert "\n\n## Rules\nCite." in shown(header="## {title}\n")
    assert shown(separator=" | ").startswith("A summary. | Cats purr.")
    assert "Cats purr.\nDogs bark." in shown(separators={"retrieval": "\n"})
    assert "<ann> Hi." in shown(templates={"history": "<{author}> {content}"})
    assert "Cats purr. [cats.md#1]\n---\nDogs bark. [dogs.md#0]" in shown(
        citation=" [{source_id}#{chunk}]"
    )
    assert shown(fence="json").startswith('```json\n{"content":"A summary."}\n```\n\n```json\n')
    assert shown(fence="xml").startswith("<state>\n<item>A summary.</item>\n</state>\n\n")
    literal = LiteralSegment("always", changes="never")
    steady = AssembledContext((*CONTEXT.segments, literal))
    assert steady.to_prompt_string(ContextFormat(order="stable")).startswith("always\n\nA summary.")


def test_fences_hold_whatever_is_inside() -> None:
    nasty = AssembledContext(
        (
            StateSegment("```\n</item></state> & more", title='a "b" <c>'),
            RetrievalSegment("l", "q", (RetrievalResult("x", 0.5, '"><b>'),)),
        )
    )
    assert nasty.to_prompt_string(ContextFormat(fence="xml")) == (
        "<state title='a \"b\" &lt;c&gt;'>\n"
        "<item>```\n&lt;/item&gt;&lt;/state&gt; &amp; more</item>"
        '\n</state>\n\n<retrieval>\n<item source_id=\'"&gt;&lt;b&gt;\' chunk="0" score="0.5" '
        'collection="l">x</item>\n</retrieval>'
    )
    text = nasty.to_prompt_string(ContextFormat(fence="json"))
    assert [line for line in text.split("\n") if line.startswith("```")] == ["```json", "```"] * 2


def test_a_template_is_filled_once() -> None:
    sly = AssembledContext((StateSegment("{title} {content}"),))
    assert sly.to_prompt_string() == "{title} {content}"


def test_results_can_be_cited_and_nothing_is_empty() -> None:
    assert CONTEXT.retrieval_results == (CATS, DOGS)
    assert not CONTEXT.is_empty
    assert AssembledContext.empty().is_empty
    assert AssembledContext.empty() is AssembledContext.empty()
    assert AssembledContext.empty().to_prompt_string() == ""
    assert AssembledContext((StateSegment(""),)).is_empty
