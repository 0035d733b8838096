"""Segments as text: what stands before, between and behind their items."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from turnloom.assembly.spec.formats import ContextFormat
from turnloom.assembly.spec.segments import ContextSegment, Fields
from turnloom.assembly.spec.templates import fill
from turnloom.kernel.values import canonical

# What changes least comes first.
_STEADINESS = {"never": 0, "sometimes": 1, "always": 2}


class Edges(NamedTuple):
    """Where an item stands: first of all, first of its segment, last of its segment."""

    first: bool
    opens: bool
    closes: bool


def turn_of(segment: ContextSegment, format: ContextFormat) -> int:
    """Which segments come before which: sorted by this, the others stay as they are declared."""
    return 0 if format.order == "declared" else _STEADINESS[segment.changes]


def edges_of(segments: Sequence[int]) -> Iterator[Edges]:
    """The edges of items that stand in a row, of these segments."""
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
    """An item as it stands in a prompt; the separator before it belongs to it."""
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
            told = "".join(f" {name}={quoteattr(each)}" for name, each in others)
            return f"<item{told}>{escape(str(item['content']))}</item>"
        case "none":
            template = format.template(kind)
            if kind == "retrieval":
                template += format.citation
            return fill(template, lambda name: str(item[name]))
