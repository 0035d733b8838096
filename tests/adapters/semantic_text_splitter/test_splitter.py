"""Texts cut at their joints."""

from time import process_time

from tests.support.missing import refused_without
from turnloom.adapters.semantic_text_splitter import SemanticSplitter
from turnloom.adapters.splintr import SplintrCounter
from turnloom.assembly.logic.retrieval import Estimate
from turnloom.assembly.ports import Splitter
from turnloom.assembly.spec.retrieval import Chunking
from turnloom.testing import ParagraphSplitter
from turnloom.testing.contracts import SplitterContract


class TestSplitter(SplitterContract):
    def fresh(self) -> Splitter:
        return SemanticSplitter(Chunking(tokens=60, overlap=10), Estimate())


class TestParagraphs(SplitterContract):
    def fresh(self) -> Splitter:
        return ParagraphSplitter()


TEXT = "\n\n".join(
    " ".join(f"Paragraph {n} has sentence {m} of four." for m in range(4)) for n in range(12)
)


def test_chunks_are_no_larger_than_declared() -> None:
    for counter in (Estimate(), SplintrCounter()):
        for tokens in (8, 50, 400):
            splitter = SemanticSplitter(Chunking(tokens=tokens, overlap=0), counter)
            chunks = splitter.split(TEXT, "text")
            assert all(counter.count(chunk) <= tokens for chunk in chunks)
            if tokens == 50:
                assert chunks[0] == TEXT.split("\n\n")[0]


def test_chunks_repeat_the_end_of_the_one_before() -> None:
    text = TEXT.replace("\n\n", " ")
    apart = SemanticSplitter(Chunking(tokens=40, overlap=0), Estimate()).split(text, "text")
    assert " ".join(apart) == text
    chunks = SemanticSplitter(Chunking(tokens=40, overlap=15), Estimate()).split(text, "text")
    for before, after in zip(chunks, chunks[1:], strict=False):
        first = after.partition(".")[0]
        assert before.endswith(f"{first}.")


def test_markdown_is_cut_between_its_sections() -> None:
    text = "# One\n\nFirst words stand here.\n\n# Two\n\n- an item\n- another item\n"
    splitter = SemanticSplitter(Chunking(tokens=9, overlap=0), Estimate())
    assert splitter.split(text, "markdown") == [
        "# One\n\nFirst words stand here.",
        "# Two\n\n- an item\n- another item",
    ]


def test_a_word_without_an_end_is_cut_in_no_time() -> None:
    """Nobody wrote it: a file of data, perhaps; the time for it does not grow with its square."""
    text = f"Before. {'漢' * 600_000} After."
    splitter = SemanticSplitter(Chunking(tokens=400, overlap=0), Estimate())
    begun = process_time()
    chunks = splitter.split(text, "text")
    assert process_time() - begun < 10
    assert "".join(chunks).replace(" ", "") == text.replace(" ", "")


def test_how_it_cuts_is_in_its_name() -> None:
    names = {
        SemanticSplitter(chunking, counter).name
        for chunking in (Chunking(), Chunking(tokens=50), Chunking(overlap=0))
        for counter in (Estimate(), SplintrCounter())
    }
    assert len(names) == 6


def test_the_extra_is_named_when_it_is_missing() -> None:
    said = str(
        refused_without("semantic_text_splitter", "turnloom.adapters.semantic_text_splitter")
    )
    assert 'pip install "turnloom[vectors]"' in said
