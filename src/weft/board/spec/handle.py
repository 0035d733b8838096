"""The board as one reader sees it."""

from typing import Protocol

from weft.board.spec.artifacts import Artifact
from weft.board.spec.filters import FilterConfig


class Items(tuple[Artifact, ...]):
    """Artifacts that were asked for, and where to go on if there are more."""

    cursor: str | None = None


class BoardHandle(Protocol):
    """What a reader may see of the board, and nothing else."""

    async def query_artifacts(
        self,
        filter: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> tuple[Items, int | None]:
        """What the filter asks for, and how many there are in all if that is asked."""
        ...

    async def get(self, id: str) -> Artifact | None:
        """The artifact of this id, if there is one that the reader may see."""
        ...
