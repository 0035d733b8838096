"""What a turn would have been shown with another threshold of one of its searches."""

import msgspec

from turnloom.assembly.events import Withheld
from turnloom.explain.spec.text import ReadableExplanation, table
from turnloom.kernel.markup import visible


class ChangedSegment(msgspec.Struct, frozen=True):
    """A segment with another text: its tokens in the record and with the edit. One that is in one
    of the two frames only has 0 in the other."""

    kind: str
    origin: str
    recorded: int
    edited: int


class WhatIf(ReadableExplanation, frozen=True):
    """The frame of a turn with another `min_relevance` of a search, beside the recorded one.

    `certainty` is that of a backtest: `certain`, `assumed` if earlier frames of the run would have
    been different too, or `undecided` with what it depends on in `unknown`. It is empty if the
    frame would have been the same. `entered` are the origins that would have been shown as well,
    `left_out` is what was shown and would not have been, `otherwise_out` what would have been left
    out, whole or in part, for another reason. `tokens` and `edited_tokens` are those of the whole
    frame. `end` says why the turn cannot be decided again, if it cannot.
    """

    run: str
    turn: int
    agent: str
    search: int
    collection: str
    min_relevance: float
    edited_min_relevance: float
    certainty: str
    tokens: int
    edited_tokens: int
    entered: tuple[str, ...] = ()
    left_out: tuple[Withheld, ...] = ()
    otherwise_out: tuple[Withheld, ...] = ()
    segments: tuple[ChangedSegment, ...] = ()
    unknown: tuple[str, ...] = ()
    end: str = ""

    @property
    def headline(self) -> str:
        """The turn and the edit, as one line."""
        about = f"Turn {self.turn} of {self.agent}, run {self.run}"
        edit = f"{self.collection} from {self.min_relevance:g} to {self.edited_min_relevance:g}"
        return f"{about}, with min_relevance of {edit}"

    @property
    def lines(self) -> list[str]:
        """What would have been different, line by line."""
        if self.end:
            return [f"It cannot be decided again: {self.end}"]
        sure = f" ({self.certainty})" if self.certainty else ""
        if self.segments or self.unknown:
            lines = [f"Another prompt{sure}: {self.tokens} → {self.edited_tokens} tokens"]
        else:
            lines = [f"The same prompt{sure}: {self.tokens} tokens"]
        lines += [f"  It depends on {each}." for each in self.unknown]
        lines += [f"  + {each}" for each in self.entered]
        lines += [f"  - {_because(each)}" for each in self.left_out]
        lines += [f"  for another reason: {_because(each)}" for each in self.otherwise_out]
        rows = [(f"  {e.origin}", e.kind, f"{e.recorded} → {e.edited}") for e in self.segments]
        return [*lines, *table(rows)] if rows else lines

    def __str__(self) -> str:
        return visible("\n".join([self.headline, *self.lines]))


def _because(withheld: Withheld) -> str:
    reason = ", ".join(filter(None, (withheld.reason, withheld.detail)))
    return f"{withheld.origin} ({reason})"
