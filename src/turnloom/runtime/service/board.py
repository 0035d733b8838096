"""Boards at work: what a reaction is about, and what it publishes."""

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
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data
from turnloom.log.spec import Fact
from turnloom.reaction.logic.reacting import Reacting
from turnloom.runs.brief import UNSETTLED, Choice, Contexts, Settlement, Sinks, TurnOutcome
from turnloom.runtime.service.opened import Opened

DEFAULT = Chosen(DefaultCorrelationProvider())


class ReactionBrief:
    """A turn that artifacts woke an agent for."""

    hears_history = False
    applies_context = False
    timeout: float | None = None
    engines: tuple[Engine, ...] | None = None

    def __init__(self, opened: Opened, workflow: Reacting, turn: int, agent: str) -> None:
        self.turn = turn
        self.agent = agent
        self._opened = opened
        self._journal = opened.journal
        self._workflow = workflow
        self._given = workflow.given(opened.journal.state, turn)
        self.inputs: tuple[Artifact, ...] = self._given.inputs
        self.correlation = self._given.correlation

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
        secrets = self._journal.secrets
        payload = secrets.opened(artifact.payload, secrets.names)
        return self._opened.loaded.types.read(artifact.type, payload)

    @property
    def choice(self) -> Choice | None:
        """The guard's selection, for the artifacts that it chose this agent for."""
        selection = self._opened.selections.own
        if selection is None:
            return None
        categories = self._workflow.selected(self._journal.state, self.turn)
        return Choice(selection, categories, self.agent)

    def contexts(self, agent: Contexts) -> Sequence[Chosen | Assembly | None]:
        """The subscription's provider, else that of each engine, else the agent's, else what was
        published in the correlation."""
        subscribed = self._opened.loaded.contexts.get(self._given.subscription)
        if subscribed is not None:
            return (subscribed,)
        whole = agent.context or DEFAULT
        return tuple(each or whole for each in agent.contexts) or (whole,)

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
        given, run = self._given, self._journal.state.run
        made = (fact for fact in facts if isinstance(fact, AgentOutput))
        for number, fact in enumerate(made):
            artifact = Artifact(
                id=f"{run}.{self._origin}.{number}",
                type=fact.model,
                payload=fact.output,
                produced_by=self.agent,
                created_at=self._journal.clock.now(),
                correlation_id=given.correlation,
                run=run,
                parents=tuple(each.id for each in given.inputs),
                tags=frozenset(fact.tags),
                visibility=fact.visibility or Public(),
                partition=fact.partition,
                version=self._opened.loaded.types.version(fact.model),
            )
            published = ArtifactPublished(artifact, self.turn, given.root)
            kept = published if given.publish else ArtifactMade(artifact, self.turn)
            yield f"t{self.turn}/artifact.{number}", kept, self.agent

    @cached_property
    def _origin(self) -> str:
        """What tells apart what turns of one run make, in whichever order they are taken: the agent
        and its inputs. It is given them once, until something comes of it."""
        inputs = [each.id for each in self.inputs]
        return digest(as_data([self.agent, self._given.subscription, *inputs]))[:12]
