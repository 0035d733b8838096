"""The board out of the logs: after an append where they are apart, and when it is lost."""

from collections.abc import Sequence

from weft.board.logic.projecting import project
from weft.board.ports import ArtifactStore
from weft.log.ports import EventLog
from weft.log.spec import Event


async def index(artifacts: ArtifactStore, events: Sequence[Event]) -> None:
    """Put on a board what events say of it; again changes nothing.

    Raises:
        ArtifactExists: an artifact is there with other content.
        StoreUnavailable: some of it may be there; the same may be tried again later.
    """
    told = project(events)
    if told:
        await artifacts.put(told.artifacts)
        await artifacts.consume(told.consumptions)


async def rebuild(log: EventLog, artifacts: ArtifactStore) -> None:
    """Put on a board what the logs of all runs say and it does not hold; again changes nothing.

    Artifacts of one moment come in the order of their runs.

    Raises:
        ArtifactExists: an artifact is there with other content.
        StoreUnavailable: some of it may be there; the same may be tried again later.
    """
    for first, _ in reversed(await log.ends()):
        await index(artifacts, await log.read(first.run))
