"""The guards of a workflow."""

from turnloom.guards.spec.budgets import RunBudget
from turnloom.guards.spec.loops import LoopDetection
from turnloom.guards.spec.selection import Selection
from turnloom.kernel.models import Declared


class Guards(Declared):
    """What can stop or steer a run; a guard that is left out does nothing."""

    budget: RunBudget | None = None
    loop_detection: LoopDetection | None = None
    selection: Selection | None = None


NO_GUARDS = Guards()
