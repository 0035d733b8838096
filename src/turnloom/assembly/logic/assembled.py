"""Assembled context: its segments, what was withheld, and its rendering."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar
from xml.sax.saxutils import escape, quoteattr

import msgspec

from turnloom.assembly.events import Withheld
from turnloom.assembly.logic.labels import together
from turnloom.assembly.spec.formats import PLAIN, ContextFormat, fill
from turnloom.assembly.spec.providers import Message
from turnloom.assembly.spec.retrieval import RetrievalResult
from turnloom.assembly.spec.segments import (
    ArtifactSegment,
    ContextSegment,
    Fields,
    HistorySegment,
    HistorySummary,
    LiteralSegment,
    RetrievalSegment,
    ShownArtifact,
    StateSegment,
    VariableSegment,
)
from turnloom.board.spec import Audience, Visibility
from turnloom.kernel.digests import digest
from turnloom.kernel.values import canonical

# The most stable segments come first.
_STEADINESS = {"never": 0, "sometimes": 1, "always": 2}


class Edges(NamedTuple):
    """The position of an item: first of all, first of its segment, last of its segment."""

    first: bool
    opens: bool
    closes: bool


def turn_of(segment: ContextSegment, format: ContextFormat) -> int:
    """The sort key of a segment; segments with equal keys stay in declared order."""
    return 0 if format.order == "declared" else _STEADINESS[segment.changes]


def edges_of(segments: Sequence[int]) -> Iterator[Edges]:
    """The edges of consecutive items, given their segments."""
    last = len(segments) - 1
    for place, segment in enumerate(segments):
        opens = place == 0 or segments[place - 1] != segment
        yield Edges(place == 0, opens, place == last or segments[place + 1] != segment)


def written_out(segments: Iterable[ContextSegment], format: ContextFormat) -> str:
    """Segments as one text."""
    row = sorted(segments, key=lambda each: turn_of(each, format))
    items = [(number, item) for number, each in enumerate(row) for item in each.items]
    edges = edges_of([number for number, _ in items])
    return "".join(
        item_text(row[number], item, each, format)
        for (number, item), each in zip(items, edges, strict=True)
    )


def item_text(segment: ContextSegment, item: Fields, edges: Edges, format: ContextFormat) -> str:
    """An item as it appears in a prompt, with the separator before it."""
    kind = segment.kind
    if edges.opens:
        lead = ("" if edges.first else format.separator) + _opening(segment, format)
    else:
        lead = "\n" if format.fence != "none" else format.between(kind)
    body = _body(kind, item, format)
    return f"{lead}{body}{_closing(kind, format)}" if edges.closes else f"{lead}{body}"


def _opening(segment: ContextSegment, format: ContextFormat) -> str:
    title = segment.title
    if format.fence == "xml":
        return f"<{segment.kind}{f' title={quoteattr(title)}' if title else ''}>\n"
    header = fill(format.header, lambda _: title) if title else ""
    return f"{header}```json\n" if format.fence == "json" else header


def _closing(kind: str, format: ContextFormat) -> str:
    match format.fence:
        case "json":
            return "\n```"
        case "xml":
            return f"\n</{kind}>"
        case "none":
            return ""


def _body(kind: str, item: Fields, format: ContextFormat) -> str:
    match format.fence:
        case "json":
            return canonical(item)
        case "xml":
            others = ((name, str(each)) for name, each in item.items() if name != "content")
            attributes = "".join(f" {name}={quoteattr(each)}" for name, each in others)
            return f"<item{attributes}>{escape(str(item['content']))}</item>"
        case "none":
            template = format.template(kind)
            if kind == "retrieval":
                template += format.citation
            return fill(template, lambda name: str(item[name]))


S = TypeVar("S", bound=msgspec.Struct)

replace = msgspec.structs.replace


class AssembledContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The context of a turn: its segments, what was withheld, and its tokens."""

    segments: tuple[ContextSegment, ...]
    withheld: tuple[Withheld, ...] = ()
    tokens: int = 0

    @property
    def retrieval_results(self) -> tuple[RetrievalResult, ...]:
        """All search results that are shown, for citations."""
        return tuple(
            result
            for segment in self.segments
            if isinstance(segment, RetrievalSegment)
            for result in segment.results
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is shown."""
        return not any(segment.content for segment in self.segments)

    @property
    def visibility(self) -> Audience:
        """The audience that may see everything shown."""
        return together(each for segment in self.segments for each in _visibilities(segment))

    @classmethod
    def empty(cls) -> "AssembledContext":
        """The context of a turn without declared sources."""
        return _EMPTY

    def to_prompt_string(self, options: ContextFormat = PLAIN) -> str:
        """The segments as one text."""
        return written_out(self.segments, options)


_EMPTY = AssembledContext(())


def _visibilities(segment: ContextSegment) -> Iterator[Visibility]:
    """The visibilities of a segment's items."""
    match segment:
        case RetrievalSegment(results=results):
            yield from (each.visibility for each in results)
        case ArtifactSegment(artifacts=artifacts):
            yield from chain.from_iterable(each.visibility for each in artifacts)
        case HistorySegment(messages=messages, summary=summary):
            yield from (each.visibility for each in messages)
            yield from summary.visibility if summary else ()
        case _:
            return


class Trait(NamedTuple):
    """Metadata of an item: its label, the reason it is shown, and the key that identifies
    duplicates."""

    label: str
    reason: str
    key: str = ""


def traits_of(segment: ContextSegment) -> list[Trait]:
    """The traits of each item of a segment."""
    match segment:
        case StateSegment():
            return [Trait("", "a value of the state")]
        case LiteralSegment():
            return [Trait("", "always the same")]
        case VariableSegment(variables=variables):
            return [Trait(each.name, f"variable {each.name}") for each in variables]
        case RetrievalSegment(results=results):
            return [_result_trait(each) for each in results]
        case ArtifactSegment(artifacts=artifacts):
            return [_artifact_trait(n, each) for n, each in enumerate(artifacts)]
        case HistorySegment(messages=messages, summary=summary):
            traits = [_message_trait(each) for each in messages]
            return traits if summary is None else [_summary_trait(summary), *traits]


def _result_trait(result: RetrievalResult) -> Trait:
    label = f"{result.source_id}#{result.chunk}"
    return Trait(label, f"{label} scores {result.score:g}", f"passage {digest(result.content)}")


def _artifact_trait(number: int, item: ShownArtifact) -> Trait:
    label = f"artifact {item.artifact}" if item.artifact else f"item {number}"
    without = f"without {', '.join(item.redacted)}" if item.redacted else ""
    shown = label if item.artifact else "no artifact"
    reason = "; ".join(part for part in (shown, without) if part)
    return Trait(label, reason, f"artifact {item.artifact}" if item.artifact else "")


def _message_trait(message: Message) -> Trait:
    return Trait(f"event {message.seq}", f"said in event {message.seq}")


def _summary_trait(summary: HistorySummary) -> Trait:
    label = f"events {summary.first} to {summary.last}"
    return Trait(label, f"a summary of {label} ({summary.digest})")


def ranks_of(segment: ContextSegment) -> Sequence[int]:
    """The rank of each item of a segment: higher ranks are dropped first, in a history the
    oldest."""
    count = len(segment.items)
    return range(count - 1, -1, -1) if isinstance(segment, HistorySegment) else range(count)


def narrowed(segment: ContextSegment, shown: Mapping[int, str], tokens: int) -> ContextSegment:
    """A segment reduced to the shown items and their shown content."""
    match segment:
        case StateSegment() | LiteralSegment():
            return replace(segment, content=shown[0], tokens=tokens)
        case VariableSegment(variables=variables):
            return replace(segment, variables=_kept(variables, shown), tokens=tokens)
        case RetrievalSegment(results=results):
            return replace(segment, results=_kept(results, shown), tokens=tokens)
        case ArtifactSegment(artifacts=artifacts):
            return replace(segment, artifacts=_kept(artifacts, shown), tokens=tokens)
        case HistorySegment():
            return _narrowed_history(segment, shown, tokens)


def _kept(items: Sequence[S], shown: Mapping[int, str]) -> tuple[S, ...]:
    return tuple(replace(items[number], content=shown[number]) for number in shown)


def _narrowed_history(
    segment: HistorySegment, shown: Mapping[int, str], tokens: int
) -> HistorySegment:
    first = 0 if segment.summary is None else 1
    summary = segment.summary
    if summary is not None:
        summary = replace(summary, content=shown[0]) if 0 in shown else None
    messages = tuple(
        segment.messages[number - first]._replace(text=text)
        for number, text in shown.items()
        if number >= first
    )
    return replace(segment, messages=messages, summary=summary, tokens=tokens)
