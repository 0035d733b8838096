"""Split texts at sections, paragraphs, sentences and words. Needs the extra `vectors`."""

import re
from collections.abc import Iterator, Sequence

from turnloom.assembly.ports import TokenCounter
from turnloom.assembly.spec.retrieval import Chunking, Format
from turnloom.errors import UsageError

try:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter
except ModuleNotFoundError as error:
    if error.name != "semantic_text_splitter":
        raise
    raise UsageError(
        "Splitting texts needs the package 'semantic-text-splitter', which is not installed. "
        'Install it with: pip install "turnloom[vectors]"'
    ) from error

__all__ = ["SemanticSplitter"]

# A word this long is data, not prose. The library's time grows with the square of its length.
_ENDLESS = re.compile(r"\w{10000}")


class SemanticSplitter:
    """Splits texts into chunks of at most the configured number of tokens."""

    def __init__(self, chunking: Chunking, counter: TokenCounter) -> None:
        tokens, overlap = chunking.tokens, chunking.overlap
        self.name = f"semantic, {tokens} tokens of {counter.name}, {overlap} overlap"
        self._splitters: dict[Format, TextSplitter | MarkdownSplitter] = {
            "text": TextSplitter.from_callback(counter.count, tokens, overlap),
            "markdown": MarkdownSplitter.from_callback(counter.count, tokens, overlap),
        }

    def split(self, text: str, format: Format) -> Sequence[str]:
        """The chunks of a text, in order."""
        chunks = self._splitters[format].chunks
        return [chunk for part in _parts(text) for chunk in chunks(part)]


def _parts(text: str) -> Iterator[str]:
    """A text in one part, or cut within extremely long words."""
    start = 0
    for found in _ENDLESS.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]
