"""A board bound to one reader, with no way around it.

A handle holds nothing: what it stands for is kept here, under a weak reference to it, so that no
attribute that can be reached from a handle leads to the store, the reader or anybody else's view. A
`WeakKeyDictionary` would not do: the references that it makes have a callback that leads to it.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import NamedTuple, Never, final
from weakref import ReferenceType, ref

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

# Told of every artifact that a handle gives out, before it does.
Witness = Callable[[Sequence[Artifact]], None]


def bind(
    store: ArtifactStore,
    types: TypeRegistry,
    reader: Reader,
    clock: Callable[[], datetime],
    witness: Witness | None = None,
    opened: Callable[[Artifact], Artifact] | None = None,
) -> BoardHandle:
    """A board as a reader sees it at the moment of each call; `opened` gives artifacts with the
    secrets that the reader is shown."""
    handle = _Handle()
    bound = _Bound(store, types, reader, clock, witness=witness or _ignore, opened=opened)
    _bound[ref(handle, _forget)] = bound
    return handle


class _Bound(NamedTuple):
    store: ArtifactStore
    types: TypeRegistry
    reader: Reader
    clock: Callable[[], datetime]
    witness: Witness
    opened: Callable[[Artifact], Artifact] | None

    def give(self, artifacts: Sequence[Artifact]) -> Sequence[Artifact]:
        """Artifacts as they are given out, of which is told before."""
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
        """One page of copies of what the filter asks for, and the total if `count` asks for it."""
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
        """The artifact of this id as a copy; none if there is none to be seen."""
        bound = _bound_to(self)
        artifact = await bound.store.get(id, bound.reader, bound.clock())
        return None if artifact is None else bound.give((artifact,))[0]

    async def summary(self, filter: FilterConfig | None = None) -> BoardSummary:
        """How many there are, in all and of what, of all that the filter asks for."""
        bound = _bound_to(self)
        return await bound.store.summary(bound.resolve(filter), bound.reader, bound.clock())

    def __setattr__(self, name: str, value: object) -> Never:
        raise UsageError(f"A board handle does not change: {name!r} cannot be set.")

    def __reduce__(self) -> Never:
        # What copies and pickles an object asks for this.
        raise UsageError("A board handle is neither copied nor stored. Pass the handle itself on.")


_bound: dict[ReferenceType[_Handle], _Bound] = {}


def _bound_to(handle: _Handle) -> _Bound:
    return _bound[ref(handle)]


def _forget(handle: ReferenceType[_Handle]) -> None:
    if _bound:  # it may be gone before a handle that lasts as long as the program
        del _bound[handle]


def _ignore(_: Sequence[Artifact]) -> None:
    """Nobody wants to know."""
