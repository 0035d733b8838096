"""Context from sources: what they come to in a turn, searched and asked for once."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import anyio

from turnloom.assembly.events import ContextGathered
from turnloom.assembly.service.assembling import Assembled, Assembler, provider_key
from turnloom.assembly.service.situations import Situation
from turnloom.assembly.spec import ContextRequest, RagCollection, RetrievalResult
from turnloom.assembly.spec.assemblies import Assembly
from turnloom.assembly.spec.sources import ProviderSource
from turnloom.board.spec import Artifact, Reader
from turnloom.errors import (
    BoardError,
    CollectionUnavailable,
    ContextTooLarge,
    ContextUnavailable,
    TurnloomError,
    UsageError,
)
from turnloom.kernel.contained import named
from turnloom.kernel.values import Json, said
from turnloom.log.ports import Effect
from turnloom.log.spec import Fact
from turnloom.runtime.service.exposing import exposed, opened
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.spec import Loaded
from turnloom.variables.logic.exposure import Values

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
        self,
        assembly: Assembly,
        request: ContextRequest,
        witnessed: Sequence[Artifact],
        state: Any,
    ) -> Assembled | str:
        """What sources come to in a turn about a state; or what went wrong."""
        agent = request.agent.name
        if agent not in self._assemblers:
            budget, format = assembly.budget, assembly.format
            made = Assembler(assembly.sources, self._loaded.counter, budget, format)
            self._assemblers[agent] = made
        try:
            situation = self._situation(request, witnessed, state)
            async with self._making[agent]:
                return await self._assemblers[agent].assemble(situation)
        except TROUBLES as error:
            return f"{named(error)}: {said(error)}"

    def gathered(self, assembly: Assembly, turn: int) -> list[ContextGathered]:
        """What providers among sources gave in a turn, as far as it is on record."""
        asked = [n for n, each in enumerate(assembly.sources) if isinstance(each, ProviderSource)]
        facts = [self._journal.outcome(f"t{turn}/{provider_key(place)}") for place in asked]
        return [fact for some in facts for fact in some if isinstance(fact, ContextGathered)]

    def _situation(
        self, request: ContextRequest, witnessed: Sequence[Artifact], about: Any
    ) -> Situation:
        journal, turn = self._journal, request.ctx.turn
        state, definitions = journal.state, journal.workflow.variables.definitions
        reader = Reader(request.agent.name, request.agent.labels, request.agent.tenant)
        names, now = exposed(journal, self._loaded, request.agent.name), journal.clock.now()

        async def in_turn(key: str, effect: Effect) -> Sequence[Fact]:
            return await journal.once(f"t{turn}/{key}", effect)

        return Situation(
            turn=turn,
            agent=request.agent.name,
            state=about,
            values=Values(state.values, state.absent, definitions),
            history=request.ctx.run.transcript,
            request=request,
            witnessed=witnessed,
            texts=state.texts,
            masked=journal.secrets.masked,
            received=journal.secrets.received,
            opened=partial(opened, journal, names=names),
            search=partial(self._search, reader, now),
            reader=reader,
            now=now,
            in_run=self._in_run,
            in_turn=in_turn,
        )

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
        min_relevance: float | None,
        filters: Mapping[str, Json],
        /,
    ) -> Sequence[RetrievalResult]:
        search = self._loaded.search
        try:
            return await search(collection, query, top_k, min_relevance, filters, reader, now)
        except TurnloomError:
            raise
        except Exception as error:  # whatever stands behind a collection may raise anything
            raise CollectionUnavailable(
                f"The search of collection {collection.name!r} raised {named(error)}: "
                f"{said(error)}. See to what it is searched through."
            ) from error
