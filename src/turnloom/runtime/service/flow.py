"""Flows at work: steps are called, or their agents take turns; code says how strands continue."""

import msgspec

from turnloom.flow.events import StepCompleted, StepSkipped
from turnloom.flow.logic.executions import Past, find_executions
from turnloom.flow.logic.flowing import STOPPED, Flowing
from turnloom.flow.logic.migrating import is_current, migrate
from turnloom.flow.logic.states import Change
from turnloom.flow.logic.walking import children, node_of, place_of, state_of, step_of
from turnloom.flow.spec.nodes import ApprovalNode, BranchNode, ForkNode, StepNode
from turnloom.flow.spec.progress import Done, Progress, Step, Strand
from turnloom.flow.spec.steps import About, AgentStep, Execution, PathResult
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact
from turnloom.runs.actions import Action, Cross, Work
from turnloom.runtime.service.caching import Caching
from turnloom.runtime.service.calls import Waiting
from turnloom.runtime.service.crossings import Crossings
from turnloom.runtime.service.exposing import opened
from turnloom.runtime.service.failures import Failures
from turnloom.runtime.service.live import LiveRun
from turnloom.runtime.service.steps import Steps, completed


class FlowRuntime:
    """The acting half of a flow, for one run."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._journal = live.journal
        form = live.journal.workflow
        assert isinstance(form, Flowing)
        self._form = form
        self._plan = form.plan
        self._steps = Steps(live, form)
        self._failures = Failures(live.journal, form.plan, self._steps, live.means.entropy)
        self._crossings = Crossings(live.journal, form, self._steps)
        self._caching = Caching(live.journal, form, live.means.results)
        self._past: dict[int, Past] = {}

    @property
    def _progress(self) -> Progress:
        return self._journal.state.progress

    async def act(self, action: Action) -> Action | None:
        """Ask the flow's code how a strand continues."""
        assert isinstance(action, Cross), f"a flow does not decide on {action!r}"
        strand = self._progress.strands[action.strand]
        try:
            return await self._cross(strand)
        except Exception as error:  # noqa: BLE001 - whatever code of the flow raises is recorded
            self._failures.crossing(strand, error)
        return None

    async def _cross(self, strand: Strand) -> Action | None:
        match node_of(self._plan, strand):
            case None:
                await self._crossings.pass_loop(strand)
            case BranchNode() as node:
                await self._crossings.branch(strand, node)
            case ForkNode() as node if strand.status == "forked":
                self._crossings.join(strand, node)
            case StepNode() as node:
                return await self._enter(strand, node)
            case ForkNode(join=StepNode() as node):
                return await self._enter(strand, node)
            case ApprovalNode() as node:
                await self._crossings.approve(strand, node)
            case other:
                raise AssertionError(f"a strand does not stay at {other!r}")
        return None

    async def _enter(self, strand: Strand, node: StepNode) -> Action | None:
        """Begin a step, unless its state is not valid or its result is known."""
        if node.validate is not None:
            holds, message = node.validate
            if not await self._crossings.holds(holds, strand):
                self._failures.refuse(strand, node, message)
                return None
        if node.cache is not None and await self._known(strand, node):
            return None
        return self._form.begin_step(self._journal.state, strand, node)

    async def _known(self, strand: Strand, node: StepNode) -> bool:
        """Take the result of a step from the cache; whether it was there."""
        change = await self._caching.find(self._caching.key(node, strand))
        if change is None:
            return False
        place = place_of(self._plan, strand)
        change = change._replace(fields=opened(self._journal, change.fields))
        reduced = self._steps.reduce(strand.state, [change.fields])
        fact = completed(Step(0, place, strand.id, node.name, 0), node, change, reduced)
        self._journal.record(f"{place}/cached", msgspec.structs.replace(fact, cached=True))
        return True

    async def run(self, work: Work) -> None:
        """Take a step to its end, whatever that is."""
        step = self._progress.steps[work.number]
        node = self._node(step)
        try:
            strand = state_of(self._progress, step.strand)
            written = {**strand.state}
            key = self._caching.key(node, strand)  # by what is there before it changes anything
            if step.undoes or not isinstance(node.step, AgentStep):
                await self._journal.commit()  # that it begins is stored before it is called
                about = self._about(step, await self._undone(step))
                made = await self._steps.call(step, node, written, about)
            else:
                sinks = self._live.sinks(step.turn, node.name)
                made = await self._steps.turn(step, node, written, sinks)
            await self._keep(node, key, made)
        except Waiting:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a step raises is recorded
            self._failures.attempt(step, node, error)

    async def cut_off(self, work: Work) -> None:
        """Record that a step was interrupted."""
        step = self._progress.steps[work.number]
        self._steps.settle(step)
        self._steps.cut_off(step, "cancelled", "")
        fact = StepSkipped(step.node, step.place, step.number, STOPPED)
        self._journal.record(f"s{step.number}/skipped", fact)

    async def fail(self, work: Work, error: str) -> None:
        """Record that a step ended itself."""
        step = self._progress.steps[work.number]
        self._failures.attempt(step, self._node(step), RuntimeError(error))

    async def _keep(self, node: StepNode, key: str, made: Fact) -> None:
        """Keep the result of a step for other runs, if it says so."""
        if node.cache is not None and isinstance(made, StepCompleted):
            change = Change(made.update, made.confidence)
            await self._caching.keep(key, change, node.cache.seconds)

    def _node(self, step: Step) -> StepNode:
        if step.undoes:
            return self._form.step_at(self._done(step))
        found = step_of(self._plan, self._progress.strands[step.strand])
        assert isinstance(found, StepNode)
        return found

    def _done(self, step: Step) -> Done:
        """What a step undoes."""
        undoing = self._progress.undoing
        assert undoing is not None
        return next(each for each in undoing.left if each.place == step.undoes)

    async def _undone(self, step: Step) -> Execution | None:
        """The execution that a step undoes, if it undoes one."""
        if not step.undoes:
            return None
        done, run = self._done(step), self._journal.state.run
        if done.number not in self._past:
            undoing = self._progress.undoing
            assert undoing is not None
            events = await self._live.means.log.read(self._journal.run)
            numbers = {each.number for each in undoing.left}
            self._past = find_executions(self._form, events, numbers)
        past, key = self._past[done.number], f"{run}/s{done.number}"
        return Execution(
            self._form.step_at(done).name,
            done.attempt,
            f"{key}/a{done.attempt}",
            key,
            self._steps.state(self._current(past.state)),
            None if past.update is None else self._steps.values(past.update),
        )

    def _current(self, written: dict[str, Json]) -> dict[str, Json]:
        """A state of the past, which an earlier model may have written, as it would be today."""
        states = self._form.states
        if is_current(states, written):
            return written
        return migrate(self._plan, states, written)

    def _about(self, step: Step, undone: Execution | None) -> About:
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
            undone,
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
