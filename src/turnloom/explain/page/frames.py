"""Frames on a page: each segment with its text, long texts once."""

from collections.abc import Iterable, Iterator, Sequence

from turnloom.assembly.events import Withheld
from turnloom.explain.page.markup import (
    Content,
    Html,
    element,
    folded,
    joined,
    link,
    preformatted,
    seq_link,
    table,
)
from turnloom.explain.spec.text import counted, one_line
from turnloom.explain.spec.turn import ShownMessage, ShownSegment

# Characters of the longest text that is repeated, of the longest that is not folded, of a preview.
SHORT = 160
LONG = 1200
PREVIEW = 110

# Kinds of segments that have a colour of their own.
_KINDS = frozenset({"instruction", "variable", "history", "tool", "context", "artifact", "input"})

# The length of a bar, and the least length of a part of it.
BAR = 1000
LEAST = 4


def kind_class(kind: str) -> str:
    """The class of a kind of segment."""
    base = kind.partition(".")[0]
    return f"k-{base if base in _KINDS else 'other'}"


class SharedTexts:
    """The texts of a page. A long text is written once; later frames refer to that place."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._histories: dict[tuple[int, int], tuple[str, Sequence[ShownMessage]]] = {}

    def write(self, text: str, anchor: str) -> Html:
        """A text, or where it was written before."""
        if len(text) <= SHORT:
            return preformatted(text)
        if (place := self._texts.setdefault(text, anchor)) != anchor:
            same = link(place, "The same text as before")
            return element("p", same, ": ", one_line(text, PREVIEW), class_="same")
        return whole(text)

    def write_history(self, messages: Sequence[ShownMessage], anchor: str) -> Html:
        """Messages, without those that an earlier history began with."""
        known, place = self._known(messages)
        if messages:
            self._histories.setdefault((len(messages), messages[-1].seq), (anchor, messages))
        same = link(place, f"The {counted(known, 'message')} shown before") if known else None
        rest = messages[known:]
        new = element("ol", map(_message, rest), class_="messages", start=known + 1)
        also = f", and {counted(len(rest), 'more message')}:" if rest else "."
        return joined(same and element("p", same, also, class_="same"), new if rest else None)

    def _known(self, messages: Sequence[ShownMessage]) -> tuple[int, str]:
        """The number of messages that an earlier history consisted of, and its place."""
        for count in range(len(messages), 0, -1):
            found = self._histories.get((count, messages[count - 1].seq))
            if found and found[1] == messages[:count]:
                return count, found[0]
        return 0, ""


def whole(text: str) -> Html:
    """A text, folded if it is long."""
    if len(text) <= LONG:
        return preformatted(text)
    return folded([one_line(text, PREVIEW), _length(text)], preformatted(text), class_="long")


def _length(text: str) -> Html:
    return element("span", f" {len(text):,} characters", class_="soft")


def _message(message: ShownMessage) -> Html:
    who = element("b", message.author)
    return element("li", element("p", who, " ", seq_link(message.seq)), whole(message.text))


def write_segments(segments: Sequence[ShownSegment], anchor: str, texts: SharedTexts) -> Html:
    """The segments of a frame in the order in which they were sent."""
    pieces = (_piece(each, f"{anchor}-{number}", texts) for number, each in enumerate(segments, 1))
    return element("ol", pieces, class_="pieces")


def _piece(each: ShownSegment, anchor: str, texts: SharedTexts) -> Html:
    head = element(
        "p",
        element("b", each.kind, class_="tag"),
        " ",
        element("code", each.origin),
        element("span", f" {each.tokens} tokens, {each.share} %", class_="size"),
        class_="piece-head",
    )
    text = (
        texts.write_history(each.messages, anchor)
        if each.messages
        else texts.write(each.text, anchor)
    )
    reason = element("p", each.reason, class_="reason")
    return element("li", head, reason, text, id=anchor, class_=kind_class(each.kind))


def share_bar(segments: Iterable[ShownSegment]) -> Html:
    """The shares of the segments as a bar; the list of segments says the same in numbers."""
    parts = (
        element("rect", x=x, y=0, width=width, height=10, class_=kind_class(each.kind))
        for x, width, each in _placed(segments)
    )
    return Html(
        '<svg class="shares" aria-hidden="true" viewBox="0 0 1000 10" preserveAspectRatio="none">'
        f"{joined(parts)}</svg>"
    )


def _placed(segments: Iterable[ShownSegment]) -> Iterator[tuple[int, int, ShownSegment]]:
    x = 0
    for each in segments:
        width = max(round(each.share / 100 * BAR), LEAST)
        yield x, width - 1, each
        x += width


def write_withheld(withheld: Sequence[Withheld]) -> Content:
    """What a frame leaves out, and why."""
    if not withheld:
        return element("p", "Withheld: nothing", class_="soft")
    rows = ((element("code", each.origin), each.reason, each.detail) for each in withheld)
    return table(("origin", "reason", "detail"), rows, "Withheld")
