"""Runs of flows: steps are taken side by side where paths are, and what was done is made up for
where a flow does not go on."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.events import TurnStarted
from turnloom.agents.spec import Ask, Decision, Finish, MakeUp, Proceed
from turnloom.flow.events import (
    StepCompleted,
    StepSkipped,
    StepStarted,
)
from turnloom.flow.logic.endings import CANCELLED
from turnloom.flow.logic.flowing import STOPPED, Flowing
from turnloom.flow.logic.states import Change
from turnloom.flow.logic.walking import (
    children,
    node_of,
    place_of,
    state_of,
    step_of,
)
from turnloom.flow.ports import Results
from turnloom.flow.spec.nodes import ApprovalNode, BranchNode, ForkNode, StepNode
from turnloom.flow.spec.progress import Progress, Step, Strand
from turnloom.flow.spec.steps import About, AgentStep, PathResult
from turnloom.guards.logic.recovering import escalation
from turnloom.guards.spec import NO_GUARDS
from turnloom.kernel.values import Json
from turnloom.log.events import RunFinished, RunPaused
from turnloom.log.spec import Fact
from turnloom.runtime.logic import ENDED
from turnloom.runtime.ports import Entropy
from turnloom.runtime.service.caching import Caching
from turnloom.runtime.service.calls import Waiting, ask
from turnloom.runtime.service.crew import Crew
from turnloom.runtime.service.crossings import Crossings
from turnloom.runtime.service.endings import end_cancelled, end_failed
from turnloom.runtime.service.failures import Failures
from turnloom.runtime.service.intake import due
from turnloom.runtime.service.opened import Opened
from turnloom.runtime.service.reactions import Surroundings
from turnloom.runtime.service.steps import Steps, asks, completed


class Means(NamedTuple):
    """What runs of flows need of the driver: surroundings, tasks, chance, and known results."""

    around: Surroundings
    crew: Crew
    entropy: Entropy
    results: Results


class Flows:
    """One drive of a run of a flow."""

    def __init__(self, opened: Opened, means: Means) -> None:
        self._opened = opened
        self._journal = opened.journal
        self._around = means.around
        self._crew = means.crew
        workflow = opened.journal.workflow
        assert isinstance(workflow, Flowing)
        self._workflow = workflow
        self._plan = workflow.plan
        self._steps = Steps(opened, workflow)
        self._failures = Failures(opened.journal, self._plan, self._steps, means.entropy)
        self._crossings = Crossings(opened.journal, workflow, self._steps)
        self._parked: set[int] = set()
        self._caching = Caching(opened.journal, workflow, means.results)

    @property
    def _progress(self) -> Progress:
        return self._journal.state.progress

    async def drive(self) -> None:
        """Decide and act until the run ends, or there is nothing to do."""
        state = self._journal.state
        async with self._crew:
            while state.status not in ENDED and await self._step():
                pass

    async def _step(self) -> bool:
        """The next thing that happens in the run; whether more may follow."""
        opened, state = self._opened, self._journal.state
        self._around.expire(opened)
        await self._halt(filter(self._is_over, self._progress.steps.values()))
        if not self._progress.begun and state.cancel is None:
            await opened.hooks.before_chat()
            await opened.offer()
        self._go_on()
        decision = self._decide()
        for id, fact in decision.facts:
            self._journal.record(id, fact)
        match decision:
            case Proceed(strand=strand):
                await self._proceed(self._progress.strands[strand])
            case MakeUp(place=place):
                self._make_up(place)
            case Ask(question=question):
                ask(self._journal, question)
            case Finish(reason=reason):
                await self._end(reason)
            case _:
                return bool(decision.facts) or await self._rest()
        return True

    def _decide(self) -> Decision:
        """What comes next: what guards want of a person, or what the flow says. Guards have no say
        any more in a flow that does not go on."""
        state = self._journal.state
        if self._progress.undoing is not None:
            self._journal.guards = NO_GUARDS
            return self._workflow.decide(state)
        asked = escalation(state) if state.failure is None else None
        return asked or self._workflow.decide(state)

    async def _halt(self, steps: Iterable[Step]) -> None:
        """Stop steps that are being taken."""
        over = [*steps]
        await self._crew.drop(step.number for step in over)
        for step in over:
            self._steps.settle(step)
            self._steps.cut_off(step, "cancelled", "")
            fact = StepSkipped(step.node, step.place, step.number, STOPPED)
            self._journal.record(f"s{step.number}/skipped", fact)

    def _is_over(self, step: Step) -> bool:
        """Whether the line of work does not go on that a step belongs to."""
        undoing = self._progress.undoing
        if undoing is not None and step.number <= undoing.begun:
            return True
        return not step.undoes and step.strand not in self._progress.strands

    def _go_on(self) -> None:
        """Let steps be taken that are on record as begun and that nobody takes: they were cut off,
        or waited for a person who has answered."""
        if self._journal.state.question is None:
            self._parked.clear()
        for step in self._progress.steps.values():
            if step.number not in self._crew and not self._waits(step):
                self._crew.begin(step.number, self._take(step))

    def _waits(self, step: Step) -> bool:
        """Whether a step waits for its time, or for an answer."""
        strand = self._progress.strands.get(step.strand)
        if not step.undoes and (strand is None or strand.status != "busy"):
            return True
        return step.number in self._parked or asks(step, self._journal.state.question)

    async def _proceed(self, strand: Strand) -> None:
        """What a line of work does with what it has come to."""
        try:
            match node_of(self._plan, strand):
                case None:
                    await self._crossings.pass_loop(strand)
                case StepNode() as node:
                    await self._begin(strand, node)
                case BranchNode() as node:
                    await self._crossings.branch(strand, node)
                case ForkNode() as node if strand.status == "forked":
                    self._crossings.join(strand, node)
                case ForkNode(join=StepNode() as node):
                    await self._begin(strand, node)
                case ApprovalNode() as node:
                    await self._crossings.approve(strand, node)
                case other:
                    raise AssertionError(f"a strand does not stay at {other!r}")
        except Exception as error:  # noqa: BLE001 - whatever code of the flow raises is recorded
            self._failures.crossing(strand, error)

    async def _begin(self, strand: Strand, node: StepNode) -> None:
        """Begin a step, or the next attempt of one."""
        if not strand.step and node.validate is not None:
            holds, message = node.validate
            if not await self._crossings.ask(holds, strand):
                self._failures.refuse(strand, node, message)
                return
        if not strand.step and node.cache is not None and await self._known(strand, node):
            return
        number = strand.step or self._progress.begun + 1
        is_agent = isinstance(node.step, AgentStep)
        turn = self._journal.state.turns + 1 if is_agent else 0
        attempt, place = strand.attempt + 1, self._place(strand)
        step = Step(number, place, strand.id, node.name, attempt, turn)
        if not self._steps.afford(step):
            return  # on record, and the flow does not go on
        fact = StepStarted(node.name, place, number, attempt, strand.id, turn)
        self._journal.record(f"s{number}/a{attempt}?", fact)
        if is_agent:
            self._journal.record(f"t{turn}", TurnStarted(turn, node.name))

    async def _known(self, strand: Strand, node: StepNode) -> bool:
        """Let a step that came to something before come to it again; whether it did."""
        change = await self._caching.find(self._caching.key(node, strand.state))
        if change is None:
            return False
        place, states = self._place(strand), self._workflow.states
        reduced = states.reduce(strand.state, [change.fields])
        step = Step(0, place, strand.id, node.name, 0)
        fact = completed(step, node, change, reduced)
        self._journal.record(f"{place}/cached", msgspec.structs.replace(fact, cached=True))
        return True

    async def _take(self, step: Step) -> None:
        """Take a step to its end, whatever that is."""
        node = self._node(step)
        try:
            await self._journal.commit()
            written = {**state_of(self._progress, step.strand).state}
            if step.undoes or not isinstance(node.step, AgentStep):
                made = await self._steps.call(step, node, written, self._about(step, node))
            else:
                made = await self._turn(step, node, written)
            await self._keep(node, written, made)
        except Waiting:  # the step stays open
            if not asks(step, self._journal.state.question):
                self._parked.add(step.number)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            self._failures.attempt(step, node, RuntimeError("it cancelled its own task"))
        except Exception as error:  # noqa: BLE001 - whatever a step raises is recorded
            self._failures.attempt(step, node, error)
        if self._crew.size > 1:  # the others may take long
            await self._journal.commit()

    async def _keep(self, node: StepNode, written: Mapping[str, Json], made: Fact) -> None:
        """Let others have what a step came to, if it says so."""
        if node.cache is not None and isinstance(made, StepCompleted):
            change = Change(made.update, made.confidence)
            await self._caching.keep(self._caching.key(node, written), change, node.cache)

    async def _turn(self, step: Step, node: StepNode, written: Mapping[str, Json]) -> Fact:
        sinks = self._around.sinks(self._opened, step.turn, node.name)
        async with self._around.room(self._opened, node.name):
            return await self._steps.turn(step, node, written, sinks)

    def _node(self, step: Step) -> StepNode:
        if step.undoes:
            done = self._undone(step.undoes)
            node = self._plan.node(done.path, done.at)
            found = node.join if isinstance(node, ForkNode) else node
        else:
            found = step_of(self._plan, self._progress.strands[step.strand])
        assert isinstance(found, StepNode)
        return found

    def _undone(self, place: str) -> Any:
        undoing = self._progress.undoing
        assert undoing is not None
        return next(done for done in undoing.left if done.place == place)

    def _about(self, step: Step, node: StepNode) -> About:
        progress, run = self._progress, self._journal.state.run
        undoing = progress.undoing
        strand = progress.strands.get(step.strand)
        handled = strand.failures[-1] if strand and strand.failures else None
        return About(
            run,
            step.node,
            step.attempt,
            f"{run}/s{step.number}/a{step.attempt}",
            undoing.failure if undoing is not None else handled,
            self._results(strand) if strand and not step.undoes else (),
            {**progress.approvals},
        )

    def _results(self, strand: Strand) -> list[PathResult]:
        """How the paths of a fork ended, where a step joins them."""
        place = place_of(self._plan, strand)
        return [
            PathResult(
                child.id.rpartition("/")[2],
                "recovered" if child.failed else "completed",
                self._steps.state(child.state),
                child.failed,
            )
            for child in children(self._progress, strand, place)
        ]

    def _make_up(self, place: str) -> None:
        """Begin to make up for a step."""
        done, number = self._undone(place), self._progress.begun + 1
        node = self._plan.node(done.path, done.at)
        step = node.join if isinstance(node, ForkNode) else node
        assert isinstance(step, StepNode)
        name = getattr(step.compensate, "__name__", type(step.compensate).__name__)
        fact = StepStarted(name, f"{place}~", number, 1, done.strand, undoes=place)
        self._journal.record(f"s{number}/a1?", fact)

    def _place(self, strand: Strand) -> str:
        return place_of(self._plan, strand)

    async def _rest(self) -> bool:
        """Wait while steps are being taken; else say that the run rests. Whether to go on."""
        journal = self._journal
        if self._crew.is_busy:
            await journal.commit()
            await self._crew.wait(self._seconds())
            await self._around.take_in(self._opened)
            return True
        if journal.state.question is None and journal.is_open:
            at = due(journal)
            journal.record(f"rest@{journal.state.position}", RunPaused("", at))
        return False

    def _seconds(self) -> float | None:
        instant = due(self._journal)
        left = instant and (instant - self._journal.clock.now()).total_seconds()
        return None if left is None else max(0.0, left)

    async def _end(self, reason: str) -> None:
        journal, hooks, undoing = self._journal, self._opened.hooks, self._progress.undoing
        await self._halt(self._progress.steps.values())
        if undoing is None:
            await hooks.after_chat("finished")
            journal.record("end", RunFinished(reason))
        elif undoing.cause == CANCELLED:
            await end_cancelled(journal, hooks)
        else:
            await end_failed(journal, hooks)
