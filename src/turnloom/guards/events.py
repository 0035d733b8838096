"""Events of guards."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from turnloom.guards.spec import Amounts, TurnDigest
from turnloom.log.spec import Fact


class BudgetReserved(Fact, frozen=True):
    """Budget was reserved for a turn or call that is about to begin."""

    kind: ClassVar[str] = "budget.reserved"
    call: str
    amounts: Amounts


class BudgetSpent(Fact, frozen=True):
    """The amounts that a turn or call used, in place of those reserved for it."""

    kind: ClassVar[str] = "budget.spent"
    call: str
    amounts: Amounts


class Shortage(
    msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True
):
    """A resource of which more is wanted than is left."""

    resource: str
    wanted: float
    left: float
    limit: float


class BudgetExceededFact(Fact, frozen=True):
    """A turn or call was not started, or was cut off, for lack of budget: `short` has every
    resource that is short. `of` is the step or the agent."""

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
    """A call of an agent takes most of its model's context window; recorded once per run and agent.
    `largest` are the parts with the most tokens."""

    kind: ClassVar[str] = "window.neared"
    turn: int
    agent: str
    tokens: int
    window: int
    largest: Mapping[str, int]
    model: str = ""
    counter: str = ""


class LoopChecked(Fact, frozen=True):
    """A turn as loop detection sees it, and the similarity of the last turns' texts, if it was
    measured: by which `embedder`, or the `error` that prevented it."""

    kind: ClassVar[str] = "loop.checked"
    recorded: ClassVar[frozenset[str]] = frozenset({"entry"})
    entry: TurnDigest
    similarity: float | None = None
    embedder: str = ""
    error: str = ""


class Scores(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """The signs of a loop, each from 0 to 1, and the weighted sum as `confidence`."""

    repetition: float = 0.0
    oscillation: float = 0.0
    no_progress: float = 0.0
    semantic: float = 0.0
    frustration: float = 0.0
    confidence: float = 0.0


class LoopDetectedFact(Fact, frozen=True):
    """A loop was detected, and a strategy was applied: `strategy`, in place of `instead_of` if that
    one is not possible here. `recoveries` counts the earlier recoveries from this loop."""

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
    """A candidate of a selection: the Beta distribution of its success, the number drawn from it,
    and its cost."""

    agent: str
    alpha: float
    beta: float
    draw: float
    cost: float = 0.0

    @property
    def score(self) -> float:
        """The number that candidates are compared by."""
        return self.draw - self.cost


class SelectionMade(Fact, frozen=True):
    """A candidate was chosen for a turn; `chosen` is empty if every candidate was excluded.

    `meant` is the agent that would have had the turn, `artifact` the artifact that woke the
    candidates. `confidence` says how well the chosen one is known (1: at least 20 outcomes). All
    draws are derived from `chance`, the run and the id of this event. `notes` say what was missing.
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
    """Result of a chosen agent's turn: `credit` is from 0, a failure, to 1, a success."""

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
