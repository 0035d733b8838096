"""What guards did."""

from typing import ClassVar

import msgspec

from weft.guards.spec import Amounts
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
