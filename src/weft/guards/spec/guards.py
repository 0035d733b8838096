"""The guards of a workflow."""

from weft.guards.spec.budgets import RunBudget
from weft.guards.spec.loops import LoopDetection
from weft.guards.spec.selection import Selection
from weft.kernel.models import Declared


class Guards(Declared):
    """What can stop or steer a run; a guard that is left out does nothing."""

    budget: RunBudget | None = None
    loop_detection: LoopDetection | None = None
    selection: Selection | None = None


NO_GUARDS = Guards()
