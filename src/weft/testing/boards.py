"""A board of a few artifacts, and a turn that looks at it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from weft.adapters.memory import MemoryStore
from weft.assembly.logic.gathered import Gathered
from weft.assembly.logic.origins import Witnessed
from weft.assembly.service.gathering import gather
from weft.assembly.spec import (
    AgentRef,
    Chosen,
    ContextProvider,
    ContextRequest,
    Message,
    RunRef,
    Transcript,
    TurnContext,
)
from weft.board.ports import ArtifactStore
from weft.board.spec import Artifact, BoardHandle, FilterConfig, Reader
from weft.board.spec.handle import Items
from weft.runtime.logic import codec


@dataclass
class BoardTurn:
    """A turn of a reader on a board, in which providers can be asked; `said` is who said what."""

    artifacts: Sequence[Artifact] = ()
    reader: Reader = Reader()
    inputs: tuple[Artifact, ...] = ()
    correlation_id: str | None = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    said: Sequence[tuple[str, str]] = ()
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    async def gather(self, provider: ContextProvider | Chosen) -> Gathered:
        """What a provider gives in this turn.

        Raises:
            ContextUnavailable: it gives no slice, and there is no fallback that does.
        """
        chosen = provider if isinstance(provider, Chosen) else Chosen(provider)
        witnessed = Witnessed()
        request = await self.request(witnessed.note)
        return await gather(chosen, request, witnessed=witnessed)

    async def request(self, witness: Callable[[Sequence[Artifact]], None]) -> ContextRequest:
        """What a provider is asked in this turn; the witness is told all that the board gives."""
        store = MemoryStore(codec()).artifacts
        await store.put(self.artifacts)
        reader = self.reader
        board: BoardHandle = _Handle(store, reader, self.now, witness)
        said = [Message(seq, author, text) for seq, (author, text) in enumerate(self.said, 1)]
        run = RunRef("run", "Board", reader.tenant, "user", Transcript(said))
        agent = AgentRef(reader.agent, "", reader.labels, reader.tenant)
        ctx = TurnContext(run, self.state, board, 1)
        return ContextRequest(agent, ctx, self.inputs, board, self.correlation_id)


@dataclass(frozen=True, slots=True)
class _Handle:
    """The board as the reader sees it; types go by their full names."""

    _store: ArtifactStore
    _reader: Reader
    _now: datetime
    _witness: Callable[[Sequence[Artifact]], None]

    async def query_artifacts(
        self,
        filter: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        cursor: str | None = None,
        count: bool = False,
    ) -> tuple[Items, int | None]:
        asked = FilterConfig() if filter is None else filter
        page = await self._store.query(asked, self._reader, self._now, cursor=cursor, count=count)
        self._witness(page.items)
        items = Items(page.items)
        items.cursor = page.cursor
        return items, page.total

    async def get(self, id: str) -> Artifact | None:
        found = await self._store.get(id, self._reader, self._now)
        self._witness([] if found is None else [found])
        return found
