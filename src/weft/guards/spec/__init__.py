"""Guards as a user declares them."""

from weft.guards.spec.beliefs import Belief, Observation, Pool
from weft.guards.spec.selection import GENERAL, Category, Selection
from weft.kernel.models import Declared


class Guards(Declared):
    """What can stop or steer the runs of a workflow."""

    selection: Selection | None = None


__all__ = ["GENERAL", "Belief", "Category", "Guards", "Observation", "Pool", "Selection"]
