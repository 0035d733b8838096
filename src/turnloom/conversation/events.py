"""Where the work went, and why."""

from typing import ClassVar

import msgspec

from turnloom.kernel.values import Json
from turnloom.log.spec import Fact


class Considered(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule at the moment of a decision: the values it saw, its verdict, and why not."""

    rule: int
    target: str
    fired: bool
    condition: str = ""
    saw: dict[str, Json] = {}
    why_not: str = ""


class RouteDecided(Fact, frozen=True):
    """Who speaks next, and every rule that was considered."""

    kind: ClassVar[str] = "route.decided"
    recorded: ClassVar[frozenset[str]] = frozenset({"reason", "considered"})
    source: str
    target: str
    reason: str
    considered: tuple[Considered, ...] = ()
