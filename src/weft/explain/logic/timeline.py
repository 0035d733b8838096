"""A run's timeline from its log."""

from collections.abc import Sequence

from weft.errors import UsageError
from weft.explain.logic.artifacts import is_board
from weft.explain.logic.board_rows import BOARD_HANDLERS
from weft.explain.logic.flow_routes import is_flow
from weft.explain.logic.flow_rows import FLOW_HANDLERS
from weft.explain.logic.guard_rows import GUARD_HANDLERS, spent
from weft.explain.logic.rows import HANDLERS, Rows
from weft.explain.spec.timeline import Timeline
from weft.log.events import ENDS, RunPaused, RunStarted
from weft.log.spec import Event


def timeline(events: Sequence[Event]) -> Timeline:
    """What happened, a row for each thing of note, with how long it took and what it used.

    Raises:
        UsageError: there are no events, or they do not begin with the run's start.
    """
    if not events or not isinstance(events[0].data, RunStarted):
        raise UsageError("A timeline needs the events of a run from its first one on.")
    handlers = {**HANDLERS, **BOARD_HANDLERS, **FLOW_HANDLERS, **GUARD_HANDLERS}
    rows = Rows(handlers, overlapping=is_board(events) or is_flow(events))
    for event in events:
        rows.take(event)
    started: RunStarted = events[0].data
    return Timeline(
        events[0].run,
        started.workflow,
        started.workflow_version,
        status_of(events[-1]),
        started.user,
        started.tenant,
        events[0].at,
        (events[-1].at - events[0].at).total_seconds(),
        events[-1].seq,
        rows.turns,
        rows.usage,
        rows.in_order(),
        started.correlation,
        started.parents,
        started.collects,
        spent(events),
    )


def status_of(last: Event) -> str:
    """How a run stands whose last event this is."""
    if last.kind in ENDS:
        return last.kind.removeprefix("run.")
    return "waiting" if isinstance(last.data, RunPaused) else "unfinished"
