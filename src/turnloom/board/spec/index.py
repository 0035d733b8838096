"""What passes between the board and a store that finds artifacts by terms."""

from typing import NamedTuple

# The place of an artifact in the order of its board: microseconds, and the number it came with,
# which is at least 1.
Position = tuple[int, int]


class Row(NamedTuple):
    """An artifact of a tenant to be kept. `digest` tells its content from another under the same
    id, `at` and `opens` are microseconds, `shared` says that other tenants find it too, and `terms`
    are what it is found by."""

    tenant: str
    id: str
    digest: str
    at: int
    opens: int | None
    shared: bool
    visibility: str
    data: str
    terms: tuple[int, ...]


class Found(NamedTuple):
    """An artifact that is kept: its place in the order of the board, whose it is, and its two
    texts."""

    at: int
    n: int
    tenant: str
    visibility: str
    data: str


class Branch(NamedTuple):
    """What to look for in one scope: entries of one of `leads`, of which each has a term of every
    one of `groups` and none that is `excluded`."""

    leads: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    excluded: tuple[int, ...]


class Plan(NamedTuple):
    """Where to look, strictly between which positions, in which direction, as of when, and for
    which tenant: it finds its own artifacts that open by `opened`, and what is shared and open now.
    No two branches find the same artifact."""

    branches: tuple[Branch, ...]
    low: Position
    high: Position
    newest_first: bool
    now: int
    tenant: str
    opened: int

    def behind(self, position: Position) -> "Plan":
        """The same behind a position, in the direction of the plan."""
        if self.newest_first:
            return self._replace(high=min(self.high, position))
        return self._replace(low=max(self.low, position))
