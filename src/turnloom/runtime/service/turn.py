"""One way to take a turn."""

from collections.abc import Sequence
from functools import partial

from turnloom.agents.events import AgentOutput, TurnFinished, TurnStarted
from turnloom.agents.spec import Given
from turnloom.board.events import ArtifactMade, ArtifactPublished
from turnloom.board.spec import Artifact, Public
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data
from turnloom.log.spec import Fact
from turnloom.runtime.service.answering import Answering
from turnloom.runtime.service.components import around_turn
from turnloom.runtime.service.gathering import Gatherer
from turnloom.runtime.service.guarding import end_turn
from turnloom.runtime.service.hooks import HookRunner
from turnloom.runtime.service.journal import Journal
from turnloom.runtime.service.messages import MessageHooks
from turnloom.runtime.service.recovering import check_turn
from turnloom.runtime.service.rounds import Ended
from turnloom.runtime.service.selections import Selections
from turnloom.runtime.service.sights import Sights
from turnloom.runtime.spec import Errand, Going, Loaded, Voice


class Turns:
    """Takes the turns of one run."""

    def __init__(
        self,
        journal: Journal,
        loaded: Loaded,
        hooks: HookRunner,
        gatherer: Gatherer,
        selections: Selections,
    ) -> None:
        messages = MessageHooks(journal, loaded.message_hooks)
        self._answering = Answering(journal, loaded, Sights(journal, loaded), gatherer, messages)
        self._journal = journal
        self._loaded = loaded
        self._gatherer = gatherer
        self._hooks = hooks
        self._selections = selections
        self._hooked = bool(journal.workflow.hooks)
        self._watched = loaded.guards.loop_detection is not None

    async def take(
        self, number: int, agent: str, voice: Voice, errand: Errand | None = None
    ) -> TurnFinished:
        """An agent's go: hooks, the frame recorded and shown, the answer with its tools, hooks.

        Entered again after a kill or an answer, it finds on record what was done and goes on.

        Raises:
            Waiting: a person was asked.
        """
        journal, again = self._journal, number in self._journal.state.open
        journal.keep(f"t{number}", lambda: TurnStarted(number, agent))
        if self._hooked:
            await self._hooks.before_agent(number, agent)
        given = journal.workflow.given(journal.state, number)
        ended = await self._answer(Going(number, agent, given, voice, again, errand))
        if self._hooked:
            await self._hooks.after_agent(number, agent)
        if given is not None and not ended.error:
            self._publish(number, agent, given, ended.facts)
        self._gatherer.close(number)
        if self._watched:
            await check_turn(journal, self._loaded, number, given)
        if errand is not None:
            await errand.settle(ended.error, ended.facts, ended.context)
        return await self.end(number, agent, ended)

    async def end(self, number: int, agent: str, ended: Ended) -> TurnFinished:
        """Put on record how a turn ended, and what that says of an agent that was chosen for it."""
        judged = await self._selections.outcome(number, ended)
        end_turn(self._journal, number)
        status = "failed" if ended.error else "done"
        finished = self._journal.keep(
            f"t{number}/end", lambda: TurnFinished(number, agent, status, ended.error)
        )
        for place, fact in enumerate(judged):
            self._journal.record(f"t{number}/judged.{place}", fact)
        return finished

    async def _answer(self, going: Going) -> Ended:
        components = self._loaded.staff[going.agent].components
        if not components:
            return await self._answering.answer(going)
        turn = self._gatherer.turn(going)
        return await around_turn(components, turn, partial(self._answering.answer, going))

    def _publish(self, turn: int, agent: str, given: Given, facts: Sequence[Fact]) -> None:
        """Put on the board what the agent made, or only on record."""
        journal = self._journal
        made = [fact for fact in facts if isinstance(fact, AgentOutput)]
        made_of = _origin(agent, given)
        for number, fact in enumerate(made):
            artifact = Artifact(
                id=f"{journal.state.run}.{made_of}.{number}",
                type=fact.model,
                payload=fact.output,
                produced_by=agent,
                created_at=journal.clock.now(),
                correlation_id=given.correlation,
                run=journal.state.run,
                parents=tuple(each.id for each in given.inputs),
                tags=frozenset(fact.tags),
                visibility=fact.visibility or Public(),
                partition=fact.partition,
                version=self._loaded.types.version(fact.model),
            )
            published = ArtifactPublished(artifact, turn, given.root)
            fact = published if given.publish else ArtifactMade(artifact, turn)
            journal.keep(f"t{turn}/artifact.{number}", lambda it=fact: it, actor=agent)


def _origin(agent: str, given: Given) -> str:
    """What tells apart what turns of one run make, in whichever order they are taken: who is given
    what. It is given once, until something comes of it."""
    inputs = [each.id for each in given.inputs]
    return digest(as_data([agent, given.subscription, *inputs]))[:12]
