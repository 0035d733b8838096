"""What comes of giving an agent something directly."""

from contextlib import aclosing

from turnloom.agents.events import TurnFinished
from turnloom.board.events import ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact
from turnloom.errors import ReactionFailed
from turnloom.log.events import ENDS
from turnloom.log.spec import RunKey
from turnloom.runtime.service.runs import Runs


async def outcome(runs: Runs, run: RunKey) -> list[Artifact]:
    """What the first turn of a run made, once it is over.

    Raises:
        ReactionFailed: it could not be done.
    """
    made: list[Artifact] = []
    async with aclosing(runs.events(run)) as events:
        async for event in events:
            fact = event.data
            if isinstance(fact, ArtifactMade | ArtifactPublished) and fact.turn == 1:
                made.append(fact.artifact)
            elif isinstance(fact, TurnFinished) and fact.turn == 1:
                if fact.status == "done":
                    return made
                raise ReactionFailed(run.id, 1, fact.agent, fact.error or fact.status)
            elif event.kind in ENDS:
                raise ReactionFailed(run.id, 1, "", f"the run ended: {event.kind}")
    raise ReactionFailed(run.id, 1, "", "the run ended")
