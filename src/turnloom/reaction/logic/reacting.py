"""The form of a board's runs: published artifacts decide which agents take turns."""

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
from turnloom.reaction.spec.state import Assignment, BoardState, Later, Pending
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
from turnloom.runs.retries import none_misplaced, redo_turns
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

# The maximum number of concurrent turns of one run.
ABREAST = 64


def opened_run(board: str, subscription: str, artifacts: Iterable[str]) -> str:
    """The id of the run for a collected set."""
    return f"{board}-{digest(as_data([subscription, *artifacts]))}"


class ReactionForm:
    """The form of a board's runs.

    A run that collects for one subscription (`collects`) opens a run for each set; any other run
    has one correlation, and agents take turns in it.
    """

    form = "reaction"
    has_people = True
    hears = False
    version = ""
    outputs: Mapping[str, Any] = {}
    message_hooks: tuple[MessageHook, ...] = ()
    progress = BoardState
    redo = staticmethod(redo_turns)
    misplaced = staticmethod(none_misplaced)

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

    def collecting(self, subscription: str) -> "ReactionForm":
        """The form of the run that collects for a subscription; no agent takes a turn in it."""
        collects = self._by_id[subscription]
        return ReactionForm(
            self.plan,
            Variables(),
            Triggers({}),
            {},
            toolkit=Toolkit(),
            products={},
            collects=collects,
        )

    def begin(self) -> BoardState:
        """An empty board state."""
        return BoardState()

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold an event into the board state. An arrival wakes an idle run, but not one that waits
        for a person."""
        kind = event.data.__class__
        fold = self._folds.get(kind)
        if fold is not None:
            fold(state.progress, event.data)
        if kind in _ARRIVALS and state.status == "paused" and not state.questions:
            state.status = "running"
        elif kind is LimitReached:
            state.failure = _limited(event.data)

    def work(self, state: RunState) -> Sequence[Work]:
        """The open turns, which run concurrently."""
        return [
            Work(f"t{number}", number, turn.agent, number) for number, turn in state.open.items()
        ]

    def shows(self, agent: str) -> bool:
        """Whether the user sees this agent's messages: on a board, always."""
        return True

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another: none, each has its own
        subscriptions."""
        return ()

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose: on a board, none."""
        return ()

    def subscribers(self, type: str) -> Sequence[Subscription]:
        """The subscriptions that are offered artifacts of a type in this run."""
        if self.collects is not None:
            return (self.collects,)
        return self.plan.by_type.get(type, ())

    def decide(self, state: RunState) -> Action | None:
        """The next artifact to judge, run to open, turn to begin or artifact to forward."""
        end = stopped(state)
        if end is not None:
            return end
        tray: BoardState = state.progress
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

    def _next(self, state: RunState, tray: BoardState) -> Assignment | None:
        """The next assignment: direct calls first, then by priority, then in declared order."""
        if not tray.ready or len(state.open) >= ABREAST:
            return None
        ids = sorted(tray.ready, key=lambda id: self._places.get(id, -1))
        first = (tray.ready[id][0] for id in ids)
        return next((work for work in first if self._has_room(state, work.agent)), None)

    def _has_room(self, state: RunState, agent: str) -> bool:
        most = self.plan.members[agent].max_concurrency
        return most is None or sum(turn.agent == agent for turn in state.open.values()) < most

    def _give(self, state: RunState, tray: BoardState, work: Assignment) -> Action | None:
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

    def _open(self, tray: BoardState, run: str, work: Assignment, facts: Facts) -> OpenRun:
        artifacts = tuple(tray.held[id] for id in work.artifacts)
        deepest = max(work.artifacts, key=lambda id: tray.depths[id])
        depth = tray.depths[deepest]
        root = tray.roots[deepest] if depth else ""
        return OpenRun(
            run, work.agent, work.subscription, artifacts, depth=depth, facts=facts, root=root
        )

    def _stopped(self, tray: BoardState, root: str) -> tuple[str, Fact]:
        queued = (id for queue in tray.ready.values() for work in queue for id in work.artifacts)
        waiting = (id for each in tray.pending.values() for id in each.artifacts)
        undelivered = tuple(dict.fromkeys((*queued, *waiting)))
        return "limit", LimitReached(self.plan.limit, root, undelivered)

    def due(self, state: RunState) -> datetime | None:
        """When the next batch times out, join expires or artifact becomes visible."""
        tray: BoardState = state.progress
        if not (tray.later or tray.pending):
            return None
        instants = [later.opens for later in tray.later]
        for subscription, pending in self._timed(tray):
            instants += filter(None, [gates.closing(pending, subscription)])
            instants += filter(None, [gates.expiry(pending, subscription)])
        return min(instants, default=None)

    def rest(self, state: RunState) -> Rest:
        """Whether a batch will time out, and how many artifacts, or sets of a batch, wait for
        others."""
        tray: BoardState = state.progress
        continues = any(gates.closing(pending, each) for each, pending in self._timed(tray))
        for id, pending in tray.pending.items():
            if pending.groups or pending.sets:
                return Rest(continues, *gates.collected(pending, self._by_id[id]))
        if self.collects is not None:
            return Rest(continues, *gates.collected(Pending(), self.collects))
        return Rest(continues)

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """The batches that timed out, joins that expired, and artifacts that became visible."""
        tray: BoardState = state.progress
        if not (tray.later or tray.pending):
            return ()
        return [
            *self._openings(tray, now),
            *self._expired(tray, now),
            *self._closed(tray, now),
        ]

    def _openings(self, tray: BoardState, now: datetime) -> Iterator[tuple[str, Fact]]:
        for later in tray.later:
            if later.opens <= now:
                fact = ArtifactOpened(later.artifact, later.subscription)
                yield f"opened/{later.artifact}/{later.subscription}", fact

    def _expired(self, tray: BoardState, now: datetime) -> Iterator[tuple[str, Fact]]:
        for subscription, pending in self._timed(tray):
            for key, ids in gates.outdated(pending, subscription, now):
                yield _expiration(subscription, key, ids)

    def _closed(self, tray: BoardState, now: datetime) -> Iterator[tuple[str, Fact]]:
        for subscription, pending in self._timed(tray):
            if gates.is_due(pending, subscription, now):
                fact = BatchClosed(subscription.id, "timed out")
                yield f"batch/{subscription.id}/{pending.sets[0][0]}", fact

    def _timed(self, tray: BoardState) -> Sequence[tuple[Subscription, Pending]]:
        """What waits in a batch or a join."""
        if not tray.pending or not self._limited:
            return ()
        limited = self._limited
        return [(limited[id], each) for id, each in tray.pending.items() if id in limited]

    def _on_published(self, tray: BoardState, fact: ArtifactPublished) -> None:
        if self.subscribers(fact.artifact.type):
            tray.unoffered.append((fact.artifact.id, ""))
            led = tray.working[fact.turn].artifacts if fact.turn else ()
            depth = max((tray.depths[id] + 1 for id in led), default=0)
            tray.hold(fact.artifact, fact.root or fact.artifact.id, depth)

    def _on_received(self, tray: BoardState, fact: ArtifactReceived) -> None:
        tray.unoffered.append((fact.artifact.id, ""))
        tray.hold(fact.artifact, fact.root or fact.artifact.id, fact.depth)

    def _on_given(self, tray: BoardState, fact: ArtifactsGiven) -> None:
        root = fact.root or fact.artifacts[0].id
        for artifact in fact.artifacts:
            tray.hold(artifact, root, fact.depth)
        tray.counts[root] = fact.depth
        ids = tuple(artifact.id for artifact in fact.artifacts)
        self._line_up(
            tray, Assignment(fact.agent, fact.subscription, ids, root, publish=fact.publish)
        )

    def _line_up(self, tray: BoardState, work: Assignment) -> None:
        tray.ready.setdefault(work.subscription, []).append(work)

    def _on_offered(self, tray: BoardState, fact: ArtifactOffered) -> None:
        tray.unoffered.pop(0)
        for verdict in fact.to:
            self._follow(tray, fact, verdict)
        tray.release(fact.artifact)
        self._close(tray)

    def _on_selected(self, tray: BoardState, fact: SelectionMade) -> None:
        tray.chosen[fact.artifact] = (fact.chosen, fact.category)

    def _follow(
        self, tray: BoardState, fact: ArtifactOffered, verdict: SubscriptionVerdict
    ) -> None:
        """Apply one subscription's verdict."""
        id, subscription = fact.artifact, self._by_id[verdict.subscription]
        if verdict.verdict not in (TAKEN, FORWARDED, LATER):
            return
        tray.keep(id)
        if verdict.verdict == FORWARDED:
            tray.outbox.append((id, subscription.id))
        elif verdict.opens is not None:
            tray.later.append(Later(verdict.opens, id, subscription.id))
        elif subscription.takes_each:
            self._complete(tray, subscription, (id,))
        else:
            pending = tray.pending.setdefault(subscription.id, Pending())
            type = tray.held[id].type
            for ids in gates.arrive(pending, subscription, id, type, key=verdict.key, at=fact.at):
                self._complete(tray, subscription, ids)

    def _complete(self, tray: BoardState, subscription: Subscription, ids: tuple[str, ...]) -> None:
        self._line_up(
            tray, Assignment(subscription.agent, subscription.id, ids, tray.roots[ids[0]])
        )

    def _on_opened(self, tray: BoardState, fact: ArtifactOpened) -> None:
        this = (fact.artifact, fact.subscription)
        tray.later = [each for each in tray.later if (each.artifact, each.subscription) != this]
        tray.unoffered.append(this)

    def _on_consumed(self, tray: BoardState, fact: ArtifactConsumed) -> None:
        queue = tray.ready[fact.subscription]
        work = queue.pop(0)
        if not queue:
            del tray.ready[fact.subscription]
        if fact.run:
            tray.spawning[fact.run] = work
        else:
            tray.working[fact.turn] = work
            tray.counts[work.root] = tray.counts.get(work.root, 0) + 1

    def _on_forwarded(self, tray: BoardState, fact: ArtifactForwarded) -> None:
        tray.outbox.remove((fact.artifact, fact.subscription))
        tray.release(fact.artifact)

    def _on_run_opened(self, tray: BoardState, fact: RunOpened) -> None:
        tray.release(*tray.spawning.pop(fact.run).artifacts)

    def _on_turn(self, tray: BoardState, fact: TurnFinished) -> None:
        work = tray.working.pop(fact.turn)
        if fact.status == "failed":
            tray.failed[fact.turn] = work
        else:
            tray.release(*work.artifacts)

    def _on_expired(self, tray: BoardState, fact: JoinExpired) -> None:
        gates.drop(tray.pending[fact.subscription], fact.key, fact.artifacts)
        tray.release(*fact.artifacts)

    def _on_closed(self, tray: BoardState, fact: BatchClosed) -> None:
        tray.closing.append(fact.subscription)
        self._close(tray)

    def _close(self, tray: BoardState) -> None:
        """Take the batches that were closed, once all earlier artifacts are offered."""
        if tray.unoffered or not tray.closing:
            return
        for id in tray.closing:
            pending = tray.pending.get(id)
            if pending is not None and pending.sets:
                self._complete(tray, self._by_id[id], gates.close(pending))
        tray.closing = []

    def _on_retry(self, tray: BoardState, fact: RetryAsked) -> None:
        work = tray.failed.pop(fact.turn, None)
        if work is not None:
            self._line_up(tray, msgspec.structs.replace(work, retry_of=fact.turn))

    def _on_paused(self, tray: BoardState, fact: RunPaused) -> None:
        """Reset the counts: after an idle run wakes, no turn follows from an earlier publish."""
        if not fact.waiting_for:
            tray.counts = {}


def selected(state: RunState, turn: int) -> Sequence[str]:
    """The categories in which the selection guard chose the agent of an open turn."""
    tray: BoardState = state.progress
    work = tray.working[turn]
    chosen = (tray.chosen.get(id, ("", "")) for id in work.artifacts)
    return [category for agent, category in chosen if agent == work.agent]


def expiring(
    state: RunState, subscription: Subscription, now: datetime
) -> Iterator[tuple[str, Fact]]:
    """The joins that expire when one more artifact arrives for a subscription."""
    tray: BoardState = state.progress
    pending = tray.pending.get(subscription.id)
    for key, ids in gates.outdated(pending, subscription, now, 1) if pending else ():
        yield _expiration(subscription, key, ids)


def _expiration(subscription: Subscription, key: str, ids: tuple[str, ...]) -> tuple[str, Fact]:
    return f"join/{subscription.id}/{ids[0]}", JoinExpired(subscription.id, key, ids)


# The facts that wake an idle run.
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
        f"Publishing {fact.root} caused {fact.limit} turns, the limit of the board. "
        f"Not delivered: {left}.",
    )
