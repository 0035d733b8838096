"""What can be asked of a run, and what comes back."""

import msgspec

from weft.explain.spec.route import RouteExplained
from weft.explain.spec.timeline import Timeline
from weft.explain.spec.turn import TurnExplained
from weft.explain.spec.variable import VariableExplained

Explanation = TurnExplained | VariableExplained | RouteExplained | Timeline


class Asked(msgspec.Struct, frozen=True):
    """Which turn (perhaps counted for one agent), variable (perhaps as of an event) or route."""

    turn: int | None = None
    variable: str | None = None
    route: int | None = None
    agent: str | None = None
    at: int | None = None
