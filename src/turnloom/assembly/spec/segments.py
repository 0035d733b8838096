"""Segments: pieces of assembled context, each with its declaration."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from turnloom.assembly.spec.formats import SEPARATORS, TEMPLATES, fill
from turnloom.assembly.spec.providers import Message
from turnloom.assembly.spec.retrieval import RetrievalResult
from turnloom.board.spec import Audience
from turnloom.kernel.values import Json

# The fields of one item, for templates, JSON and XML.
Fields = Mapping[str, Json]

# How often a segment changes between turns.
Changes = Literal["never", "sometimes", "always"]


class _Segment(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True
):
    """Common fields: `origin` is the declaration, `tokens` its share of the context."""

    origin: str = ""
    title: str = ""
    tokens: int = 0
    changes: Changes = "sometimes"

    @property
    def kind(self) -> str:
        """The kind of the segment."""
        return str(self.__struct_config__.tag)

    @property
    def items(self) -> tuple[Fields, ...]:
        """The items of the segment; each has a `content`."""
        raise NotImplementedError


class _Text(_Segment, frozen=True):
    content: str

    @property
    def items(self) -> tuple[Fields, ...]:
        """The text, as the only item."""
        return ({"content": self.content},)


class StateSegment(_Text, frozen=True, tag="state"):
    """A value of the state as text; null is empty text."""


class LiteralSegment(_Text, frozen=True, tag="literal"):
    """A declared text."""


class _List(_Segment, frozen=True):
    @property
    def content(self) -> str:
        """All items as one text."""
        kind = self.kind
        texts = (
            fill(TEMPLATES[kind], lambda name, item=item: str(item[name])) for item in self.items
        )
        return SEPARATORS[kind].join(texts)


class ShownVariable(msgspec.Struct, frozen=True):
    """A variable and its value as text."""

    name: str
    content: str


class VariableSegment(_List, frozen=True, tag="variables"):
    """Variables with their values."""

    variables: tuple[ShownVariable, ...]

    @property
    def items(self) -> tuple[Fields, ...]:
        """The variables."""
        return tuple({"name": each.name, "content": each.content} for each in self.variables)


class RetrievalSegment(_List, frozen=True, tag="retrieval"):
    """Search results of a collection, best first."""

    collection: str
    query: str
    results: tuple[RetrievalResult, ...]

    @property
    def items(self) -> tuple[Fields, ...]:
        """The results."""
        return tuple(
            {
                "content": each.content,
                "source_id": each.source_id,
                "chunk": each.chunk,
                "score": each.score,
                "collection": self.collection,
            }
            for each in self.results
        )


class ShownArtifact(msgspec.Struct, frozen=True):
    """An item of a provider, as text; `artifact` is the id of the artifact it shows, if any,
    `redacted` the hidden paths, `visibility` that of its inputs."""

    content: str
    artifact: str = ""
    provider: str = ""
    redacted: tuple[str, ...] = ()
    visibility: Audience = ()


class ArtifactSegment(_List, frozen=True, tag="artifact"):
    """Items of a provider."""

    artifacts: tuple[ShownArtifact, ...]

    @property
    def items(self) -> tuple[Fields, ...]:
        """The items."""
        return tuple(
            {"content": each.content, "artifact": each.artifact, "provider": each.provider}
            for each in self.artifacts
        )


class HistorySummary(msgspec.Struct, frozen=True):
    """A summary that replaces the messages of the events `first` to `last`; `digest` is their
    running digest, `visibility` that of all of them."""

    content: str
    first: int
    last: int
    count: int
    digest: str
    visibility: Audience = ()


# The author of a summary.
SUMMARY = "summary"


class HistorySegment(_List, frozen=True, tag="history"):
    """Messages, and a summary of the earlier ones."""

    messages: tuple[Message, ...]
    summary: HistorySummary | None = None

    @property
    def items(self) -> tuple[Fields, ...]:
        """The summary, if there is one, and the messages."""
        said = tuple({"content": m.text, "author": m.author, "seq": m.seq} for m in self.messages)
        if self.summary is None:
            return said
        whole = {"content": self.summary.content, "author": SUMMARY, "seq": self.summary.last}
        return (whole, *said)


ContextSegment = (
    StateSegment
    | RetrievalSegment
    | LiteralSegment
    | VariableSegment
    | ArtifactSegment
    | HistorySegment
)
