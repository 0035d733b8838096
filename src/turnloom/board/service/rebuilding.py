"""Rebuilding of the board from the logs."""

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
    """Add what the logs of a tenant's runs have and the board lacks; idempotent.

    Artifacts with equal times are ordered by run.

    Raises:
        ArtifactExists: the board has an artifact of a log with other content.
        StoreUnavailable: a part may be stored; try again later.
    """
    newest_first = [last.run async for _, last in all_runs(log, tenant)]
    for run in reversed(newest_first):
        try:
            events = await log.read(RunKey(tenant, run))
        except UnknownKind as error:
            _log.warning("skipped a run: %s", error)
            continue
        await index(artifacts, tenant, events)


async def index(artifacts: ArtifactStore, tenant: str, events: Sequence[Event]) -> None:
    """Add what some events of a tenant have and the board lacks; idempotent."""
    projection = project(events)
    if projection:
        await artifacts.put(tenant, projection.artifacts)
        await artifacts.consume(tenant, projection.consumptions)
