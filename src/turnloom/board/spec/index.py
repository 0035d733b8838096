"""What passes between the board and a store that finds artifacts by terms."""

from typing import NamedTuple

# The place of an artifact in the order of its board: microseconds, and the number it came with,
# which is at least 1.
Position = tuple[int, int]


class Row(NamedTuple):
    """An artifact to be kept. `digest` tells its content from another under the same id, `at` and
    `opens` are microseconds, and `terms` are what it is found by."""

    id: str
    digest: str
    at: int
    opens: int | None
    visibility: str
    data: str
    terms: tuple[int, ...]


class Found(NamedTuple):
    """An artifact that is kept: its place in the order of the board, and its two texts."""

    at: int
    n: int
    visibility: str
    data: str


class Branch(NamedTuple):
    """What to look for in one scope: entries of one of `leads`, of which each has a term of every
    one of `groups` and none that is `excluded`."""

    leads: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    excluded: tuple[int, ...]


class Plan(NamedTuple):
    """Where to look, strictly between which positions, in which direction, and as of when. No two
    branches find the same artifact."""

    branches: tuple[Branch, ...]
    low: Position
    high: Position
    newest_first: bool
    now: int

    def behind(self, position: Position) -> "Plan":
        """The same behind a position, in the direction of the plan."""
        if self.newest_first:
            return self._replace(high=min(self.high, position))
        return self._replace(low=max(self.low, position))
