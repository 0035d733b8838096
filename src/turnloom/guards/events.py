"""What guards did."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from turnloom.guards.spec import Amounts, TurnDigest
from turnloom.log.spec import Fact


class BudgetReserved(Fact, frozen=True):
    """A turn or call is about to be made, and so much is kept for it."""

    kind: ClassVar[str] = "budget.reserved"
    call: str
    amounts: Amounts


class BudgetSpent(Fact, frozen=True):
    """A turn or call was made; this is what it used of the budget, whatever was kept for it."""

    kind: ClassVar[str] = "budget.spent"
    call: str
    amounts: Amounts


class Shortage(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """A resource of which more is wanted than is left of the limit."""

    resource: str
    wanted: float
    left: float
    limit: float


class BudgetExceededFact(Fact, frozen=True):
    """A turn or call was not made, or was cut off: every resource is named that is short for it.
    `of` is the step or the agent."""

    kind: ClassVar[str] = "budget.exceeded"
    call: str
    short: tuple[Shortage, ...]
    of: str = ""


class ScarcityChanged(Fact, frozen=True):
    """The budget is scarcer than before: `share` is what is left of its scarcest resource."""

    kind: ClassVar[str] = "scarcity.changed"
    level: str
    previous: str
    resource: str
    share: float


class WindowNeared(Fact, frozen=True):
    """A call of an agent takes most of the window of its model; recorded once in a run for each
    agent. `largest` are the parts that have the most tokens."""

    kind: ClassVar[str] = "window.neared"
    turn: int
    agent: str
    tokens: int
    window: int
    largest: Mapping[str, int]
    model: str = ""
    counter: str = ""


class LoopChecked(Fact, frozen=True):
    """A turn as loop detection sees it, and how much alike what the last turns said is, if that
    was asked: by whom, or why it is not known."""

    kind: ClassVar[str] = "loop.checked"
    recorded: ClassVar[frozenset[str]] = frozenset({"entry"})
    entry: TurnDigest
    similarity: float | None = None
    embedder: str = ""
    error: str = ""


class Scores(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """The signs of a loop, each from 0 to 1, and how much they count together."""

    repetition: float = 0.0
    oscillation: float = 0.0
    no_progress: float = 0.0
    semantic: float = 0.0
    frustration: float = 0.0
    confidence: float = 0.0


class LoopDetectedFact(Fact, frozen=True):
    """Turns of a run are a loop, and something is done about it: a strategy, perhaps in place of
    one that cannot be followed here. `recoveries` is how often that was done before."""

    kind: ClassVar[str] = "loop.detected"
    recorded: ClassVar[frozenset[str]] = frozenset({"hint"})
    loop: str
    agents: tuple[str, ...]
    turns: tuple[int, ...]
    scores: Scores
    strategy: str
    instead_of: str = ""
    hint: str = ""
    recoveries: int = 0


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
    recorded: ClassVar[frozenset[str]] = frozenset({"category", "artifact"})
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
    recorded: ClassVar[frozenset[str]] = frozenset({"category"})
    turn: int
    agent: str
    tenant: str
    workflow: str
    category: str
    credit: float
    decay: float = 0.0
    note: str = ""
