"""Ports of the board."""

from collections.abc import Sequence, Set
from datetime import datetime
from typing import Protocol

from turnloom.board.spec import Artifact, BoardSummary, Consumption, FilterConfig, Page, Reader
from turnloom.board.spec.queries import ArtifactCount, IndexPlan, IndexStretch, StoredArtifact


class ArtifactStore(Protocol):
    """An append-only store of artifacts; ids are unique per tenant. A reader finds the artifacts of
    its tenant, and those that other tenants share."""

    @property
    def follows_log(self) -> bool:
        """Whether an append to the log updates this store atomically; if not, the caller updates it
        afterwards."""
        ...

    async def put(self, tenant: str, artifacts: Sequence[Artifact]) -> None:
        """Add artifacts of a tenant in order, all or none; identical ones are ignored.

        Raises:
            ArtifactExists: one exists with other content.
            InvalidArtifact: one cannot be stored.
            StoreUnavailable: nothing was stored; try again later.
        """
        ...

    async def consume(self, tenant: str, consumptions: Sequence[Consumption]) -> None:
        """Add consumptions of a tenant, all or none; identical ones are ignored. The artifacts need
        not exist.

        Raises:
            StoreUnavailable: nothing was stored; try again later.
        """
        ...

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id that belong to the tenant or are shared, in order of arrival,
        regardless of visibility: for publishers, not for readers."""
        ...

    async def get(self, id: str, reader: Reader, now: datetime) -> Artifact | None:
        """A copy of the artifact with this id, the reader's tenant first; None if the reader may
        see none."""
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
        """A page of copies of the artifacts that match the filter and are visible to the reader, by
        time and then in order of arrival; types are full names. The limit and the total count only
        these. With `embed_meta` they are envelopes.

        A page compares a bounded number of artifacts with the filter, so it may have fewer than the
        limit, or none. It has a cursor if there may be more. The cursor continues after the last
        visible artifact that was returned or compared; hidden artifacts affect neither pages nor
        cursors.

        Raises:
            UsageError: the cursor is invalid, or belongs to another filter or reader.
        """
        ...

    async def newest(
        self,
        correlation: str,
        reader: Reader,
        now: datetime,
        most: int,
        *,
        without: Set[str] = frozenset(),
    ) -> Sequence[Artifact]:
        """Copies of the last artifacts of a correlation that are visible to the reader, at most
        `most`, newest first; without those of some ids, which do not count."""
        ...

    async def summary(self, filter: FilterConfig, reader: Reader, now: datetime) -> BoardSummary:
        """Counts of the artifacts that match the filter and are visible to the reader; types are
        full names, and the limit is ignored."""
        ...

    async def upcoming(self, tenant: str, now: datetime, limit: int) -> Sequence[datetime]:
        """The next instants at which artifacts become visible to a tenant, soonest first."""
        ...

    async def aclose(self) -> None:
        """Close connections; those shared with a log stay open until the log is closed."""
        ...


class ArtifactIndex(Protocol):
    """A term index of a store; `turnloom.board.service` checks its results. It may return too much,
    because terms can collide, but must not miss anything."""

    async def find(self, tenant: str, id: str) -> Sequence[StoredArtifact]:
        """The rows of an id that belong to the tenant or are shared, in order of arrival."""
        ...

    async def walk(self, plan: IndexPlan, most: int) -> IndexStretch:
        """The first rows of a plan in its direction, at most `most`, without duplicates."""
        ...

    async def tally(self, plan: IndexPlan) -> Sequence[tuple[str, int]]:
        """The number of rows of a plan, by visibility; one may occur several times."""
        ...

    async def counts(self, plan: IndexPlan) -> Sequence[ArtifactCount]:
        """The number of rows of a plan, by visibility and traits; a combination may occur several
        times."""
        ...

    async def consumptions(self, tenant: str, ids: Sequence[str]) -> Sequence[Consumption]:
        """The consumptions of these artifacts of a tenant, in any order."""
        ...

    async def weigh(self, groups: Sequence[Sequence[int]], most: int) -> Sequence[int]:
        """The number of entries of each group's terms, counted up to `most`."""
        ...
