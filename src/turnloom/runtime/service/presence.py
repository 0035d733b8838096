"""Whether an artifact is on the board already."""

from datetime import UTC, datetime

import msgspec
from msgspec import UNSET

from turnloom.board.logic.rows import read_artifact, read_visibility
from turnloom.board.spec import Artifact, Public
from turnloom.errors import ArtifactExists
from turnloom.runtime.ports import Artifacts

_NEVER = datetime.min.replace(tzinfo=UTC)


async def already(artifacts: Artifacts, tenant: str, made: Artifact) -> Artifact | None:
    """The tenant's artifact of this id, if it is there with this content.

    Raises:
        ArtifactExists: it is there with other content.
    """
    rows = await artifacts.find(tenant, made.id)
    found = next((row for row in rows if row.tenant == tenant), None)
    if found is None:
        return None
    visibility = read_visibility(found.visibility)
    there = read_artifact(visibility or Public(), found.data)
    if visibility is None or not is_same(there, made):
        raise ArtifactExists(made.id)
    return there


def is_same(one: Artifact, other: Artifact) -> bool:
    """Whether two artifacts of one id are the same; when and where they came, and what is
    indexed, does not matter."""
    return _content(one) == _content(other)


def _content(artifact: Artifact) -> Artifact:
    return msgspec.structs.replace(artifact, run=None, created_at=_NEVER, indexed=UNSET)
