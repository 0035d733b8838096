"""Difference between the frames of two turns, with the event behind each change."""

from typing import Literal

import msgspec

from turnloom.explain.spec.text import ReadableExplanation, counted, indent
from turnloom.explain.spec.variable import Cause
from turnloom.kernel.markup import visible

# What people are shown of an added or gone text, around a change, and of a chain of causes.
LINES = 12
AROUND = 60
LINKS = 4

SIGNS = {"added": "+", "gone": "-", "changed": "~"}


class TurnPlace(msgspec.Struct, frozen=True):
    """A turn of a run; `seq` is the event that recorded its frame, 0 without a frame."""

    run: str
    turn: int
    agent: str
    seq: int

    @property
    def says(self) -> str:
        """The turn in a few words."""
        return f"turn {self.turn} of {self.agent}"


class WordChange(msgspec.Struct, frozen=True):
    """A stretch of a changed text: in both texts, only in the later one, or only in the earlier
    one."""

    change: Literal["same", "added", "gone"]
    text: str


class ChangeCause(msgspec.Struct, frozen=True):
    """The event behind a change, in the log of `run`, with its chain of causes, nearest first, back
    to the other frame."""

    run: str
    seq: int
    kind: str
    says: str
    causes: tuple[Cause, ...] = ()

    @property
    def line(self) -> str:
        """The event as one line."""
        return f"seq {self.seq} {self.kind}: {self.says}"

    @property
    def chain(self) -> list[str]:
        """The nearest causes of the event, one line each."""
        left = len(self.causes) - LINKS
        more = [f"← {counted(left, 'earlier event')}"] if left > 0 else []
        near = self.causes[:LINKS]
        return [*(f"← seq {each.seq} {each.kind}: {each.says}" for each in near), *more]


class SegmentChange(msgspec.Struct, frozen=True):
    """A segment, or a message of the history, that was added, is gone, or has another text.

    `words` has the whole of both texts. `withheld` is the reason if the later frame withholds it.
    """

    change: Literal["added", "gone", "changed"]
    kind: str
    origin: str
    before: str
    after: str
    tokens_before: int
    tokens_after: int
    words: tuple[WordChange, ...]
    cause: ChangeCause
    withheld: str = ""

    @property
    def headline(self) -> str:
        """The change, the segment and its sizes, as one line."""
        if self.change == "changed":
            tokens = f"{self.tokens_before} → {counted(self.tokens_after, 'token')}"
        else:
            tokens = counted(self.tokens_after or self.tokens_before, "token")
        why = f", withheld ({self.withheld})" if self.withheld else ""
        return f"{SIGNS[self.change]} {self.change}: {self.kind} {self.origin}, {tokens}{why}"

    @property
    def shown(self) -> tuple[WordChange, ...]:
        """The words without most of what did not change, and without the rest of a long text."""
        if self.change == "changed":
            last = len(self.words) - 1
            return tuple(_shortened(each, n, last) for n, each in enumerate(self.words))
        (whole,) = self.words or (WordChange("same", ""),)
        lines = whole.text.strip("\n").split("\n")
        rest = [f"… {counted(len(lines) - LINES, 'more line')}"] if len(lines) > LINES else []
        return (WordChange(whole.change, "\n".join([*lines[:LINES], *rest])),)

    @property
    def lines(self) -> list[str]:
        """The change with its words and its cause, one line each."""
        text = "".join(map(marked, self.shown)) if self.change == "changed" else self.shown[0].text
        chain = [f"      {line}" for line in self.cause.chain]
        because = [f"    because of {self.cause.line}", *chain]
        return [f"  {self.headline}", indent(text.strip("\n"), "      "), *because]


class TurnDiff(ReadableExplanation, frozen=True):
    """What changed between the frames of two turns, in the order of the later frame.

    `same` counts segments and messages without a change; `reordered` says that some of them have
    another order.
    """

    before: TurnPlace
    after: TurnPlace
    changes: tuple[SegmentChange, ...]
    same: int
    reordered: bool
    tokens_before: int
    tokens_after: int

    def __str__(self) -> str:
        lines = [self.headline, self.summary]
        for change in self.changes:
            lines += change.lines
        return visible("\n".join(lines))

    @property
    def headline(self) -> str:
        """The two turns."""
        elsewhere = f" (run {self.before.run})" if self.before.run != self.after.run else ""
        before = f"{self.before.says}{elsewhere}"
        return f"What changed from {before} to {self.after.says}, run {self.after.run}"

    @property
    def summary(self) -> str:
        """The numbers of changes, and the sizes of both frames."""
        counts = [
            f"{number} {change}"
            for change in ("added", "gone", "changed")
            if (number := sum(each.change == change for each in self.changes))
        ]
        order = ", in another order" if self.reordered else ""
        sizes = f"{self.tokens_before} → {counted(self.tokens_after, 'token')}"
        return f"{', '.join(counts) or 'Nothing changed'}; {self.same} the same{order}; {sizes}"


def marked(each: WordChange) -> str:
    """A stretch of text with marks that need no colour."""
    match each.change:
        case "added":
            return f"{{+{each.text}+}}"
        case "gone":
            return f"[-{each.text}-]"
        case _:
            return each.text


def _shortened(each: WordChange, number: int, last: int) -> WordChange:
    """An unchanged stretch without its middle; the first and the last lose their outer part."""
    if each.change != "same" or len(each.text) <= 3 * AROUND:
        return each
    head = each.text[:AROUND] if number else ""
    tail = each.text[-AROUND:] if number < last else ""
    return WordChange("same", f"{head} … {tail}".strip(" "))
