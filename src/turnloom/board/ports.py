"""What the board needs from the world."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from turnloom.board.spec import Artifact, BoardSummary, Consumption, FilterConfig, Page, Reader
from turnloom.board.spec.queries import ArtifactCount, IndexPlan, IndexStretch, StoredArtifact


class ArtifactStore(Protocol):
    """Artifacts that are only ever added, each by a tenant: two tenants may have artifacts of one
    id. A reader finds those of its tenant, and what others share."""

    @property
    def follows_log(self) -> bool:
        """Whether what the log beside it is told of the board is here in the same moment; if not,
        whoever appends puts it here afterwards."""
        ...

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Keep artifacts of a tenant in their order, all or none; one that is there already changes
        nothing.

        Raises:
            ArtifactExists: one is there with other content.
            InvalidArtifact: one cannot be kept as it is.
            StoreUnavailable: nothing was kept; the same may be tried again later.
        """
        ...

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Keep who of a tenant took what, all or none; one that is there already changes nothing.
        What was taken need not be there.

        Raises:
            StoreUnavailable: nothing was kept; the same may be tried again later.
        """
        ...

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id that are the tenant's or shared, by the number they came with, whoever
        may see them: for publishers, not for readers."""
        ...

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """The artifact of this id as a copy, that of the reader's tenant before a shared one; none
        if there is none that the reader may see."""
        ...

    async def query(
        self,
        filter: FilterConfig,
        reader: Reader,
        now: datetime,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> Page:
        """A page of copies of what the filter asks for and the reader may see, by time and then in
        the order of their coming; types are full names. The limit counts these and no others, and
        so does the total. With `embed_meta` they are envelopes.

        A page compares a bounded number of artifacts with the filter, so it may hold fewer than the
        limit, or none. It has a cursor if there may be more, and none at the end. The cursor
        continues behind the last artifact that was given or compared, one that the reader may see;
        what the reader may not see changes neither pages nor cursors.

        Raises:
            UsageError: the cursor is none, or belongs to another filter or reader.
        """
        ...

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """How many there are, in all and of what, of all that the filter asks for and the reader
        may see; types are full names, and the limit does not matter."""
        ...

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which something becomes visible to a tenant that is not yet, soonest
        first."""
        ...

    async def aclose(self) -> None:
        """Let go of connections; what it shares with a log stays open until that is closed."""
        ...


class ArtifactIndex(Protocol):
    """What a store finds by terms, for `turnloom.board.service` to judge. It may find too much, as
    two terms may be the same number; it must not miss anything."""

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id that are the tenant's or shared, by the number they came with."""
        ...

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        """The first rows of a plan in its direction, each once, at most `most`."""
        ...

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """How many rows of a plan have which visibility; one may come several times."""
        ...

    async def counts(self, plan: IndexPlan) -> Sequence[ArtifactCount]:
        """How many rows of a plan have which visibility and traits; one combination may come
        several times."""
        ...

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """Who took one of these artifacts of a tenant, in any order."""
        ...

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """How many entries the terms of each group have, counted up to `most`."""
        ...
