"""Whose turn it is when artifacts decide: whoever subscribes to what was published."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from turnloom.agents.events import TurnFinished, TurnStarted
from turnloom.agents.spec import (
    Agent,
    Failure,
    Products,
    RunState,
    Toolkit,
    Transfer,
)
from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.guards.events import SelectionMade
from turnloom.hooks.spec import Hooks, MessageHook
from turnloom.kernel.digests import digest
from turnloom.kernel.values import as_data
from turnloom.log.events import RunPaused
from turnloom.log.spec import Event, Fact
from turnloom.reaction.events import (
    ArtifactForwarded,
    ArtifactOffered,
    ArtifactOpened,
    ArtifactReceived,
    ArtifactsGiven,
    BatchClosed,
    JoinExpired,
    LimitReached,
    RetryAsked,
    RunOpened,
    SubscriptionVerdict,
)
from turnloom.reaction.logic import gates
from turnloom.reaction.logic.gates import FORWARDED, LATER, TAKEN
from turnloom.reaction.spec import BoardPlan, Subscription
from turnloom.reaction.spec.state import Assignment, Later, Pending, Tray
from turnloom.runs.actions import (
    Action,
    Begin,
    Facts,
    Finish,
    Forward,
    Judge,
    OpenRun,
    Record,
    Work,
)
from turnloom.runs.form import Rest, stopped
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

# How many turns of one run are taken side by side at most.
ABREAST = 64


def opened_run(board: str, subscription: str, artifacts: Iterable[str]) -> str:
    """The id of the run that a collected set gets."""
    return f"{board}-{digest(as_data([subscription, *artifacts]))}"


class Reacting:
    """A board's agents as something that decides whose turn it is.

    A run that collects for one subscription (`collects`) opens a run for each set; any other run
    is about one correlation, and its agents take turns in it.
    """

    form = "reaction"
    has_people = True
    version = ""
    outputs: Mapping[str, Any] = {}
    message_hooks: tuple[MessageHook, ...] = ()
    progress = Tray

    def __init__(
        self,
        plan: BoardPlan,
        variables: Variables,
        triggers: Triggers,
        hooks: Hooks,
        toolkit: Toolkit,
        products: Mapping[str, Products],
        collects: Subscription | None = None,
    ) -> None:
        self.plan = plan
        self.name = plan.name
        self.agents: Mapping[str, Agent] = {
            name: member.agent for name, member in plan.members.items()
        }
        self.variables = variables
        self.triggers = triggers
        self.hooks = hooks
        self.toolkit = toolkit
        self.products = products
        self.collects = collects
        everything = [s for member in plan.members.values() for s in member.subscriptions]
        self._by_id = {each.id: each for each in everything}
        self._limited = {each.id: each for each in everything if each.join or each.batch}
        in_order = sorted(everything, key=lambda each: -each.priority)
        self._places = {each.id: place for place, each in enumerate(in_order)}
        self._folds: Mapping[type, Callable[[Any, Any], None]] = {
            ArtifactPublished: self._on_published,
            ArtifactReceived: self._on_received,
            ArtifactsGiven: self._on_given,
            ArtifactOffered: self._on_offered,
            SelectionMade: self._on_selected,
            ArtifactOpened: self._on_opened,
            ArtifactConsumed: self._on_consumed,
            RunOpened: self._on_run_opened,
            ArtifactForwarded: self._on_forwarded,
            TurnFinished: self._on_turn,
            JoinExpired: self._on_expired,
            BatchClosed: self._on_closed,
            RetryAsked: self._on_retry,
            RunPaused: self._on_paused,
        }

    def collecting(self, subscription: str) -> "Reacting":
        """What decides in the run that collects for a subscription: no agent takes a turn there."""
        collects = self._by_id[subscription]
        return Reacting(
            self.plan,
            Variables(),
            Triggers({}),
            {},
            toolkit=Toolkit(),
            products={},
            collects=collects,
        )

    def begin(self) -> Tray:
        """Nothing was published."""
        return Tray()

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold an event into what lies before the run; what comes from outside ends a rest, but
        not the waiting for a person."""
        kind = event.data.__class__
        fold = self._folds.get(kind)
        if fold is not None:
            fold(state.progress, event.data)
        if kind in _ARRIVALS and state.status == "paused" and not state.questions:
            state.status = "running"
        elif kind is LimitReached:
            state.failure = _limited(event.data)

    def work(self, state: RunState) -> Sequence[Work]:
        """The open turns, which are taken side by side."""
        return [
            Work(f"t{number}", number, turn.agent, number) for number, turn in state.open.items()
        ]

    def shows(self, agent: str) -> bool:
        """Whether the user sees what this agent says: on a board, everything."""
        return True

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another: none, each has
        its own subscriptions."""
        return ()

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose: on a board, none."""
        return ()

    def subscribers(self, type: str) -> Sequence[Subscription]:
        """Who is offered artifacts of a type here."""
        if self.collects is not None:
            return (self.collects,)
        return self.plan.by_type.get(type, ())

    def decide(self, state: RunState) -> Action | None:
        """What is to be judged, who is to be given what, and what others collect."""
        end = stopped(state)
        if end is not None:
            return end
        tray: Tray = state.progress
        if tray.unoffered:
            return Judge(*tray.unoffered[0])
        for run, work in tray.spawning.items():
            return self._open(tray, run, work, ())
        work = self._next(state, tray)
        action = self._give(state, tray, work) if work is not None else None
        if action is not None:
            return action
        for id, subscription in tray.outbox:
            root = tray.roots[id] if tray.depths[id] else ""
            return Forward(tray.held[id], subscription, tray.depths[id], root=root)
        if work is None and self.collects is None and tray.is_clear:
            return Finish(reason="nothing is left to do")
        return None

    def _next(self, state: RunState, tray: Tray) -> Assignment | None:
        """What is given to an agent next: directly first, then by priority, then as declared."""
        if not tray.ready or len(state.open) >= ABREAST:
            return None
        ids = sorted(tray.ready, key=lambda id: self._places.get(id, -1))
        first = (tray.ready[id][0] for id in ids)
        return next((work for work in first if self._has_room(state, work.agent)), None)

    def _has_room(self, state: RunState, agent: str) -> bool:
        most = self.plan.members[agent].max_concurrency
        return most is None or sum(turn.agent == agent for turn in state.open.values()) < most

    def _give(self, state: RunState, tray: Tray, work: Assignment) -> Action | None:
        if self.collects is not None:
            run = opened_run(self.name, work.subscription, work.artifacts)
            taken = ArtifactConsumed(work.agent, work.subscription, work.artifacts, 1, run=run)
            return self._open(tray, run, work, ((f"set/{run}", taken),))
        if tray.counts.get(work.root, 0) >= self.plan.limit:
            return None if state.open else Record((self._stopped(tray, work.root),))
        turn = state.turns + 1
        taken = ArtifactConsumed(
            work.agent, work.subscription, work.artifacts, turn, run="", retry_of=work.retry_of
        )
        opens = ((f"t{turn}/consumed", taken), (f"t{turn}", TurnStarted(turn, work.agent)))
        return Begin(f"t{turn}", opens, work.agent)

    def _open(self, tray: Tray, run: str, work: Assignment, facts: Facts) -> OpenRun:
        artifacts = tuple(tray.held[id] for id in work.artifacts)
        deepest = max(work.artifacts, key=lambda id: tray.depths[id])
        depth = tray.depths[deepest]
        root = tray.roots[deepest] if depth else ""
        return OpenRun(
            run, work.agent, work.subscription, artifacts, depth=depth, facts=facts, root=root
        )

    def _stopped(self, tray: Tray, root: str) -> tuple[str, Fact]:
        queued = (id for queue in tray.ready.values() for work in queue for id in work.artifacts)
        waiting = (id for each in tray.pending.values() for id in each.artifacts)
        undelivered = tuple(dict.fromkeys((*queued, *waiting)))
        return "limit", LimitReached(self.plan.limit, root, undelivered)

    def due(self, state: RunState) -> datetime | None:
        """When a batch is taken, a join expires or something becomes visible."""
        tray: Tray = state.progress
        instants = [later.opens for later in tray.later]
        for subscription, pending in self._timed(tray):
            instants += filter(None, [gates.closing(pending, subscription)])
            instants += filter(None, [gates.expiry(pending, subscription)])
        return min(instants, default=None)

    def rest(self, state: RunState) -> Rest:
        """Whether a batch will be taken without anything else happening, and how many artifacts, or
        sets of a batch, wait for others."""
        tray: Tray = state.progress
        continues = any(gates.closing(pending, each) for each, pending in self._timed(tray))
        for id, pending in tray.pending.items():
            if pending.groups or pending.sets:
                return Rest(continues, *gates.collected(pending, self._by_id[id]))
        if self.collects is not None:
            return Rest(continues, *gates.collected(Pending(), self.collects))
        return Rest(continues)

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """What is taken, expired or visible by now."""
        tray: Tray = state.progress
        return [
            *self._openings(tray, now),
            *self._expired(tray, now),
            *self._closed(tray, now),
        ]

    def _openings(self, tray: Tray, now: datetime) -> Iterator[tuple[str, Fact]]:
        for later in tray.later:
            if later.opens <= now:
                fact = ArtifactOpened(later.artifact, later.subscription)
                yield f"opened/{later.artifact}/{later.subscription}", fact

    def _expired(self, tray: Tray, now: datetime) -> Iterator[tuple[str, Fact]]:
        for subscription, pending in self._timed(tray):
            for key, ids in gates.outdated(pending, subscription, now):
                yield _expiration(subscription, key, ids)

    def _closed(self, tray: Tray, now: datetime) -> Iterator[tuple[str, Fact]]:
        for subscription, pending in self._timed(tray):
            if gates.is_due(pending, subscription, now):
                fact = BatchClosed(subscription.id, "its time is over")
                yield f"batch/{subscription.id}/{pending.sets[0][0]}", fact

    def _timed(self, tray: Tray) -> Sequence[tuple[Subscription, Pending]]:
        """What waits with a limit: in a batch, or to be joined."""
        if not tray.pending or not self._limited:
            return ()
        limited = self._limited
        return [(limited[id], each) for id, each in tray.pending.items() if id in limited]

    def _on_published(self, tray: Tray, fact: ArtifactPublished) -> None:
        if self.subscribers(fact.artifact.type):
            tray.unoffered.append((fact.artifact.id, ""))
            led = tray.working[fact.turn].artifacts if fact.turn else ()
            depth = max((tray.depths[id] + 1 for id in led), default=0)
            tray.hold(fact.artifact, fact.root or fact.artifact.id, depth)

    def _on_received(self, tray: Tray, fact: ArtifactReceived) -> None:
        tray.unoffered.append((fact.artifact.id, ""))
        tray.hold(fact.artifact, fact.root or fact.artifact.id, fact.depth)

    def _on_given(self, tray: Tray, fact: ArtifactsGiven) -> None:
        root = fact.root or fact.artifacts[0].id
        for artifact in fact.artifacts:
            tray.hold(artifact, root, fact.depth)
        tray.counts[root] = fact.depth
        ids = tuple(artifact.id for artifact in fact.artifacts)
        self._line_up(
            tray, Assignment(fact.agent, fact.subscription, ids, root, publish=fact.publish)
        )

    def _line_up(self, tray: Tray, work: Assignment) -> None:
        tray.ready.setdefault(work.subscription, []).append(work)

    def _on_offered(self, tray: Tray, fact: ArtifactOffered) -> None:
        tray.unoffered.pop(0)
        for verdict in fact.to:
            self._follow(tray, fact, verdict)
        tray.release(fact.artifact)
        self._close(tray)

    def _on_selected(self, tray: Tray, fact: SelectionMade) -> None:
        tray.chosen[fact.artifact] = (fact.chosen, fact.category)

    def _follow(self, tray: Tray, fact: ArtifactOffered, verdict: SubscriptionVerdict) -> None:
        """What comes of one subscription's verdict."""
        id, subscription = fact.artifact, self._by_id[verdict.subscription]
        if verdict.verdict not in (TAKEN, FORWARDED, LATER):
            return
        tray.keep(id)
        if verdict.verdict == FORWARDED:
            tray.outbox.append((id, subscription.id))
        elif verdict.opens is not None:
            tray.later.append(Later(verdict.opens, id, subscription.id))
        else:
            pending = tray.pending.setdefault(subscription.id, Pending())
            type = tray.held[id].type
            for ids in gates.arrive(pending, subscription, id, type, key=verdict.key, at=fact.at):
                self._complete(tray, subscription, ids)

    def _complete(self, tray: Tray, subscription: Subscription, ids: tuple[str, ...]) -> None:
        self._line_up(
            tray, Assignment(subscription.agent, subscription.id, ids, tray.roots[ids[0]])
        )

    def _on_opened(self, tray: Tray, fact: ArtifactOpened) -> None:
        this = (fact.artifact, fact.subscription)
        tray.later = [each for each in tray.later if (each.artifact, each.subscription) != this]
        tray.unoffered.append(this)

    def _on_consumed(self, tray: Tray, fact: ArtifactConsumed) -> None:
        queue = tray.ready[fact.subscription]
        work = queue.pop(0)
        if not queue:
            del tray.ready[fact.subscription]
        if fact.run:
            tray.spawning[fact.run] = work
        else:
            tray.working[fact.turn] = work
            tray.counts[work.root] = tray.counts.get(work.root, 0) + 1

    def _on_forwarded(self, tray: Tray, fact: ArtifactForwarded) -> None:
        tray.outbox.remove((fact.artifact, fact.subscription))
        tray.release(fact.artifact)

    def _on_run_opened(self, tray: Tray, fact: RunOpened) -> None:
        tray.release(*tray.spawning.pop(fact.run).artifacts)

    def _on_turn(self, tray: Tray, fact: TurnFinished) -> None:
        work = tray.working.pop(fact.turn)
        if fact.status == "failed":
            tray.failed[fact.turn] = work
        else:
            tray.release(*work.artifacts)

    def _on_expired(self, tray: Tray, fact: JoinExpired) -> None:
        gates.drop(tray.pending[fact.subscription], fact.key, fact.artifacts)
        tray.release(*fact.artifacts)

    def _on_closed(self, tray: Tray, fact: BatchClosed) -> None:
        tray.closing.append(fact.subscription)
        self._close(tray)

    def _close(self, tray: Tray) -> None:
        """Take batches that are to be taken, once what came before that is in them."""
        if tray.unoffered or not tray.closing:
            return
        for id in tray.closing:
            pending = tray.pending.get(id)
            if pending is not None and pending.sets:
                self._complete(tray, self._by_id[id], gates.close(pending))
        tray.closing = []

    def _on_retry(self, tray: Tray, fact: RetryAsked) -> None:
        work = tray.failed.pop(fact.turn, None)
        if work is not None:
            self._line_up(tray, msgspec.structs.replace(work, retry_of=fact.turn))

    def _on_paused(self, tray: Tray, fact: RunPaused) -> None:
        """At rest, no turn follows from an earlier publish."""
        if not fact.waiting_for:
            tray.counts = {}


def selected(state: RunState, turn: int) -> Sequence[str]:
    """The categories in which a guard chose the agent of an open turn for its artifacts."""
    tray: Tray = state.progress
    work = tray.working[turn]
    chosen = (tray.chosen.get(id, ("", "")) for id in work.artifacts)
    return [category for agent, category in chosen if agent == work.agent]


def expiring(
    state: RunState, subscription: Subscription, now: datetime
) -> Iterator[tuple[str, Fact]]:
    """What has waited too long by when one more artifact comes for a subscription."""
    tray: Tray = state.progress
    pending = tray.pending.get(subscription.id)
    for key, ids in gates.outdated(pending, subscription, now, 1) if pending else ():
        yield _expiration(subscription, key, ids)


def _expiration(subscription: Subscription, key: str, ids: tuple[str, ...]) -> tuple[str, Fact]:
    return f"join/{subscription.id}/{ids[0]}", JoinExpired(subscription.id, key, ids)


# What comes to a run from outside, or with time.
_ARRIVALS = {
    ArtifactPublished,
    ArtifactReceived,
    ArtifactOpened,
    ArtifactsGiven,
    BatchClosed,
    JoinExpired,
    RetryAsked,
}


def _limited(fact: LimitReached) -> Failure:
    left = ", ".join(fact.undelivered)
    return Failure(
        "loop limit",
        f"The publish of {fact.root} set off {fact.limit} turns, and no more are taken. "
        f"Not delivered: {left}.",
    )
