"""What events say of the board."""

from collections.abc import Sequence
from typing import NamedTuple

from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.spec import Artifact, Consumption
from turnloom.log.spec import Event

_KINDS = frozenset({ArtifactPublished.kind, ArtifactConsumed.kind})


class Projection(NamedTuple):
    """What comes on the board with some events, in their order."""

    artifacts: Sequence[Artifact]
    consumptions: Sequence[Consumption]


def project(events: Sequence[Event]) -> Projection | None:
    """What comes on the board with these events; none if they say nothing of it.

    Raises:
        InvalidArtifact: what was taken, or who took it, has no name.
    """
    told = [event for event in events if event.kind in _KINDS]
    if not told:
        return None
    artifacts: list[Artifact] = []
    consumptions: list[Consumption] = []
    for event in told:
        if isinstance(event.data, ArtifactPublished):
            artifacts.append(event.data.artifact)
        else:
            consumptions += _taken(event, event.data)
    return Projection(artifacts, consumptions)


def _taken(event: Event, fact: ArtifactConsumed) -> list[Consumption]:
    """Who took what is on the board. What an agent was given directly is not there, and what goes
    into a run of its own is taken by the turn that it gets there."""
    if not (fact.subscription and fact.turn):
        return []
    return [
        Consumption(
            artifact=artifact,
            agent=fact.agent,
            subscription=fact.subscription,
            run=fact.run or event.run,
            turn=fact.turn,
            at=event.at,
        )
        for artifact in fact.artifacts
    ]
