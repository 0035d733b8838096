"""A run's timeline from its log."""

from collections.abc import Sequence

from turnloom.errors import UsageError
from turnloom.explain.logic.artifacts import is_board
from turnloom.explain.logic.board_rows import BOARD_HANDLERS
from turnloom.explain.logic.flow_routes import is_flow
from turnloom.explain.logic.flow_rows import FLOW_HANDLERS
from turnloom.explain.logic.guard_rows import GUARD_HANDLERS, spent
from turnloom.explain.logic.rows import HANDLERS, Rows
from turnloom.explain.spec.timeline import Timeline
from turnloom.log.events import RunPaused, RunStarted
from turnloom.log.logic import status_of
from turnloom.log.spec import Event


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
    rest = last.data if isinstance((last := events[-1]).data, RunPaused) else RunPaused("")
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
        rest.collected,
        rest.wanted,
    )
