"""The board out of the logs."""

from collections.abc import Sequence

from turnloom.board.logic.projecting import project
from turnloom.board.ports import ArtifactStore
from turnloom.log.ports import EventLog
from turnloom.log.spec import Event, RunKey


async def rebuild(log: EventLog, artifacts: ArtifactStore, tenant: str) -> None:
    """Put on a board what the logs of a tenant's runs say and it does not hold; again changes
    nothing.

    Artifacts of one moment come in the order of their runs.

    Raises:
        ArtifactExists: the board holds an artifact that a log has with other content.
        StoreUnavailable: some of it may be there; the same may be tried again later.
    """
    for first, _ in reversed(await log.ends(tenant)):
        await index(artifacts, tenant, await log.read(RunKey(tenant, first.run)))


async def index(artifacts: ArtifactStore, tenant: str, events: Sequence[Event]) -> None:
    """Put on a board what some events of a tenant say and it does not hold; again changes
    nothing."""
    told = project(events)
    if told:
        await artifacts.put(tenant, told.artifacts)
        await artifacts.consume(tenant, told.consumptions)
