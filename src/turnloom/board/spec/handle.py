"""What those who read a board are given."""

from collections.abc import Iterable
from typing import Protocol, Self

from turnloom.board.spec.artifacts import Artifact, BoardSummary
from turnloom.board.spec.filters import FilterConfig


class Items(tuple[Artifact, ...]):
    """Artifacts in order, and where to go on if there are more."""

    cursor: str | None

    def __new__(cls, artifacts: Iterable[Artifact] = (), cursor: str | None = None) -> Self:
        """Some artifacts and the cursor behind them."""
        items = super().__new__(cls, artifacts)
        items.cursor = cursor
        return items


class BoardHandle(Protocol):
    """A board as one reader sees it at the moment of each call. Types may be simple names."""

    async def query_artifacts(
        self,
        filter: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> tuple[Items, int | None]:
        """Copies of what the filter asks for, and how many there are in all if that is asked too.
        With `embed_meta` they are envelopes. A cursor goes on behind the items that gave it.

        Raises:
            UnknownType: the filter names a type that is not known, or a simple name of several.
            UsageError: the cursor is none, or belongs to another filter or reader.
        """
        ...

    async def get(self, id: str) -> Artifact | None:
        """The artifact of this id as a copy; none if there is none to be seen."""
        ...

    async def summary(self, filter: FilterConfig | None = None) -> BoardSummary:
        """How many there are, in all and of what, of all that the filter asks for.

        Raises:
            UnknownType: the filter names a type that is not known, or a simple name of several.
        """
        ...
