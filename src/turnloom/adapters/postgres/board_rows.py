"""Artifacts, consumptions and outcomes as the functions of the schema take them."""

from collections.abc import Sequence
from typing import Any

from turnloom.board.logic.rows import content_digest, microseconds
from turnloom.board.spec import Consumption
from turnloom.board.spec.queries import ArtifactRow
from turnloom.guards.spec import Observation

Rows = dict[str, list[dict[str, Any]]]


def added_artifacts(rows: Sequence[ArtifactRow]) -> Rows:
    """Artifacts to add, if any."""
    given = [{**row._asdict(), "digest": content_digest(row)} for row in rows]
    return {"artifacts": given} if given else {}


def added_consumptions(tenant: str, consumptions: Sequence[Consumption]) -> Rows:
    """Consumptions of a tenant to add, if any."""
    given = [
        {
            "tenant": tenant,
            "artifact": each.artifact,
            "subscription": each.subscription,
            "run": each.run,
            "turn": each.turn,
            "agent": each.agent,
            "at": microseconds(each.at),
        }
        for each in consumptions
    ]
    return {"consumptions": given} if given else {}


def added_outcomes(observations: Sequence[Observation]) -> Rows:
    """Outcomes to add, if any."""
    given = [
        {
            **each.pool._asdict(),
            "run": each.run,
            "event": each.event,
            "agent": each.agent,
            "credit": each.credit,
            "kept": 1 - each.decay,
        }
        for each in observations
    ]
    return {"observations": given} if given else {}
