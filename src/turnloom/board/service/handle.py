"""A board bound to one reader, with no way around it.

A handle has no attributes: its store and reader are kept here, under a weak reference to it, so
that nothing reachable from a handle leads to the store, the reader or another view. A
`WeakKeyDictionary` would not work: the callbacks of its references lead to the dictionary.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Never, final
from weakref import ReferenceType, ref

import msgspec

from turnloom.board.logic.matching import resolve_types
from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import (
    Artifact,
    ArtifactItems,
    BoardHandle,
    BoardSummary,
    FilterConfig,
    Reader,
    TypeRegistry,
)
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_one_of, as_string

# Called with the artifacts that a handle is about to return.
Witness = Callable[[Sequence[Artifact]], None]


def bind(
    store: ArtifactStore,
    types: TypeRegistry,
    reader: Reader,
    clock: Callable[[], datetime],
    witness: Witness | None = None,
    opened: Callable[[Artifact], Artifact] | None = None,
) -> BoardHandle:
    """A board as a reader sees it at the time of each call; `opened` inserts the secrets that the
    reader may see."""
    handle = _Handle()
    bound = _Bound(store, types, reader, clock, witness=witness or _ignore, opened=opened)
    _bound[ref(handle, _forget)] = bound
    return handle


class _Bound(msgspec.Struct, frozen=True):
    store: ArtifactStore
    types: TypeRegistry
    reader: Reader
    clock: Callable[[], datetime]
    witness: Witness
    opened: Callable[[Artifact], Artifact] | None

    def give(self, artifacts: Sequence[Artifact]) -> Sequence[Artifact]:
        """Open artifacts and notify the witness before they are returned."""
        if self.opened is not None:
            artifacts = [self.opened(each) for each in artifacts]
        self.witness(artifacts)
        return artifacts

    def resolve(self, filter: FilterConfig | None) -> FilterConfig:
        asked = FilterConfig() if filter is None else as_one_of(filter, FilterConfig, "`filter`")
        return resolve_types(asked, self.types)


@final
class _Handle:
    __slots__ = ("__weakref__",)

    async def query_artifacts(
        self,
        filter: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> tuple[ArtifactItems, int | None]:
        """One page of copies of the artifacts that match the filter, and the total if `count` is
        set."""
        bound = _bound_to(self)
        page = await bound.store.query(
            bound.resolve(filter),
            bound.reader,
            bound.clock(),
            embed_meta=embed_meta,
            cursor=None if cursor is None else as_string(cursor, "`cursor`"),
            count=count,
        )
        return ArtifactItems(bound.give(page.items), page.cursor), page.total

    async def iter_artifacts(
        self, filter: FilterConfig | None = None, *, embed_meta: bool = False
    ) -> AsyncGenerator[Artifact, None]:
        """Copies of all that the filter asks for, read page by page; a limit counts all of them."""
        asked = FilterConfig() if filter is None else as_one_of(filter, FilterConfig, "`filter`")
        cursor: str | None = None
        while True:
            items, _ = await self.query_artifacts(asked, embed_meta=embed_meta, cursor=cursor)
            for each in items:
                yield each
            cursor = items.cursor
            left = None if asked.limit is None else asked.limit - len(items)
            if cursor is None or left == 0:
                return
            asked = asked.model_copy(update={"limit": left})

    async def get(self, id: str) -> Artifact | None:
        """A copy of the artifact with this id; None if the reader may see none."""
        bound = _bound_to(self)
        artifact = await bound.store.get(id, bound.reader, bound.clock())
        return None if artifact is None else bound.give((artifact,))[0]

    async def summary(self, filter: FilterConfig | None = None) -> BoardSummary:
        """Counts of the artifacts that match the filter."""
        bound = _bound_to(self)
        return await bound.store.summary(bound.resolve(filter), bound.reader, bound.clock())

    def __setattr__(self, name: str, value: object) -> Never:
        raise UsageError(f"A board handle is immutable: {name!r} cannot be set.")

    def __reduce__(self) -> Never:
        # Called by copy and pickle.
        raise UsageError("A board handle cannot be copied or pickled. Pass the handle itself.")


_bound: dict[ReferenceType[_Handle], _Bound] = {}


def _bound_to(handle: _Handle) -> _Bound:
    return _bound[ref(handle)]


def _forget(handle: ReferenceType[_Handle]) -> None:
    if _bound:  # it may already be gone at interpreter exit
        del _bound[handle]


def _ignore(_: Sequence[Artifact]) -> None:
    """Ignore the artifacts."""
