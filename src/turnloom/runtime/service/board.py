"""Boards at work: artifacts are offered, agents react, and sets are collected."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from turnloom.agents.events import AgentOutput
from turnloom.agents.spec import Engine, Prepared
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.service.providers import DefaultCorrelationProvider
from turnloom.assembly.spec import Chosen
from turnloom.assembly.spec.assemblies import Assembly
from turnloom.board.events import ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact, Public
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data
from turnloom.log.spec import Fact
from turnloom.reaction.events import ArtifactForwarded, RunOpened
from turnloom.reaction.logic.reacting import Reacting, selected
from turnloom.reaction.spec.tray import Tray
from turnloom.runs.actions import Action, Forward, Judge, OpenRun, Work
from turnloom.runs.brief import (
    UNSETTLED,
    Choice,
    Contexts,
    Settlement,
    Sinks,
    TurnOutcome,
    contexts_of,
)
from turnloom.runtime.service.exposing import opened
from turnloom.runtime.service.judging import offer
from turnloom.runtime.service.live import LiveRun, Post

# What an agent sees of its correlation unless it declares something else: the newest, so that no
# turn costs more than those before it.
DEFAULT = Chosen(DefaultCorrelationProvider(limit=50))


class BoardRuntime:
    """The acting half of a board's agents, for one run."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._journal = live.journal
        form = live.journal.workflow
        assert isinstance(form, Reacting)
        self._form = form

    async def act(self, action: Action) -> Action | None:
        """Offer an artifact, or carry something to another run."""
        journal, live = self._journal, self._live
        match action:
            case Judge():
                await offer(journal, self._form, live.loaded.types, action, live.selections)
            case OpenRun(run=run, artifacts=artifacts):
                await journal.commit()  # that they are taken comes first, then the run
                await self._post.open(self._form.name, action, journal.state.run)
                ids = tuple(artifact.id for artifact in artifacts)
                journal.record(f"set/{run}/opened", RunOpened(run, ids))
            case Forward(artifact=artifact, subscription=to):
                await journal.commit()  # what others collect is on record here first
                await self._post.deliver(self._form.name, action)
                fact = ArtifactForwarded(artifact.id, to)
                journal.record(f"forward/{artifact.id}/{to}", fact)
            case _:
                raise AssertionError(f"a board does not decide on {action!r}")
        return None

    @property
    def _post(self) -> Post:
        post = self._live.means.post
        if post is None:
            raise UsageError("Nothing here goes from one run to another. Use `Loom.board`.")
        return post

    async def run(self, work: Work) -> None:
        """Take a turn."""
        sinks = self._live.sinks(work.turn, work.agent)
        await self._live.turns.take(ReactionBrief(self._live, work), sinks)

    async def cut_off(self, work: Work) -> None:
        """Record that a turn was cancelled."""
        await self._live.cut_off_turn(work)

    async def fail(self, work: Work, error: str) -> None:
        """Record that a turn ended itself."""
        outcome = TurnOutcome(f"CancelledError: {error}")
        brief = ReactionBrief(self._live, work)
        await self._live.turns.end(brief, outcome, UNSETTLED)


class ReactionBrief:
    """A turn that artifacts woke an agent for."""

    hears_history = False
    applies_context = False
    timeout: float | None = None
    engines: tuple[Engine, ...] | None = None

    def __init__(self, live: LiveRun, work: Work) -> None:
        state = live.journal.state
        tray: Tray = state.progress
        self.turn = work.turn
        self.agent = work.agent
        self.correlation = state.correlation
        self._live = live
        self._journal = live.journal
        self._assigned = tray.working[work.turn]
        self.inputs: tuple[Artifact, ...] = tuple(tray.held[id] for id in self._assigned.artifacts)

    @cached_property
    def about(self) -> Any:
        """The value of the only input; or of each by the simple name of its type, in a list where
        there are several of one."""
        values: dict[str, list[Any]] = {}
        for each in self.inputs:
            values.setdefault(each.type.rpartition(".")[2], []).append(self._value(each))
        if len(self.inputs) == 1:
            return next(iter(values.values()))[0]
        return {name: some if len(some) > 1 else some[0] for name, some in values.items()}

    def _value(self, artifact: Artifact) -> Any:
        payload = opened(self._journal, artifact.payload)
        return self._live.loaded.types.read(artifact.type, payload)

    @property
    def choice(self) -> Choice | None:
        """The guard's selection, for the artifacts that it chose this agent for."""
        selection = self._live.selections.own
        if selection is None:
            return None
        categories = selected(self._journal.state, self.turn)
        return Choice(selection, categories, self.agent)

    def contexts(self, agent: Contexts) -> Sequence[Chosen | Assembly | None]:
        """The subscription's provider, else that of each engine, else the agent's, else what was
        published in the correlation."""
        subscribed = self._live.loaded.contexts.get(self._assigned.subscription)
        if subscribed is not None:
            return (subscribed,)
        return contexts_of(agent, agent.context or DEFAULT)

    async def request(self, prepared: Prepared, context: AssembledContext) -> Prepared:
        """Nothing but the inputs, which every frame shows."""
        return prepared

    def listen(self, sinks: Sinks) -> Sinks:
        """Nobody else listens."""
        return sinks

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """What the agent made, published or only on record."""
        if outcome.error:
            return UNSETTLED
        return Settlement([*self._published(outcome.facts)])

    def _published(self, facts: Sequence[Fact]) -> Iterator[tuple[str, Fact, str]]:
        run = self._journal.state.run
        made = (fact for fact in facts if isinstance(fact, AgentOutput))
        for number, fact in enumerate(made):
            artifact = Artifact(
                id=f"{self._origin}.{number}",
                type=fact.model,
                payload=fact.output,
                produced_by=self.agent,
                created_at=self._journal.clock.now(),
                correlation_id=self.correlation,
                run=run,
                parents=tuple(each.id for each in self.inputs),
                tags=frozenset(fact.tags),
                visibility=fact.visibility or Public(),
                partition=fact.partition,
                version=self._live.loaded.types.version(fact.model),
                indexed=self._live.loaded.types.indexed(fact.model),
            )
            published = ArtifactPublished(artifact, self.turn, self._assigned.root)
            kept = published if self._assigned.publish else ArtifactMade(artifact, self.turn)
            yield f"t{self.turn}/artifact.{number}", kept, self.agent

    @cached_property
    def _origin(self) -> str:
        """What the ids of this turn's artifacts begin with. It follows from what the turn is about,
        so it does not depend on the order in which turns are taken side by side."""
        inputs = [each.id for each in self.inputs]
        about = [self._journal.state.run, self.agent, self._assigned.subscription, *inputs]
        return digest(as_data(about))
