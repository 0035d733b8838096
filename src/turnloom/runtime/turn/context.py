"""Gather the context of a turn, from providers and sources."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, cast

import anyio

from turnloom.assembly.events import ContextGathered, ProviderFailed
from turnloom.assembly.logic.labels import readable, together
from turnloom.assembly.logic.slices import (
    GatheredSlice,
    WitnessedArtifacts,
    gathered_fact,
    with_payload,
)
from turnloom.assembly.service.assembling import Assembler, AssemblyResult, provider_key
from turnloom.assembly.service.gathering import OwnRequest, gather, gather_own, is_own
from turnloom.assembly.service.providers import ReadNewest
from turnloom.assembly.service.situations import Situation
from turnloom.assembly.spec import (
    AgentRef,
    ChosenProvider,
    ContextRequest,
    Message,
    RagCollection,
    RetrievalResult,
    RunRef,
    Transcript,
    TurnContext,
)
from turnloom.assembly.spec.sources import Assembly, ProviderSource
from turnloom.board.ports import ArtifactStore
from turnloom.board.service.handle import Witness, bind
from turnloom.board.spec import Artifact, Audience, BoardHandle, Reader
from turnloom.errors import (
    BoardError,
    CollectionUnavailable,
    ContextTooLarge,
    ContextUnavailable,
    TurnloomError,
    UsageError,
)
from turnloom.kernel.contained import error_name
from turnloom.kernel.values import Json, error_text
from turnloom.log.ports import Effect
from turnloom.log.spec import Fact
from turnloom.runs.brief import Brief
from turnloom.runtime.calls import exposed, opened
from turnloom.runtime.journal import Journal
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.variables.logic.exposure import VariableValues

# Errors of sources; they fail a turn before an engine is asked.
TROUBLES = (BoardError, CollectionUnavailable, ContextTooLarge, ContextUnavailable, UsageError)


class SourceAssembler:
    """Assembles the context of agents from their sources, in one run."""

    def __init__(self, journal: Journal, loaded: LoadedWorkflow) -> None:
        self._journal = journal
        self._loaded = loaded
        self._assemblers: dict[str, Assembler] = {}
        # Turns run in parallel. The context of an agent is made for one turn at a time, and a
        # search that two of them need is made once.
        self._making: dict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._searching: dict[str, anyio.Lock] = defaultdict(anyio.Lock)

    async def assemble(
        self,
        assembly: Assembly,
        request: ContextRequest,
        witnessed: Sequence[Artifact],
        state: Any,
    ) -> AssemblyResult | str:
        """The assembled context of a turn, or the error."""
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
            return f"{error_name(error)}: {error_text(error)}"

    def gathered(self, assembly: Assembly, turn: int) -> list[ContextGathered]:
        """The recorded results of the providers among the sources of a turn."""
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
            values=VariableValues(state.values, state.absent, definitions),
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
            given = (collection, query, top_k, min_relevance, filters, reader, now)
            return await search(*given)
        except TurnloomError:
            raise
        except Exception as error:  # a collection may raise anything
            raise CollectionUnavailable(
                f"The search of collection {collection.name!r} raised {error_name(error)}: "
                f"{error_text(error)}. See to what it is searched through."
            ) from error


class GatheredContext(NamedTuple):
    """The context of an engine apart from its inputs: from providers, and from sources, which may
    replace the transcript."""

    gathered: Sequence[ContextGathered] = ()
    assembled: AssemblyResult | None = None
    tells: bool = False

    @property
    def inputs(self) -> ContextGathered | None:
        """The fact that says how the inputs are shown: the last one that changed them."""
        return next((each for each in reversed(self.gathered) if each.inputs is not None), None)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of all providers; the first value of a key counts."""
        return {
            key: said for each in reversed(self.gathered) for key, said in each.metadata.items()
        }

    @property
    def visibility(self) -> Audience:
        """The audience that may see all of it."""
        if self.assembled is not None:
            return self.assembled.context.visibility
        items = (item for each in self.gathered for item in each.items)
        return together(seen for each in items for seen in each.visibility)


NO_CONTEXT = GatheredContext()

# No context in this turn.
NOTHING = (NO_CONTEXT,)


class Gatherer:
    """Asks the providers of one run."""

    def __init__(self, journal: Journal, loaded: LoadedWorkflow, artifacts: ArtifactStore) -> None:
        self._journal = journal
        self._loaded = loaded
        self._artifacts = artifacts
        self._sourcing = SourceAssembler(journal, loaded)
        self._readers: dict[str, Reader] = {}
        self._states: dict[int, dict[str, Any]] = {}
        # What components around a turn read on the board: they may pass it on to providers.
        self._read: dict[int, WitnessedArtifacts] = {}

    def turn(self, brief: Brief) -> TurnContext:
        """A turn as components see it; providers find what components leave in its state."""
        read = self._read.setdefault(brief.turn, WitnessedArtifacts())
        turn = self._turn(brief, self.board(brief.agent, read.note))
        return replace(turn, run=replace(turn.run, transcript=turn.run.transcript.closed()))

    def close(self, number: int) -> None:
        """Drop the state of a turn that is over."""
        self._states.pop(number, None)
        self._read.pop(number, None)

    def read_around(self, number: int) -> Audience:
        """The audience that may see everything that components around a turn read on the board."""
        read = self._read.get(number)
        return together(each.visibility for each in read) if read else ()

    def _witnessed(self, number: int) -> WitnessedArtifacts:
        """The artifacts that providers may show; it grows with what the board returns."""
        witnessed = WitnessedArtifacts()
        witnessed.note(self._read.get(number, ()))
        return witnessed

    async def gather(
        self, brief: Brief, heard: Sequence[Message] | None = None
    ) -> tuple[Sequence[GatheredContext], str]:
        """The context of each engine of a turn, or the reason why there is none. `heard` replaces
        the messages, if given."""
        chosen, number = brief.contexts(self._loaded.staff[brief.agent]), brief.turn
        if not any(chosen):
            return NOTHING, ""
        found: dict[int, GatheredContext] = {}
        contexts: list[GatheredContext] = []
        for place, each in enumerate(chosen):
            if each is not None and id(each) not in found:
                key = f"t{number}/e{place}/context" if place else f"t{number}/context"
                context = await self._give(key, brief, each, heard)
                if isinstance(context, str):
                    return NOTHING, context
                found[id(each)] = context
            contexts.append(NO_CONTEXT if each is None else found[id(each)])
        return contexts, ""

    async def _give(
        self,
        key: str,
        brief: Brief,
        chosen: ChosenProvider | Assembly,
        heard: Sequence[Message] | None,
    ) -> GatheredContext | str:
        """The context of a provider or an assembly, or the error."""
        if isinstance(chosen, Assembly):
            return await self._assemble(brief, chosen, heard)
        fact = await self._ask(key, brief, chosen, heard)
        return GatheredContext((fact,)) if isinstance(fact, ContextGathered) else str(fact)

    async def _assemble(
        self, brief: Brief, assembly: Assembly, heard: Sequence[Message] | None
    ) -> GatheredContext | str:
        """The assembled context; for a turn whose frame is recorded, only if the brief uses it."""
        tells = assembly.shows_history
        is_shown = self._journal.recorded(f"t{brief.turn}/frame") is not None
        if is_shown and not brief.applies_context:
            return GatheredContext(self._sourcing.gathered(assembly, brief.turn), None, tells)
        witnessed = self._witnessed(brief.turn)
        board = self.board(brief.agent, witnessed.note)
        request = self._request(self._turn(brief, board, heard), brief)
        made = await self._sourcing.assemble(assembly, request, witnessed, brief.about)
        return made if isinstance(made, str) else GatheredContext(made.gathered, made, tells)

    async def _ask(
        self, key: str, brief: Brief, chosen: ChosenProvider, heard: Sequence[Message] | None
    ) -> Fact | str:
        """The gathered context, from the log or from the provider; or the error."""
        journal = self._journal

        async def effect() -> Sequence[Fact]:
            try:
                gathered = await self._gather(brief, chosen, heard)
            except ContextUnavailable as error:
                return cast(tuple[Fact, ...], error.failures)
            secrets = journal.secrets
            written = secrets.masked if gathered.is_own else secrets.received
            fact = gathered_fact(gathered, journal.state.texts, written)
            return (*gathered.failures, fact)

        fact = (await journal.once(key, effect))[-1]
        if not isinstance(fact, ProviderFailed):
            return fact
        return f"ContextUnavailable: {fact.provider}: {fact.error}: {fact.message}"

    async def _gather(
        self, brief: Brief, chosen: ChosenProvider, heard: Sequence[Message] | None
    ) -> GatheredSlice:
        """The slice of a provider. Ours is called without what others are given.

        Raises:
            ContextUnavailable: there is none.
        """
        if is_own(chosen):
            turn, agent, newest = brief.turn, brief.agent, self._newest_for(brief)
            own = OwnRequest(turn, agent, brief.correlation, brief.inputs, read_newest=newest)
            gathered = await gather_own(chosen, own)
            if gathered is not None:
                return gathered
        witnessed = self._witnessed(brief.turn)
        board = self.board(brief.agent, witnessed.note)
        request = self._request(self._turn(brief, board, heard), brief)
        return await gather(chosen, request, witnessed=witnessed)

    def _newest_for(self, brief: Brief) -> ReadNewest:
        """The newest artifacts of the board that the agent of a turn may read."""
        artifacts, reader = self._visible(), self._reader(brief.agent)
        give = self._giving(brief.agent)
        inputs = frozenset([each.id for each in brief.inputs])

        async def read_newest(correlation: str, most: int) -> Sequence[Artifact]:
            now = self._journal.clock.now()
            found = await artifacts.newest(correlation, reader, now, most, without=inputs)
            return [*map(give, found)] if give else found

        return read_newest

    def _request(self, turn: TurnContext, brief: Brief) -> ContextRequest:
        reference, give = self._reference(brief.agent), self._giving(brief.agent)
        inputs = tuple(map(give, brief.inputs)) if give else brief.inputs
        return ContextRequest(reference, turn, inputs, turn.board, correlation_id=brief.correlation)

    def _giving(self, agent: str) -> Callable[[Artifact], Artifact] | None:
        """A function that opens the secrets of an artifact that the agent is shown; None if there
        are none."""
        names = exposed(self._journal, self._loaded, agent)
        if not names:
            return None
        return lambda it: with_payload(it, opened(self._journal, it.payload, names))

    def _turn(
        self, brief: Brief, board: BoardHandle, heard: Sequence[Message] | None = None
    ) -> TurnContext:
        state = self._journal.state
        said = Transcript(self._heard(brief.agent) if heard is None else heard)
        run = RunRef(state.run, state.workflow, state.tenant, state.user, transcript=said)
        return TurnContext(run, self._states.setdefault(brief.turn, {}), board, brief.turn)

    def _heard(self, agent: str) -> Sequence[Message]:
        """The messages that the agent may read."""
        state = self._journal.state
        return readable(state.messages, self._reader(agent)) if state.veiled else state.messages

    def _reference(self, agent: str) -> AgentRef:
        reader = self._reader(agent)
        instructions = self._journal.workflow.agents[agent].instructions
        return AgentRef(agent, instructions, reader.labels, reader.tenant)

    def _reader(self, agent: str) -> Reader:
        if (reader := self._readers.get(agent)) is None:
            staff = self._loaded.staff[agent]
            reader = staff.reader or Reader(agent, staff.labels, self._journal.state.tenant)
            self._readers[agent] = reader
        return reader

    def board(self, agent: str, witness: Witness | None = None) -> BoardHandle:
        """The board as an agent may read it; `witness` is called with what it returns."""
        clock: Callable[[], datetime] = self._journal.clock.now
        reader, give, types = self._reader(agent), self._giving(agent), self._loaded.types
        return bind(self._visible(), types, reader, clock, witness=witness, opened=give)

    def _visible(self) -> ArtifactStore:
        """The artifacts as the run sees them: a fork does not see what came after its cut."""
        origin = self._journal.origin
        return self._artifacts if origin is None else origin.board(self._artifacts)
