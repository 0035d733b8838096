"""The costs of runs, kept while an app is open."""

from collections import OrderedDict
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from turnloom.app.history import off_loop

if TYPE_CHECKING:
    from turnloom.explain.spec.cost import Cost
    from turnloom.log.spec import RunKey
    from turnloom.wiring import Parts

# The most runs whose costs are kept.
MOST = 1000


class _Known(NamedTuple):
    """The cost of a run that began then, up to a position of its log."""

    begun: datetime
    position: int = 0
    cost: "Cost | None" = None


class RunCosts:
    """The costs of the runs that were asked for last. Of a run that is known, only the events that
    are new are read."""

    def __init__(self) -> None:
        self._known: OrderedDict[RunKey, _Known] = OrderedDict()

    async def of(self, run: "RunKey", parts: "Parts") -> "Cost | None":
        """The cost of a run so far; None if it made no model calls.

        Raises:
            UnknownRun: there is no such run.
        """
        from turnloom.explain.logic.costs import added, cost_of_run
        from turnloom.log.service import ends_of

        log = parts.store.log
        first, last = await ends_of(log, run)
        known = self._known.get(run)
        if known is None or known.begun != first.at or known.position > last.seq:
            known = _Known(first.at)  # also another run under the id of one that was deleted
        if known.position < last.seq:
            events = await log.read(run, known.position)
            new = await off_loop(partial(cost_of_run, events, parts.prices))
            known = _Known(first.at, events[-1].seq, added(known.cost, new))
        self._known[run] = known
        self._known.move_to_end(run)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return known.cost
