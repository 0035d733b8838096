"""What a tenant does in a scene, and the mark of what it keeps."""

from typing import NamedTuple

from turnloom.board.spec import Visibility

# Ids that both have; with the names above, some would be the same when joined by a slash.
IDS = ("c", "b/c", "%")


class Deed(NamedTuple):
    """What one of two tenants does: which port, under which id, and what else it says."""

    who: int
    kind: str
    id: str
    number: int
    visibility: Visibility


def canary(tenant: str) -> str:
    """The text that stands in all that a tenant keeps for itself."""
    return f"canary-{tenant.encode().hex()}-end"
