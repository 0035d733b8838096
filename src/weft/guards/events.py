"""What guards did."""

from typing import ClassVar

import msgspec

from weft.guards.spec import Amounts, Entry
from weft.log.spec import Fact


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


class BudgetExceeded(Fact, frozen=True):
    """A turn or call was not made, or was cut off: every resource is named that is short for it."""

    kind: ClassVar[str] = "budget.exceeded"
    call: str
    short: tuple[Shortage, ...]


class ScarcityChanged(Fact, frozen=True):
    """The budget is scarcer than before: `share` is what is left of its scarcest resource."""

    kind: ClassVar[str] = "scarcity.changed"
    level: str
    previous: str
    resource: str
    share: float


class LoopChecked(Fact, frozen=True):
    """A turn as loop detection sees it, and how much alike what the last turns said is, if that
    was asked: by whom, or why it is not known."""

    kind: ClassVar[str] = "loop.checked"
    entry: Entry
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


class LoopDetected(Fact, frozen=True):
    """Turns of a run are a loop, and something is done about it: a strategy, perhaps in place of
    one that cannot be followed here. `recoveries` is how often that was done before."""

    kind: ClassVar[str] = "loop.detected"
    loop: str
    agents: tuple[str, ...]
    turns: tuple[int, ...]
    scores: Scores
    strategy: str
    instead_of: str = ""
    hint: str = ""
    recoveries: int = 0
