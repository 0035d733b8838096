"""Boards at run time: offer artifacts, take reactions, collect joins and batches."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec

from turnloom.agents.events import AgentOutput
from turnloom.agents.spec import Engine, PreparedRequest
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.service.providers import DefaultCorrelationProvider
from turnloom.assembly.spec import ChosenProvider
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.events import ArtifactMade, ArtifactPublished
from turnloom.board.logic.matching import value_at
from turnloom.board.spec import Artifact, Public, TypeRegistry
from turnloom.errors import UsageError
from turnloom.guards.spec import Selection
from turnloom.kernel.contained import error_name
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data, canonical, error_text
from turnloom.log.ports import Effect
from turnloom.log.spec import Fact
from turnloom.reaction.events import (
    ArtifactForwarded,
    ArtifactOffered,
    RunOpened,
    SubscriptionVerdict,
)
from turnloom.reaction.logic.gates import (
    FORWARDED,
    KEY_FAILED,
    LATER,
    NOT_CHOSEN,
    TAKEN,
    WHERE_FAILED,
    judge,
)
from turnloom.reaction.logic.reacting import ReactionForm, expiring, selected
from turnloom.reaction.spec import Subscription
from turnloom.reaction.spec.state import BoardState
from turnloom.runs.actions import Action, Forward, Judge, OpenRun, Work
from turnloom.runs.brief import (
    UNSETTLED,
    Brief,
    Choice,
    DeclaredContexts,
    Settlement,
    Sinks,
    TurnOutcome,
    contexts_of,
)
from turnloom.runtime.agent_turns import AgentTurns
from turnloom.runtime.around.selection import ChoiceRequest, Selections
from turnloom.runtime.calls import Parked, as_json, opened, park
from turnloom.runtime.drive.live import LiveRun, RunDelivery
from turnloom.runtime.journal import Journal
from turnloom.runtime.originals import forwarding, opening
from turnloom.runtime.user_code import ask_condition, ask_user_code
from turnloom.runtime.world import RUN, DeliveryVerdict

# Seconds that a predicate or a join key may take.
DEADLINE = 5.0


async def offer(
    journal: Journal,
    workflow: ReactionForm,
    types: TypeRegistry,
    asked: Judge,
    selections: Selections,
) -> None:
    """Ask each subscription whether an artifact is for it, and record the verdicts."""
    tray: BoardState = journal.state.progress
    artifact, now = tray.held[asked.artifact], journal.time.now()
    tenant = journal.run.tenant
    to = [
        await _verdict(workflow, each, tenant, artifact, types=types, now=now)
        for each in workflow.subscribers(artifact.type)
        if asked.only in ("", each.id)
    ]
    if selections.own is not None and not asked.only:
        to = await _chosen(workflow, selections, selections.own, artifact, types=types, to=to)
    await journal.world.reach(RUN)
    for verdict in to:
        if verdict.verdict == TAKEN:
            subscription = workflow.plan.subscription(verdict.subscription)
            if subscription.join is not None:
                for id, fact in [*expiring(journal.state, subscription, now)]:
                    journal.record(id, fact, actor="clock")
    id = f"offer/{artifact.id}/{asked.only}" if asked.only else f"offer/{artifact.id}"
    journal.record(id, ArtifactOffered(artifact.id, now, tuple(to)))


async def _chosen(
    workflow: ReactionForm,
    selections: Selections,
    selection: Selection,
    artifact: Artifact,
    types: TypeRegistry,
    to: Sequence[SubscriptionVerdict],
) -> list[SubscriptionVerdict]:
    """The verdicts after a selection: of the candidates that the artifact wakes, only the chosen
    one is woken."""
    agents = [workflow.plan.subscription(each.subscription).agent for each in to]
    would = [each.verdict in (TAKEN, LATER) for each in to]
    woken = {agent for agent, wakes in zip(agents, would, strict=True) if wakes}
    among = [name for name in selection.candidates if name in woken]
    if not among:
        return [*to]
    about = types.read(artifact.type, artifact.payload)
    wanted = ChoiceRequest(among, about, artifact=artifact.id)
    made = await selections.choose(f"offer/{artifact.id}/selection", selection, wanted)
    passed_over = {*among} - {made.chosen}
    why = f"{made.chosen or 'no agent'} was chosen"
    return [
        SubscriptionVerdict(each.subscription, NOT_CHOSEN, why)
        if wakes and agent in passed_over
        else each
        for each, agent, wakes in zip(to, agents, would, strict=True)
    ]


async def _verdict(
    workflow: ReactionForm,
    subscription: Subscription,
    tenant: str,
    artifact: Artifact,
    *,
    types: TypeRegistry,
    now: datetime,
) -> SubscriptionVerdict:
    if subscription.spans and workflow.collects is None:  # the collecting run decides
        return SubscriptionVerdict(subscription.id, FORWARDED)
    member = workflow.plan.members[subscription.agent]
    verdict = judge(subscription, member, tenant, artifact, now=now)
    if verdict.verdict != TAKEN:
        return verdict
    refused = await _refused(subscription, artifact, types)
    return refused or await _keyed(verdict, subscription, artifact, types)


async def _refused(
    subscription: Subscription, artifact: Artifact, types: TypeRegistry
) -> SubscriptionVerdict | None:
    """The verdict if a condition of the subscription does not hold; None if all hold."""
    for number, predicate in enumerate(subscription.where, 1):
        try:
            value = types.read(artifact.type, artifact.payload)
            if not await ask_condition(predicate, value, deadline=DEADLINE):
                return SubscriptionVerdict(
                    subscription.id, "where", f"condition {number} does not hold"
                )
        except Exception as error:  # noqa: BLE001 - recorded: a failed condition is not a "no"
            what = f"condition {number} failed: {error_name(error)}: {error_text(error)}"
            return SubscriptionVerdict(subscription.id, WHERE_FAILED, what)
    return None


async def _keyed(
    verdict: SubscriptionVerdict,
    subscription: Subscription,
    artifact: Artifact,
    types: TypeRegistry,
) -> SubscriptionVerdict:
    """The verdict with the key that the artifact is joined by."""
    if subscription.join is None:
        own = (artifact.correlation_id or "") if subscription.spans else ""
        return msgspec.structs.replace(verdict, key=own) if own else verdict
    by = subscription.join.by
    try:
        if isinstance(by, str):
            key: Any = value_at(artifact.payload, by)
        else:
            value = types.read(artifact.type, artifact.payload)
            key = as_json(await ask_user_code(by, value, deadline=DEADLINE))
    except Exception as error:  # noqa: BLE001 - recorded
        return SubscriptionVerdict(
            subscription.id, KEY_FAILED, f"{error_name(error)}: {error_text(error)}"
        )
    if key is None:
        return SubscriptionVerdict(subscription.id, "no_key", "it has no key to be joined by")
    return msgspec.structs.replace(verdict, key=canonical(key))


# The default context of an agent: the newest artifacts of its correlation. The limit keeps the cost
# of a turn constant.
DEFAULT = ChosenProvider(DefaultCorrelationProvider(limit=50))


class BoardRuntime(AgentTurns):
    """The acting half of a board, for one run."""

    def __init__(self, live: LiveRun) -> None:
        super().__init__(live)
        form = live.journal.workflow
        assert isinstance(form, ReactionForm)
        self._form = form

    async def act(self, action: Action) -> Action | None:
        """Offer an artifact, or deliver something to another run."""
        journal, live = self._journal, self._live
        match action:
            case Judge():
                await offer(
                    journal, self._form, live.loaded.types, action, selections=live.selections
                )
            case OpenRun(run=run, artifacts=artifacts):
                await (
                    journal.commit()
                )  # store that the artifacts are taken before the run is opened
                ids = tuple(artifact.id for artifact in artifacts)

                async def open_run() -> Sequence[Fact]:
                    what = f"start a run of {action.agent}"
                    verdict = await self._judge(f"set/{run}/opened", opening(ids), what)
                    if verdict == "live":
                        await self._post.open(self._form.name, action, journal.state.run)
                    return (RunOpened(run, ids, verdict == "refused"),)

                await self._deliver(f"set/{run}/opened", open_run)
            case Forward(artifact=artifact, subscription=to):
                await journal.commit()  # store the artifact here before another run collects it
                key = f"forward/{artifact.id}/{to}"

                async def forward() -> Sequence[Fact]:
                    verdict = await self._judge(key, forwarding(artifact, to), f"forward to {to}")
                    if verdict == "live":
                        await self._post.deliver(self._form.name, action)
                    return (ArtifactForwarded(artifact.id, to, verdict == "refused"),)

                await self._deliver(key, forward)
            case _:
                raise AssertionError(f"a board does not decide on {action!r}")
        return None

    async def _deliver(self, key: str, effect: Effect) -> None:
        """Deliver something to another run, and record it.

        Raises:
            Waiting: a person is asked whether to do so.
        """
        try:
            (fact,) = await self._journal.perform(key, effect)
        except Parked as parked:
            park(self._journal, parked.question)
        self._journal.record(key, fact)

    async def _judge(self, key: str, request: str, what: str) -> DeliveryVerdict:
        """What becomes of a delivery: in a fork, it may have to be allowed."""
        origin = self._journal.origin
        return "live" if origin is None else await origin.judge_delivery(key, request, what)

    @property
    def _post(self) -> RunDelivery:
        post = self._live.means.post
        if post is None:
            raise UsageError("Nothing here goes from one run to another. Use `Loom.board`.")
        return post

    def brief(self, work: Work) -> Brief:
        """The brief of a turn."""
        return ReactionBrief(self._live, work)


class ReactionBrief:
    """The brief of a turn that artifacts triggered."""

    hears_history = False
    applies_context = False
    timeout: float | None = None
    engines: tuple[Engine, ...] | None = None

    def __init__(self, live: LiveRun, work: Work) -> None:
        state = live.journal.state
        tray: BoardState = state.progress
        self.turn = work.turn
        self.agent = work.agent
        self.correlation = state.correlation
        self._live = live
        self._journal = live.journal
        self._assigned = tray.working[work.turn]
        self.inputs: tuple[Artifact, ...] = tuple(tray.held[id] for id in self._assigned.artifacts)

    @cached_property
    def about(self) -> Any:
        """The value of the only input; of several, the values by the simple name of their type, in
        a list where a type has several."""
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

    def contexts(self, agent: DeclaredContexts) -> Sequence[ChosenProvider | Assembly | None]:
        """The subscription's provider, else that of each engine, else the agent's, else the
        artifacts of the correlation."""
        subscribed = self._live.loaded.contexts.get(self._assigned.subscription)
        if subscribed is not None:
            return (subscribed,)
        return contexts_of(agent, agent.context or DEFAULT)

    async def request(
        self, prepared: PreparedRequest, context: AssembledContext
    ) -> PreparedRequest:
        """The request as it is: every frame shows the inputs."""
        return prepared

    def listen(self, sinks: Sinks) -> Sinks:
        """No other listeners."""
        return sinks

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """Publish what the agent made, or only record it."""
        if outcome.error:
            return UNSETTLED
        return Settlement([*self._published(outcome.facts)])

    def _published(self, facts: Sequence[Fact]) -> Iterator[tuple[str, Fact, str]]:
        run = self._journal.state.run
        made = [fact for fact in facts if isinstance(fact, AgentOutput)]
        origin = self._origin() if made else ""
        for number, fact in enumerate(made):
            artifact = Artifact(
                id=f"{origin}.{number}",
                type=fact.model,
                payload=fact.output,
                produced_by=self.agent,
                created_at=self._journal.time.now(),
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

    def _origin(self) -> str:
        """The prefix of the ids of this turn's artifacts. It is derived from the inputs, so it does
        not depend on the order of parallel turns."""
        inputs = [each.id for each in self.inputs]
        state = self._journal.state
        about = [state.run, self.agent, self._assigned.subscription, *inputs]
        if life := state.open[self.turn].life:  # what is done again makes other artifacts
            about.append(str(life))
        return digest(as_data(about))
