"""Context from sources: what they come to in a turn, searched and asked for once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import anyio

from weft.assembly.events import ContextGathered
from weft.assembly.service.assembling import Assembled, Assembler
from weft.assembly.service.situations import Situation
from weft.assembly.spec import ContextRequest, RagCollection, RetrievalResult
from weft.assembly.spec.assemblies import Assembly
from weft.board.spec import Artifact, Reader
from weft.errors import (
    BoardError,
    CollectionUnavailable,
    ContextTooLarge,
    ContextUnavailable,
    UsageError,
    WeftError,
)
from weft.kernel.contained import named
from weft.kernel.values import Json, said
from weft.log.ports import Effect
from weft.log.spec import Fact
from weft.runtime.service.journal import Journal
from weft.runtime.spec import Loaded
from weft.variables.logic.exposure import Values

# What keeps sources from coming to anything; a turn fails of it before an engine is asked.
TROUBLES = (BoardError, CollectionUnavailable, ContextTooLarge, ContextUnavailable, UsageError)


class Sourcing:
    """Assembles the context of agents from their sources, in one run."""

    def __init__(self, journal: Journal, loaded: Loaded) -> None:
        self._journal = journal
        self._loaded = loaded
        self._assemblers: dict[str, Assembler] = {}
        # Turns go on side by side: an agent's context is made for one of them at a time, and what
        # two of them look for is looked for by the first.
        self._making: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._searching: dict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def assemble(
        self, assembly: Assembly, request: ContextRequest, witnessed: Sequence[Artifact]
    ) -> Assembled | str:
        """What sources come to in a turn; or what went wrong."""
        agent = request.agent.name
        if agent not in self._assemblers:
            budget, format = assembly.budget, assembly.format
            made = Assembler(assembly.sources, self._loaded.counter, budget, format)
            self._assemblers[agent] = made
        try:
            situation = self._situation(request, witnessed)
            async with self._making[agent]:
                return await self._assemblers[agent].assemble(situation)
        except TROUBLES as error:
            return f"{named(error)}: {said(error)}"

    def _situation(self, request: ContextRequest, witnessed: Sequence[Artifact]) -> Situation:
        journal, turn = self._journal, request.ctx.turn
        state, definitions = journal.state, journal.workflow.variables.definitions
        reader = Reader(request.agent.name, request.agent.labels, request.agent.tenant)
        now = journal.clock.now()

        async def in_turn(key: str, effect: Effect) -> Sequence[Fact]:
            return await journal.once(f"t{turn}/{key}", effect)

        return Situation(
            turn=turn,
            agent=request.agent.name,
            state=self._values(request.inputs),
            values=Values(state.values, state.absent, definitions),
            history=request.ctx.run.transcript,
            request=request,
            witnessed=witnessed,
            texts=state.texts,
            masked=journal.secrets.masked,
            search=partial(self._search, reader, now),
            reader=reader,
            now=now,
            in_run=self._in_run,
            in_turn=in_turn,
        )

    def _values(self, inputs: Sequence[Artifact]) -> Any:
        """The value of the only input; or of each by the simple name of its type, in a list where
        there are several of one."""
        values: dict[str, list[Any]] = {}
        for each in inputs:
            values.setdefault(each.type.rpartition(".")[2], []).append(self._value(each))
        if len(inputs) == 1:
            return next(iter(values.values()))[0]
        return {name: some if len(some) > 1 else some[0] for name, some in values.items()}

    def _value(self, artifact: Artifact) -> Any:
        secrets = self._journal.secrets
        payload = secrets.opened(artifact.payload, secrets.names)
        return self._loaded.types.read(artifact.type, payload)

    async def _in_run(self, key: str, effect: Effect) -> Sequence[Fact]:
        async with self._searching[key]:
            return await self._journal.once(f"chat/{key}", effect)

    async def _search(
        self,
        reader: Reader,
        now: datetime,
        collection: type[RagCollection],
        query: str,
        top_k: int,
        min_relevance: float,
        filters: Mapping[str, Json],
        /,
    ) -> Sequence[RetrievalResult]:
        search = self._loaded.search
        try:
            return await search(collection, query, top_k, min_relevance, filters, reader, now)
        except WeftError:
            raise
        except Exception as error:  # whatever stands behind a collection may raise anything
            raise CollectionUnavailable(
                f"The search of collection {collection.name!r} raised {named(error)}: "
                f"{said(error)}. See to what it is searched through."
            ) from error


def left_inputs(gathered: Sequence[ContextGathered]) -> ContextGathered | None:
    """What says how the inputs of a turn are shown: the last that left them otherwise."""
    return next((each for each in reversed(gathered) if each.inputs is not None), None)
