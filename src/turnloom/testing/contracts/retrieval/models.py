"""Contract suites for embedders, token counters and splitters."""

import math
from operator import mul

from turnloom.assembly.logic.retrieval import unit
from turnloom.assembly.ports import Embedder, Splitter, TokenCounter

TEXTS = (
    "Cats purr when they are content.",
    "The stock exchange closed early.",
    "走る",
    "größe 😀",
    "a",
    "x" * 5000,
    "one two " * 2000,
    "!?",
    " ",
    "",
)


class EmbedderContract:
    """The suite for `Embedder`."""

    def fresh(self) -> Embedder:
        """The embedder."""
        raise NotImplementedError

    async def test_every_text_has_its_vector(self) -> None:
        """Each text has a finite vector of the declared size, the same alone and in a batch."""
        embedder = self.fresh()
        assert embedder.name and embedder.version
        together = await embedder.embed(TEXTS)
        assert len(together) == len(TEXTS)
        for text, vector in zip(TEXTS, together, strict=True):
            assert len(vector) == embedder.dimensions
            assert all(math.isfinite(number) for number in vector)
            [alone] = await self.fresh().embed([text])
            assert all(abs(a - b) < 1e-4 for a, b in zip(alone, vector, strict=True)), text
        assert list(await embedder.embed([])) == []

    async def test_texts_that_say_the_same_are_near(self) -> None:
        """Similar texts have nearer vectors than different ones."""
        texts = ["the cat sleeps", "a cat sleeps", "stock exchange rules"]
        cat, same, other = [unit(each) or [] for each in await self.fresh().embed(texts)]
        assert sum(map(mul, cat, same)) > sum(map(mul, cat, other))


class TokenCounterContract:
    """The suite for `TokenCounter`."""

    def fresh(self) -> TokenCounter:
        """The counter."""
        raise NotImplementedError

    def test_tokens_are_counted(self) -> None:
        """An empty text has no tokens, no text has more tokens than bytes, and counts are
        stable."""
        counter = self.fresh()
        assert counter.name and counter.version
        assert counter.count("") == 0
        for text in (*TEXTS[:-1], "half \ud800", "nul \0", "<|endoftext|>"):
            count = counter.count(text)
            assert 1 <= count <= len(text.encode("utf-8", "backslashreplace")), text
            assert counter.count(text) == count

    def test_more_text_has_more_tokens(self) -> None:
        """The count grows in proportion to the text."""
        counter = self.fresh()
        once = counter.count("The quick brown fox jumps.")
        often = counter.count(" ".join(["The quick brown fox jumps."] * 100))
        assert 80 * once <= often <= 120 * once


class SplitterContract:
    """The suite for `Splitter`."""

    def fresh(self) -> Splitter:
        """The splitter."""
        raise NotImplementedError

    def test_nothing_is_lost_and_nothing_is_blank(self) -> None:
        """Chunks are parts of the text in order, none is blank, and no word is lost."""
        splitter = self.fresh()
        assert splitter.name
        sentences = [f"This is sentence {n}." for n in range(400)]
        text = "\n\n".join(" ".join(sentences[n : n + 8]) for n in range(0, 400, 8))
        for format in ("text", "markdown"):
            chunks = splitter.split(text, format)
            places = [text.find(chunk) for chunk in chunks]
            assert len(chunks) > 1 and -1 not in places and places == sorted(places)
            assert all(chunk.strip() for chunk in chunks)
            assert set(text.split()) == {word for chunk in chunks for word in chunk.split()}
            assert splitter.split(text, format) == chunks

    def test_any_text_can_be_cut(self) -> None:
        """Any text can be split; a blank one has no chunks."""
        splitter = self.fresh()
        for format in ("text", "markdown"):
            for text in TEXTS:
                assert bool(splitter.split(text, format)) == bool(text.strip()), text
