"""The runs of a board: publish, collect, retry."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

import msgspec

from turnloom.agents.events import TurnFinished
from turnloom.agents.spec import USER, Publication
from turnloom.board.events import ArtifactConsumed, ArtifactPublished
from turnloom.board.service.rebuilding import index
from turnloom.board.spec import Artifact, Public
from turnloom.errors import ArtifactExists, Conflict, InvalidArtifact, UsageError
from turnloom.kernel.digests import digest
from turnloom.kernel.marks import BEGIN, neutral
from turnloom.kernel.values import as_data
from turnloom.log.events import ENDS, RunFinished, RunPaused, RunStarted
from turnloom.log.ports import Clock, EventLog
from turnloom.log.service import all_runs
from turnloom.log.spec import UNREADABLE, Event, Fact, RunKey
from turnloom.reaction.events import ArtifactsGiven, RetryAsked
from turnloom.reaction.logic.plans import describe_plan, subscription_digest
from turnloom.reaction.logic.reacting import ReactionForm
from turnloom.runs.actions import Finish, Forward, OpenRun
from turnloom.runtime.activity import Activity
from turnloom.runtime.drive.intake import already, is_same, mail_of, resting
from turnloom.runtime.drive.live import LiveRun
from turnloom.runtime.drive.plans import PLAN, pin
from turnloom.runtime.idleness import Idleness
from turnloom.runtime.journal import Journal
from turnloom.runtime.ports import Artifacts, Entropy, Inbox, Plans, Removals
from turnloom.runtime.spec import Close, Deliver, LoadedWorkflow, Message, Publish, RetryTurn

# The end of a run that is not driven.
UNTAKEN = RunFinished("no subscription takes it")

# Correlations cached with their current run.
REMEMBERED = 10_000


class Correlations:
    """The runs of a board's correlations: one at a time, each started when something is published
    after the one before has ended. Collecting runs of subscriptions are found the same way."""

    def __init__(self, board: str, tenant: str, log: EventLog, removals: Removals | None) -> None:
        self._board = board
        self._tenant = tenant
        self._log = log
        self._removals = removals
        self._generations: dict[str, int] = {}

    async def run_of(self, correlation: str, plan: str) -> tuple[str, bool]:
        """The current run of a correlation under a plan, and whether it is open; otherwise the id
        of its next run."""
        seed = as_data([self._board, correlation, plan])
        number, is_going = await self._latest(seed, self._generations.pop(seed, 0))
        self._remember(seed, number)
        if not number and await self._is_its_own(correlation, plan):
            return correlation, True
        return generation(self._board, seed, number if is_going else number + 1), is_going

    async def _is_its_own(self, correlation: str, plan: str) -> bool:
        """Whether a correlation is the id of a run that was started without one, or of a fork, and
        is open."""
        ends = await self._log.ends(RunKey(self._tenant, correlation))
        if ends is None:
            return False
        first, last = ends
        return (
            (first.data.workflow, first.data.definition) == (self._board, plan)
            and (first.data.correlation == correlation or first.run != correlation)
            and last.kind not in ENDS
        )

    async def _latest(self, seed: str, number: int) -> tuple[int, bool]:
        """The number of the latest run of a correlation, from a known one on, and whether it is
        open; 0 if there is none. Searched in growing steps."""
        is_going = bool(number and await self._is_open(seed, number))
        step = 1
        while True:
            found = await self._is_open(seed, number + step)
            if found is not None:
                number, is_going, step = number + step, found, step * 2
            elif step == 1:
                return number, is_going
            else:
                step = 1

    async def _is_open(self, seed: str, number: int) -> bool | None:
        """Whether a run of a correlation is open; None if it was never begun."""
        run = RunKey(self._tenant, generation(self._board, seed, number))
        if ends := await self._log.ends(run):
            return ends[1].kind not in ENDS
        is_removed = self._removals is not None and await self._removals.is_removed(run)
        return False if is_removed else None

    def _remember(self, seed: str, generation: int) -> None:
        self._generations[seed] = generation
        if len(self._generations) > REMEMBERED:
            del self._generations[next(iter(self._generations))]


def generation(board: str, seed: str, number: int) -> str:
    """The id of the run of a correlation with a number, from 1."""
    return f"{board}-{digest(f'{seed}{number}')}"


# Runs that `publish_many` starts at the same time.
AT_ONCE = 64


class Mail(Protocol):
    """Delivers messages to runs, and wakes them."""

    async def send(self, run: RunKey, id: str, message: Message) -> Event | None:
        """Deliver a message, and wait until an event of its id is stored; that event, or None if
        the run ended."""
        ...

    async def drop(self, run: RunKey, id: str, message: Message) -> None:
        """Deliver a message without waiting."""
        ...

    async def wake(self, run: RunKey, at: datetime | None = None) -> None:
        """Drive a run, now or at an instant."""
        ...


class Starter(Protocol):
    """Starts runs, and has them driven as they are in memory."""

    async def begin(
        self,
        run: RunKey,
        loaded: LoadedWorkflow,
        started: RunStarted,
        facts: Sequence[tuple[str, Fact, str]] = (),
    ) -> LiveRun:
        """A new run whose first facts are recorded, but not stored yet."""
        ...

    def adopt(self, live: LiveRun) -> None:
        """Drive a run that was started here as it is in memory."""
        ...


@dataclass(frozen=True, slots=True)
class BoardPorts:
    """The ports and services that the runs of a board use. `is_shared`: workers drive them."""

    log: EventLog
    plans: Plans
    inbox: Inbox
    artifacts: Artifacts
    clock: Clock
    entropy: Entropy
    starter: Starter
    mail: Mail
    activities: dict[RunKey, Activity]
    removals: Removals | None = None
    is_shared: bool = False


class BoardRuns:
    """The runs of one board of one tenant. `load` returns the board as it is declared now. A board
    that `is_served` gets mail for all of its runs here, also for those of other processes."""

    def __init__(
        self,
        name: str,
        place: BoardPorts,
        load: Callable[[], LoadedWorkflow],
        user: str,
        tenant: str,
    ) -> None:
        self.name = name
        self.activity = Activity()
        self._place = place
        self._load = load
        self.user = user
        self.tenant = tenant
        self.idleness = Idleness(
            self.activity,
            place.log,
            place.inbox,
            tenant,
            has=self.has,
            is_shared=place.is_shared,
        )
        self._correlations = Correlations(name, tenant, place.log, place.removals)
        self._pinned: set[str] = set()
        self._collectors: set[str] = set()
        self._in_turn = asyncio.Lock()
        self.is_served = False

    def as_user(self, user: str) -> "BoardRuns":
        """The same board, for publishing as another user of its tenant."""
        same = copy(self)
        same.user = user
        return same

    def key(self, run: str) -> RunKey:
        """The key of a run of the board's tenant."""
        return RunKey(self.tenant, run)

    def has(self, started: RunStarted) -> bool:
        """Whether a run belongs to this board."""
        is_of_board = bool(
            started.correlation or started.collects
        )  # every run of a board has this form
        return is_of_board and (started.workflow, started.tenant) == (self.name, self.tenant)

    async def publish(self, what: Publication, correlation: str | None, id: str | None) -> Artifact:
        """Publish an artifact, in a new run or in the run of a correlation.

        Raises:
            InvalidArtifact: it cannot be what it says it is.
            ArtifactExists: an artifact of this id is there, with other content.
        """
        loaded = await self._declared()
        made = self._artifact(loaded, what, correlation, id)
        if id is not None and (there := await already(self._place.artifacts, self.tenant, made)):
            return there
        return await self._publish(loaded, made, correlation)

    async def _publish(
        self, loaded: LoadedWorkflow, made: Artifact, correlation: str | None
    ) -> Artifact:
        if correlation is not None:
            return await self._publish_in(loaded, made, correlation)
        run = made.correlation_id or ""
        if await self._begin(run, loaded, made):
            return made
        events = await self._place.log.read(self.key(run))
        begun = next(event for event in events if event.id == f"publish/{made.id}")
        return await self._published(begun, made)

    async def publish_many(
        self, things: Sequence[Publication], correlation: str | None
    ) -> list[Artifact]:
        """Publish artifacts; if one is invalid, none is published."""
        loaded = await self._declared()
        made = [self._artifact(loaded, what, correlation, None) for what in things]
        if correlation is not None:
            return [await self._publish_in(loaded, each, correlation) for each in made]
        published: list[Artifact] = []
        for first in range(0, len(made), AT_ONCE):
            some = made[first : first + AT_ONCE]
            published += await asyncio.gather(*(self._publish(loaded, each, None) for each in some))
        return published

    async def give(self, agent: str, what: Publication, publish: bool) -> str:
        """Give an artifact to an agent directly, in a new run; returns that run's id."""
        loaded = await self._declared()
        if agent not in loaded.workflow.agents:
            known = ", ".join(loaded.workflow.agents) or "none"
            raise UsageError(f"Unknown agent {agent!r}. This board has: {known}.")
        made = self._artifact(loaded, what, None, None)
        _refuse_stranger(_reacting(loaded), agent, made.type)
        run = made.correlation_id or ""
        artifact = msgspec.structs.replace(made, run=run)
        started = self._started(loaded, run)
        given = ArtifactsGiven(agent, (artifact,), "", publish)
        self._attend(run)
        facts = [("given", given, self.user)]
        live = await self._place.starter.begin(self.key(run), loaded, started, facts)
        self.activity.leave(run)
        await live.journal.commit()
        self._place.starter.adopt(live)
        await self._wake(run)
        return run

    async def deliver(self, what: Forward) -> None:
        """Deliver an artifact to the run that collects for a subscription."""
        async with self._in_turn:  # one delivery at a time: it may have to start that run
            run = await self._collector(what.subscription)
        self._want(run)
        message = Deliver(what.artifact, what.depth, what.root)
        await self._place.mail.drop(self.key(run), f"in/{what.artifact.id}", message)

    async def open(self, opening: OpenRun, parent: str) -> None:
        """Start the run of a collected set, unless it was started before."""
        loaded = self._load()
        parents = tuple(dict.fromkeys(each.run for each in opening.artifacts if each.run))
        started = self._started(loaded, opening.run, (parent, *parents))
        given = ArtifactsGiven(
            opening.agent,
            opening.artifacts,
            opening.subscription,
            depth=opening.depth,
            root=opening.root,
        )
        self._attend(opening.run)
        facts = [("given", given, opening.agent)]
        live = await self._place.starter.begin(self.key(opening.run), loaded, started, facts)
        with suppress(Conflict):  # it was started before a process was killed
            await live.journal.commit()
            self._place.starter.adopt(live)
        await self._wake(opening.run)

    async def close(self, seconds: float | None) -> None:
        """Close every batch, once everything published so far has arrived in it.

        Raises:
            TimeoutError: it takes longer than `seconds`.
        """
        members = _reacting(self._load()).plan.members.values()
        batched = [s for member in members for s in member.subscriptions if s.batch is not None]
        if not batched:
            return
        await self.idleness.until(self._is_collected, seconds)
        for each in batched:
            run = await self._collector(each.id)
            self._want(run)
            id = f"close/{self._place.entropy.token()}"
            await self._place.mail.drop(self.key(run), id, Close(each.id))

    async def _is_collected(self) -> bool:
        """Whether only collecting runs are busy."""
        return all(run in self._collectors for run in await self.idleness.busy())

    async def retry(self, of: str, agent: str, turn: int = 0) -> int:
        """Retry failed turns: of a run, or of those that took an artifact.

        Raises:
            UsageError: there is none, or their run has ended.
        """
        wanted = [
            (run, number)
            for run in await self._runs_with(of)
            for number, taken in (await self._failed(run)).items()
            if agent in ("", taken.agent)
            and turn in (0, number)
            and (of == run or of in taken.artifacts)
        ]
        if not wanted:
            raise UsageError(f"Nothing failed with {of!r}, so there is nothing to try again.")
        for run, number in wanted:
            self._want(run)
            message = RetryTurn(number, self.user)
            await self._place.mail.send(self.key(run), f"retry/{number}", message)
        return len(wanted)

    async def _runs_with(self, of: str) -> Sequence[str]:
        """The run that an id names, or the runs in which an agent took the artifact that it names.

        Raises:
            UsageError: it names neither.
        """
        place = self._place
        if await place.log.ends(self.key(of)):
            return (of,)
        rows = await place.artifacts.find(self.tenant, of)
        if not any(row.tenant == self.tenant for row in rows):
            raise UsageError(f"There is neither a run nor an artifact {of!r}.")
        taken = await place.artifacts.consumptions(self.tenant, (of,))
        return sorted({each.run for each in taken})

    async def _failed(self, run: str) -> dict[int, ArtifactConsumed]:
        """The artifacts taken by the failed turns of a run.

        Raises:
            UsageError: they cannot: the run has ended.
        """
        events = await self._place.log.read(self.key(run))
        failed = failed_turns(events)
        if failed and events[-1].kind in ENDS:
            raise UsageError(f"Run {run!r} has ended, so there is nothing to try again.")
        return failed

    async def resume(self, run: str, last: Event) -> None:
        """Continue a run now, or at the instant that it waits for."""
        due = last.data.due if isinstance(last.data, RunPaused) else None
        is_due = due is None or due <= self._place.clock.now()
        if is_due or await mail_of(self._place.inbox, self.key(run)):
            await self._wake(run)
        else:
            self._attend(run)
            await self._place.mail.wake(self.key(run), due)

    async def unfinished(self) -> list[tuple[Event, Event]]:
        """The first and last event of every run of this board that can continue by itself, or has
        mail."""
        return [
            (first, last)
            async for first, last in all_runs(self._place.log, self.tenant, unfinished=True)
            if isinstance(first.data, RunStarted)
            and self.has(first.data)
            and last.kind != UNREADABLE
            and last.kind not in ENDS
            and (not _rests(last) or await mail_of(self._place.inbox, self.key(last.run)))
        ]

    async def _declared(self) -> LoadedWorkflow:
        """The board as it is declared now. Its plan is stored first: runs are pinned to it."""
        loaded = self._load()
        if loaded.definition not in self._pinned:
            plan = _reacting(loaded).plan
            await pin(self._place.plans, self.tenant, plan, describe_plan(plan))
            self._pinned.add(loaded.definition)
        return loaded

    def _artifact(
        self, loaded: LoadedWorkflow, what: Publication, correlation: str | None, id: str | None
    ) -> Artifact:
        """An artifact from outside; without a correlation, the id of its run is the correlation."""
        loaded.types.register(what.value.__class__)
        type_name, payload = loaded.types.write(what.value)
        _check_names(id, correlation)
        token = self._place.entropy.token
        own = token() if id is None else f"{self.name}-{digest(as_data([self.name, id]))}"
        return Artifact(
            id=token() if id is None else id,
            type=type_name,
            payload=neutral(payload),
            produced_by=USER,
            created_at=self._place.clock.now(),
            correlation_id=own if correlation is None else correlation,
            run=own if correlation is None else None,
            tags=neutral(what.tags or frozenset()),
            visibility=what.visibility or Public(),
            partition=neutral(what.partition),
            version=loaded.types.version(type_name),
            indexed=loaded.types.indexed(type_name),
        )

    async def _publish_in(
        self, loaded: LoadedWorkflow, made: Artifact, correlation: str
    ) -> Artifact:
        """Publish in the run of a correlation, or start the next one if it has ended."""
        while True:
            run, is_going = await self._correlations.run_of(correlation, loaded.definition)
            artifact = msgspec.structs.replace(made, run=run)
            if is_going:
                self._want(run)
                message = Publish(artifact)
                key, id = self.key(run), f"publish/{made.id}"
                if event := await self._place.mail.send(key, id, message):
                    return await self._published(event, artifact)
            elif await self._begin(run, loaded, artifact):
                return artifact

    async def _published(self, event: Event, meant: Artifact) -> Artifact:
        """The stored artifact, if it is the one that was meant.

        Raises:
            ArtifactExists: another one was published meanwhile.
        """
        fact = event.data
        if not (isinstance(fact, ArtifactPublished) and is_same(fact.artifact, meant)):
            raise ArtifactExists(meant.id)
        if (
            not self._place.artifacts.follows_log
        ):  # the process that stored it may not have indexed it
            await index(self._place.artifacts, self.tenant, [event])
        return fact.artifact

    async def _begin(self, run: str, loaded: LoadedWorkflow, artifact: Artifact) -> bool:
        """Start a run with an artifact; returns False if it was started before."""
        place = self._place
        started = self._started(loaded, artifact.correlation_id or run)
        published = ArtifactPublished(artifact, 0, artifact.id)
        fact = (f"publish/{artifact.id}", published, artifact.produced_by)
        self._attend(run)
        live = await place.starter.begin(self.key(run), loaded, started, [fact])
        journal = live.journal
        is_over = place.artifacts.follows_log and end_untaken(journal)
        try:
            await journal.commit()
        except Conflict:
            return False
        if is_over:
            place.activities.pop(self.key(run), None)
            self.activity.change()  # it is not driven, so nothing else wakes those who wait
        else:
            place.starter.adopt(live)
            await self._wake(run)
        return True

    async def _wake(self, run: str) -> None:
        self._want(run)
        await self._place.mail.wake(self.key(run))

    def _want(self, run: str) -> None:
        """Note that a run is about to be driven."""
        self._attend(run)
        if not self._place.is_shared:
            self.activity.want(run)

    def _attend(self, run: str) -> None:
        if self._place.is_shared:
            self.idleness.remember(run)
        else:
            self._place.activities[self.key(run)] = self.activity

    async def _collector(self, id: str) -> str:
        """The run that collects for a subscription; started if none is open."""
        loaded = self._load()
        plan = _reacting(loaded).plan
        pinned = subscription_digest(plan, plan.subscription(id))
        run, is_going = await self._correlations.run_of(id, pinned)
        self._collectors.add(run)
        if not is_going:
            started = msgspec.structs.replace(
                self._started(loaded, ""), definition=pinned, collects=id, code={PLAN: plan.digest}
            )
            await self._collect(run, loaded, started)
        return run

    async def _collect(self, run: str, loaded: LoadedWorkflow, started: RunStarted) -> None:
        collector = collecting(loaded, started.collects)
        live = await self._place.starter.begin(self.key(run), collector, started)
        live.journal.record("rest@0", resting(live.journal, None))
        with suppress(Conflict):  # another process started it at the same time
            await live.journal.commit()

    def _started(
        self, loaded: LoadedWorkflow, correlation: str, parents: tuple[str, ...] = ()
    ) -> RunStarted:
        return RunStarted(
            self.name,
            "",
            loaded.definition,
            loaded.root,
            files={},
            code={},
            tenant=self.tenant,
            user=self.user,
            set_aside=(),
            form=ReactionForm.form,
            correlation=correlation,
            parents=parents,
        )


def _check_names(*names: str | None) -> None:
    """Refuse names that contain the beginning of a secret's mark.

    Raises:
        InvalidArtifact: one does.
    """
    for name in names:
        if name is not None and BEGIN in name:
            raise InvalidArtifact(f"{name!r} cannot be a name: {BEGIN!r} begins a mark.")


def _refuse_stranger(form: ReactionForm, agent: str, type: str) -> None:
    """Refuse to give an agent a type that it does not consume. An agent without subscriptions takes
    any."""
    subscriptions = form.plan.members[agent].subscriptions
    consumed = list(dict.fromkeys(name for each in subscriptions for name in each.types))
    if consumed and type not in consumed:
        raise UsageError(
            f"Agent {agent!r} consumes {', '.join(consumed)}, and is given a {type!r}. Give it "
            "what it consumes, or let it consume that."
        )


def end_untaken(journal: Journal) -> bool:
    """End a run whose first artifact no subscription takes; returns whether it is one."""
    form = journal.workflow
    if form.hooks or not isinstance(form.decide(journal.state), Finish):
        return False
    journal.record("end", UNTAKEN)
    return True


def collecting(loaded: LoadedWorkflow, subscription: str) -> LoadedWorkflow:
    """A board as the run that collects for one subscription sees it."""
    return replace(loaded, workflow=_reacting(loaded).collecting(subscription))


def failed_turns(events: Sequence[Event]) -> dict[int, ArtifactConsumed]:
    """The artifacts of turns that failed and were not retried."""
    taken: dict[int, ArtifactConsumed] = {}
    failed: dict[int, ArtifactConsumed] = {}
    for event in events:
        fact = event.data
        if isinstance(fact, ArtifactConsumed):
            taken[fact.turn] = fact
        elif isinstance(fact, TurnFinished) and fact.status == "failed":
            failed[fact.turn] = taken[fact.turn]
        elif isinstance(fact, RetryAsked):
            failed.pop(fact.turn, None)
    return failed


def _reacting(loaded: LoadedWorkflow) -> ReactionForm:
    assert isinstance(loaded.workflow, ReactionForm)
    return loaded.workflow


def _rests(last: Event) -> bool:
    return isinstance(last.data, RunPaused) and not (last.data.waiting_for or last.data.due)
