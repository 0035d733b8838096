"""A choice among candidates: what was believed of each, what was drawn, and what it came to."""

import msgspec

from turnloom.explain.spec.text import table
from turnloom.guards.events import Candidate


class Selected(msgspec.Struct, frozen=True):
    """Who was chosen for a turn, in place of whom it was `meant` for; nobody, if none was left."""

    seq: int
    chosen: str
    meant: str
    category: str
    confidence: float
    candidates: tuple[Candidate, ...]
    excluded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """The choice in a line."""
        instead = f" in place of {self.meant}" if self.meant not in ("", self.chosen) else ""
        sure = f", confidence {self.confidence:g}" if self.chosen else ""
        who = f"{self.chosen or 'nobody'}{instead}"
        return f"Selection (seq {self.seq}): {who}, in category {self.category!r}{sure}"

    @property
    def lines(self) -> list[str]:
        """The choice, each candidate with its belief and its draw, and what was done without."""
        rows = [COLUMNS, *map(_cells, self.candidates)]
        candidates = [f"  {row}" for row in table(rows)] if self.candidates else []
        excluded = [f"  excluded: {', '.join(self.excluded)}"] if self.excluded else []
        return [self.says, *candidates, *excluded, *(f"  ! {note}" for note in self.notes)]


COLUMNS = ("candidate", "belief", "draw", "cost", "score")


def _cells(each: Candidate) -> tuple[str, ...]:
    draw, score = f"{each.draw:.3f}", f"{each.score:.3f}"
    return each.agent, belief_of(each), draw, f"{each.cost:g}", score


def belief_of(candidate: Candidate) -> str:
    """What was believed of a candidate."""
    return f"Beta({candidate.alpha:g}, {candidate.beta:g})"
