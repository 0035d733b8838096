"""What guards did."""

from typing import ClassVar

import msgspec

from weft.log.spec import Fact


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One who could be chosen: what was believed of its success (a Beta distribution), the number
    drawn from that, and what it costs."""

    agent: str
    alpha: float
    beta: float
    draw: float
    cost: float = 0.0

    @property
    def score(self) -> float:
        """What it is compared by."""
        return self.draw - self.cost


class SelectionMade(Fact, frozen=True):
    """Of the candidates for a turn, one was chosen; nobody, if none was left.

    `meant` is whom the turn would have gone to, `artifact` what woke the candidates. `confidence`
    says how much is known of the chosen one (1: at least 20 outcomes). All draws follow from
    `chance`, the run and the id of this event. `notes` say what had to be done without.
    """

    kind: ClassVar[str] = "selection.made"
    chosen: str
    category: str
    candidates: tuple[Candidate, ...] = ()
    excluded: tuple[str, ...] = ()
    confidence: float = 0.0
    chance: str = ""
    meant: str = ""
    artifact: str = ""
    notes: tuple[str, ...] = ()


class SelectionJudged(Fact, frozen=True):
    """How the turn of a chosen agent turned out: `credit` is from 0, a failure, to 1."""

    kind: ClassVar[str] = "selection.judged"
    turn: int
    agent: str
    tenant: str
    workflow: str
    category: str
    credit: float
    decay: float = 0.0
    note: str = ""
