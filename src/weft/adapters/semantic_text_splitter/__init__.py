"""Texts cut where they have joints: sections, paragraphs, sentences, words. Needs the extra
`vectors`."""

from collections.abc import Sequence

from weft.assembly.ports import TokenCounter
from weft.assembly.spec.retrieval import Chunking, Format
from weft.errors import UsageError

try:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter
except ModuleNotFoundError as error:
    if error.name != "semantic_text_splitter":
        raise
    raise UsageError(
        "Cutting texts needs the package 'semantic-text-splitter', which is not installed. "
        'Install it with: pip install "weft[vectors]"'
    ) from error

__all__ = ["SemanticSplitter"]


class SemanticSplitter:
    """Chunks as large as the chunking allows, by the tokens of a counter."""

    def __init__(self, chunking: Chunking, counter: TokenCounter) -> None:
        tokens, overlap = chunking.tokens, chunking.overlap
        self.name = f"semantic, {tokens} tokens of {counter.name}, {overlap} overlap"
        self._splitters: dict[Format, TextSplitter | MarkdownSplitter] = {
            "text": TextSplitter.from_callback(counter.count, tokens, overlap),
            "markdown": MarkdownSplitter.from_callback(counter.count, tokens, overlap),
        }

    def split(self, text: str, format: Format) -> Sequence[str]:
        """The chunks of a text, in their order."""
        return self._splitters[format].chunks(text)
