"""A board with a few artifacts, and a turn that reads it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from turnloom.adapters.memory import MemoryStore
from turnloom.assembly.logic.slices import GatheredSlice, WitnessedArtifacts
from turnloom.assembly.service.gathering import gather
from turnloom.assembly.spec import (
    AgentRef,
    ChosenProvider,
    ContextProvider,
    ContextRequest,
    Message,
    RunRef,
    Transcript,
    TurnContext,
)
from turnloom.board.service import bind
from turnloom.board.spec import Artifact, Reader, TypeRegistry
from turnloom.kernel.values import Json
from turnloom.runtime.logic import codec


@dataclass
class BoardTurn:
    """A turn on a board, for testing providers; `messages` are pairs of author and text."""

    artifacts: Sequence[Artifact] = ()
    reader: Reader = Reader()
    inputs: tuple[Artifact, ...] = ()
    correlation_id: str | None = None
    state: dict[str, Json] = field(default_factory=dict[str, Any])
    messages: Sequence[tuple[str, str]] = ()
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    async def gather(self, provider: ContextProvider | ChosenProvider) -> GatheredSlice:
        """The slice of a provider in this turn.

        Raises:
            ContextUnavailable: neither the provider nor a fallback returns a slice.
        """
        chosen = provider if isinstance(provider, ChosenProvider) else ChosenProvider(provider)
        witnessed = WitnessedArtifacts()
        request = await self.request(witnessed.note)
        return await gather(chosen, request, witnessed=witnessed)

    async def request(self, witness: Callable[[Sequence[Artifact]], None]) -> ContextRequest:
        """The request to a provider in this turn; `witness` is called with the artifacts that it
        reads."""
        store = MemoryStore(codec()).artifacts
        reader = self.reader
        await store.put(reader.tenant, self.artifacts)
        board = bind(store, _AnyType(), reader, lambda: self.now, witness=witness)
        messages = [
            Message(seq, author, text) for seq, (author, text) in enumerate(self.messages, 1)
        ]
        run = RunRef("run", "Board", reader.tenant, "user", transcript=Transcript(messages))
        agent = AgentRef(reader.agent, "", reader.labels, reader.tenant)
        ctx = TurnContext(run, self.state, board, 1)
        return ContextRequest(agent, ctx, self.inputs, board, correlation_id=self.correlation_id)


class _AnyType(TypeRegistry):
    """Accepts every type name as a full name."""

    def resolve(self, name: str) -> str:
        """The name, unchanged."""
        return name
