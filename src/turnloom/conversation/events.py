"""Events of conversations: routes and the rules considered."""

from typing import ClassVar

import msgspec

from turnloom.kernel.values import Json
from turnloom.log.spec import Fact


class ConsideredRule(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A rule considered for a route: the values it saw, whether it fired, and why not."""

    rule: int
    target: str
    fired: bool
    condition: str = ""
    saw: dict[str, Json] = {}
    why_not: str = ""


class RouteDecided(Fact, frozen=True):
    """The next speaker was decided, with every rule that was considered."""

    kind: ClassVar[str] = "route.decided"
    recorded: ClassVar[frozenset[str]] = frozenset({"reason", "considered"})
    source: str
    target: str
    reason: str
    considered: tuple[ConsideredRule, ...] = ()
