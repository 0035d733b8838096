"""The board out of the logs."""

import logging
from collections.abc import Sequence

from turnloom.board.logic.rows import project
from turnloom.board.ports import ArtifactStore
from turnloom.errors import UnknownKind
from turnloom.log.ports import EventLog
from turnloom.log.service import all_runs
from turnloom.log.spec import Event, RunKey

_log = logging.getLogger("turnloom.board")


async def rebuild(log: EventLog, artifacts: ArtifactStore, tenant: str) -> None:
    """Put on a board what the logs of a tenant's runs say and it does not hold; again changes
    nothing.

    Artifacts of one moment come in the order of their runs.

    Raises:
        ArtifactExists: the board holds an artifact that a log has with other content.
        StoreUnavailable: some of it may be there; the same may be tried again later.
    """
    newest_first = [first.run async for first, _ in all_runs(log, tenant)]
    for run in reversed(newest_first):
        try:
            events = await log.read(RunKey(tenant, run))
        except UnknownKind as error:
            _log.warning("a run is left out: %s", error)
            continue
        await index(artifacts, tenant, events)


async def index(artifacts: ArtifactStore, tenant: str, events: Sequence[Event]) -> None:
    """Put on a board what some events of a tenant say and it does not hold; again changes
    nothing."""
    told = project(events)
    if told:
        await artifacts.put(tenant, told.artifacts)
        await artifacts.consume(tenant, told.consumptions)
