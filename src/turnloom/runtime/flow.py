"""Flows at run time: steps, branches, failures and cached results."""

import logging
import math
import traceback
from collections.abc import Sequence
from typing import Any

import msgspec

from turnloom.agents.spec import RunState
from turnloom.errors import InvalidUpdate, PlanChanged, TurnloomError
from turnloom.flow.events import (
    ApprovalDecided,
    BranchTaken,
    ForkJoined,
    LoopEnded,
    LoopPassed,
    PathEnded,
    StateMigrated,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepSkipped,
)
from turnloom.flow.logic.approvals import asking_of, question_to
from turnloom.flow.logic.branches import matching_case
from turnloom.flow.logic.executions import StepExecution, find_executions
from turnloom.flow.logic.flowing import STOPPED, FlowForm, is_given_up
from turnloom.flow.logic.folding import APPROVALS, RETRY
from turnloom.flow.logic.migrating import migrate, migrate_all
from turnloom.flow.logic.plans import step_text
from turnloom.flow.logic.states import StateChange, is_current
from turnloom.flow.logic.walking import (
    children,
    clash,
    decided_by,
    loop_of,
    node_of,
    place_of,
    state_of,
    step_of,
)
from turnloom.flow.ports import Results
from turnloom.flow.spec.nodes import ApprovalNode, BranchNode, FlowPlan, ForkNode, StepNode
from turnloom.flow.spec.progress import CompletedStep, Progress, Step, StepFailure, Strand
from turnloom.flow.spec.steps import AgentStep, Cache, Execution, PathResult, Retry, StepInfo
from turnloom.kernel.digests import digest
from turnloom.kernel.durations import later
from turnloom.kernel.values import Json, as_object, canonical, error_text, writable
from turnloom.log.logic import in_life, standing
from turnloom.log.spec import Fact
from turnloom.runs.actions import Action, Cross, Work
from turnloom.runtime.calls import Waiting, as_json, ask, opened
from turnloom.runtime.drive.live import LiveRun
from turnloom.runtime.journal import Journal, idempotency_key
from turnloom.runtime.ports import Entropy
from turnloom.runtime.steps import Steps, completed, error_parts
from turnloom.runtime.user_code import ask_condition, ask_user_code, without_callers
from turnloom.runtime.world import RUN, RecordedError
from turnloom.variables.events import TimerSet

# Seconds that a condition, a choice or the text of an approval may take.
DEADLINE = 60.0


class Branching:
    """Records which way a run of a flow continues."""

    def __init__(self, journal: Journal, workflow: FlowForm, steps: Steps) -> None:
        self._journal = journal
        self._workflow = workflow
        self._plan = workflow.plan
        self._steps = steps

    async def pass_loop(self, strand: Strand) -> None:
        """Decide whether a loop's body is walked again."""
        loop, frame = loop_of(self._plan, strand)
        place = frame.prefix.rpartition("[")[0]
        held = await self.holds(loop.until, strand)
        passed = LoopPassed(loop.name, place, frame.number, held, strand=strand.id)
        key = f"{place}[{frame.number}]"
        self._journal.record(f"{key}/passed", passed)
        if held or frame.number >= loop.max_iterations:
            reason = "the condition holds" if held else "max_iterations"
            ended = LoopEnded(loop.name, place, frame.number, reason, strand=strand.id)
            self._journal.record(f"{key}/ended", ended)

    async def branch(self, strand: Strand, node: BranchNode) -> None:
        """Take the path for the value of the state."""
        place, frame = place_of(self._plan, strand), strand.frames[-1]
        value = await self.ask(node.on, strand)
        path = f"{frame.path}/{frame.at}"
        label, taken = "", ""
        number = matching_case((case for case, _ in node.cases), value)
        if number is not None:
            label, taken = _word(node.cases[number][0]), f"{path}.{number}"
        elif node.otherwise is not None:
            label, taken = "otherwise", f"{path}.otherwise"
        elif not self._rejoins(strand):
            raise LookupError(f"No path of {node.name!r} is for {value!r}.")
        fact = BranchTaken(node.name, place, _shown(value), taken, case=label, strand=strand.id)
        self._journal.record(f"{place}/branch", fact)

    def _rejoins(self, strand: Strand) -> bool:
        """Whether something follows the current node of a strand."""
        frame = strand.frames[-1]
        return frame.at + 1 < len(self._plan.paths[frame.path].line.nodes)

    def join(self, strand: Strand, node: ForkNode) -> None:
        """Merge the changes of a fork's paths into one state.

        Raises:
            InvalidUpdate: two paths set one field, or the merged state is invalid.
        """
        place, progress = place_of(self._plan, strand), self._journal.state.progress
        found = children(progress, strand, place)
        clash(self._workflow.states, found)
        deltas = [delta for child in found for delta in child.deltas]
        reduced = self._steps.reduce(strand.state, opened(self._journal, deltas))
        ends = tuple(_ended(child) for child in found)
        fact = ForkJoined(node.name, place, ends, reduced, strand=strand.id)
        self._journal.record(f"{place}/join", fact)

    async def approve(self, strand: Strand, node: ApprovalNode) -> None:
        """Ask the approver. A question that is asked again keeps its deadline."""
        asked, place = strand.asking, place_of(self._plan, strand)
        asking = asking_of(node, asked.level if asked else 0)
        words = (
            await self.ask(asking.context, strand) if callable(asking.context) else asking.context
        )
        until = asked.due if asked else None
        if until is None and asking.timeout is not None:
            until = later(self._journal.time.now(), asking.timeout)
        number = (asked.number if asked else 0) + 1
        prompt = writable(str(words)) or f"Do you approve {node.name!r}?"
        id = in_life(f"{APPROVALS}{place}#{number}", self._journal.state.life)
        ask(self._journal, question_to(node, asking, id, prompt, due=until))

    async def ask(self, function: Any, strand: Strand) -> Any:
        """The result of a function of the flow, given the state."""
        state = self._steps.state(strand.state)
        try:
            return await ask_user_code(function, state, deadline=DEADLINE)
        finally:
            await self._journal.world.reach(RUN)

    async def holds(self, condition: Any, strand: Strand) -> bool:
        """Whether a condition of the flow holds for the state."""
        state = self._steps.state(strand.state)
        try:
            return await ask_condition(condition, state, deadline=DEADLINE)
        finally:
            await self._journal.world.reach(RUN)


def _ended(child: Strand) -> PathEnded:
    failed = child.failed
    status = "recovered" if failed else "completed"
    return PathEnded(child.id, status, f"{failed.error}: {failed.message}" if failed else "")


def _word(value: Any) -> str:
    return str(getattr(value, "value", value))


def _shown(value: Any) -> Json:
    """The value that a branch was decided by, as JSON where possible."""
    try:
        return as_json(value)
    except TypeError:
        return error_text(value)


class Failures:
    """Records what fails in a run of a flow."""

    def __init__(self, journal: Journal, plan: FlowPlan, steps: Steps, entropy: Entropy) -> None:
        self._journal = journal
        self._plan = plan
        self._steps = steps
        self._entropy = entropy

    def refuse(self, strand: Strand, node: StepNode, message: str) -> None:
        """Record that a step is not taken, since the state is invalid for it."""
        self._record(strand, node, "ValidationFailed", message, stack="")

    def attempt(self, step: Step, node: StepNode, error: Exception) -> None:
        """Record a failed attempt, and either the next one or the failure of the step."""
        name, message = error_parts(error)
        message = self._journal.secrets.masked(message)
        if step.undoes:
            self._undoing_failed(step, node, name, message)
            return
        self._steps.settle(step)
        self._steps.cut_off(step, "failed", f"{name}: {message}")
        if step.attempt - step.spent <= node.retry.n and self._journal.state.failure is None:
            self._retry(step, node, name, message)
            return
        strand = self._journal.state.progress.strands[step.strand]
        stack = self._stack(error)
        self._record(strand, node, name, message, stack=stack, step=step, error=error)

    def _undoing_failed(self, step: Step, node: StepNode, name: str, message: str) -> None:
        fact = StepCompensated(
            node.name, step.undoes, step.number, step.node, error=name, message=message
        )
        self._journal.record(f"s{step.number}/a{step.attempt}.0", fact)

    def _retry(self, step: Step, node: StepNode, name: str, message: str) -> None:
        seconds = self._delay(node.retry, step.attempt - step.spent)
        at = later(self._journal.time.now(), seconds) if seconds else None
        fact = StepRetried(
            node.name, step.place, step.number, step.attempt, error=name, message=message, due=at
        )
        self._journal.record(f"s{step.number}/a{step.attempt}/again", fact)
        if at is not None:
            timer = f"{RETRY}{step.number}"
            self._journal.record(f"s{step.number}/a{step.attempt}/timer", TimerSet(timer, at))

    def _delay(self, retry: Retry, attempt: int) -> float:
        """Seconds until the next attempt; jitter takes off up to half."""
        seconds = min(retry.delay, retry.max_delay)
        for _ in range(1, attempt):  # multiply step by step: the power itself may overflow
            seconds = min(seconds * retry.factor, retry.max_delay)
        if not retry.jitter:
            return seconds
        return seconds * (1 - self._entropy.below(1000) / 2000)

    def _stack(self, error: Exception) -> str:
        """The traceback of an error of user code, without our frames."""
        if isinstance(error, RecordedError):
            return error.stack
        whole = without_callers(error.__traceback__) or error.__traceback__
        lines = "".join(traceback.format_exception(error.with_traceback(whole)))
        return self._journal.secrets.received(writable(lines)).rstrip()

    def crossing(self, strand: Strand, error: Exception) -> None:
        """Record the failure of a branch, loop, join or approval."""
        name, message = error_parts(error)
        node = step_of(self._plan, strand)
        masked = self._journal.secrets.masked(message)
        self._record(strand, node, name, masked, stack=self._stack(error), error=error)

    def _record(
        self,
        strand: Strand,
        node: StepNode | None,
        name: str,
        message: str,
        stack: str,
        step: Step | None = None,
        error: Exception | None = None,
    ) -> None:
        place = place_of(self._plan, strand)
        number, attempt = (step.number, step.attempt) if step else (0, 0)
        frame = f"t{step.turn}/frame" if step and step.turn else ""
        fact = StepFailed(
            node.name if node else place.rpartition("/")[2],
            place,
            number,
            attempt,
            error=name,
            message=message,
            stack=stack,
            frame=frame,
            strand=strand.id,
            handler=self._handler(strand, node, name, error),
            at=self._journal.time.now(),
            what=decided_by(self._plan, strand),
        )
        id = f"s{number}/failed" if number else f"{place}/wrong"
        self._journal.record(id, fact)

    def _handler(
        self, strand: Strand, node: StepNode | None, name: str, error: Exception | None
    ) -> str:
        """The path that handles a failure: the first one declared for its class or, if a turn
        failed, for its name."""
        if isinstance(error, RecordedError):
            return error.handler
        frame = strand.frames[-1]
        for number, (kind, _) in enumerate(node.on_failure if node else ()):
            is_own = error is not None and isinstance(error, kind)
            if is_own or kind is Exception or kind.__name__ == name:
                return f"{frame.path}/{frame.at}.failed.{number}"
        return ""


log = logging.getLogger("turnloom.flows")


class ResultCache:
    """Step result cache. If the store fails, steps are taken."""

    def __init__(self, journal: Journal, workflow: FlowForm, results: Results) -> None:
        self._journal = journal
        self._workflow = workflow
        self._results = results

    def key(self, node: StepNode, strand: Strand) -> str:
        """The key of a step's result, if it is cached: owner, declaration, code, and everything
        that the step may read, except the run's id."""
        if node.cache is None:
            return ""
        state, shared = self._journal.state, node.cache.shared
        own = {"chat_id", "user_id"} if shared else {"chat_id"}
        variables = {name: value for name, value in state.values.items() if name not in own}
        who = [state.tenant, "" if shared else state.user, shared]
        if state.ephemeral:  # objects of this process cannot be compared with those of others
            who.append(state.run)
        plan = [self._workflow.name, self._workflow.version, step_text(node)]
        return digest(canonical([*who, *plan, strand.state, variables, self._about(node, strand)]))

    def _about(self, node: StepNode, strand: Strand) -> Json:
        """What a step may read beside the state and the variables: decisions, results of the paths
        it joins, earlier failures, and its thread."""
        progress: Progress = self._journal.state.progress
        paths = children(progress, strand, place_of(self._workflow.plan, strand))
        joined = [[path.state, _failed(path.failed)] for path in paths]
        failures = [_failed(each) for each in strand.failures[-1:]]
        thread = getattr(node.step, "thread", None)
        return [progress.approvals, joined, failures, progress.threads.get(thread or "", ())]

    async def find(self, key: str) -> StateChange | None:
        """The cached result, if it has not expired."""
        tenant, now = self._journal.run.tenant, self._journal.clock.now()
        try:
            found = as_object(await self._results.find(tenant, key, now))
        except TurnloomError as error:
            log.warning("a result cannot be looked for: %s", error)
            return None
        if found is None:
            return None
        update: Any = found["update"]
        confidence: Any = found["confidence"]
        return StateChange(update, confidence)

    async def keep(self, key: str, change: StateChange, cache: Cache) -> None:
        """Store the result of a step, for its user unless it is shared."""
        tenant, now = self._journal.run.tenant, self._journal.clock.now()
        until = None if math.isinf(cache.seconds) else later(now, cache.seconds)
        user = "" if cache.shared else self._journal.state.user
        value: dict[str, Json] = {"update": change.fields, "confidence": change.confidence}
        try:
            await self._results.keep(tenant, key, value, now=now, until=until, user=user)
        except TurnloomError as error:
            log.warning("a result cannot be kept: %s", error)


def _failed(failure: StepFailure | None) -> Json:
    """A failure without its time and place, which differ from run to run."""
    return failure and [failure.step, failure.error, failure.message, failure.what]


class FlowRuntime:
    """The acting half of a flow, for one run."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._journal = live.journal
        form = live.journal.workflow
        assert isinstance(form, FlowForm)
        self._form = form
        self._plan = form.plan
        self._steps = Steps(live, form)
        self._failures = Failures(live.journal, form.plan, self._steps, live.means.entropy)
        self._crossings = Branching(live.journal, form, self._steps)
        self._caching = ResultCache(live.journal, form, live.means.results)
        self._past: dict[int, StepExecution] = {}
        # Results from before a retry, by their positions in the log.
        self._kept: dict[int, Fact] = {}

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
            case _ if place_of(self._plan, strand) in self._progress.kept:
                await self._take_over(strand)
            case StepNode() as node:
                return await self._enter(strand, node)
            case ForkNode(join=StepNode() as node):
                return await self._enter(strand, node)
            case ApprovalNode() as node:
                await self._crossings.approve(strand, node)
            case other:
                raise AssertionError(f"a strand does not stay at {other!r}")
        return None

    async def _take_over(self, strand: Strand) -> None:
        """Record again how a step or an approval ended before a retry."""
        place = place_of(self._plan, strand)

        async def effect() -> Sequence[Fact]:
            if not self._kept:
                events = await self._live.means.log.read(self._journal.run)
                seqs = {*self._progress.kept.values()}
                self._kept = {each.seq: each.data for each in events if each.seq in seqs}
            return (self._kept[self._progress.kept[place]],)

        (fact,) = await self._journal.perform(f"{place}/kept", effect)
        assert isinstance(fact, StepCompleted | StepFailed | ApprovalDecided)
        if isinstance(fact, StepCompleted):
            fields = opened(self._journal, fact.update)
            reduced = self._steps.reduce(strand.state, [fields])
            fact = msgspec.structs.replace(fact, update=fields, reduced=reduced)
        self._journal.record(f"{place}/kept", msgspec.structs.replace(fact, kept=True))

    async def _enter(self, strand: Strand, node: StepNode) -> Action | None:
        """Begin a step, unless its state is invalid or its result is cached."""
        if node.validate is not None:
            holds, message = node.validate
            if not await self._crossings.holds(holds, strand):
                self._failures.refuse(strand, node, message)
                return None
        if node.cache is not None and await self._known(strand, node):
            return None
        return self._form.begin_step(self._journal.state, strand, node)

    async def _known(self, strand: Strand, node: StepNode) -> bool:
        """Take the result of a step from the cache; returns whether it was there."""
        place = place_of(self._plan, strand)
        step = Step(0, place, strand.id, node.name, attempt=0)

        async def effect() -> Sequence[Fact]:
            change = await self._caching.find(self._caching.key(node, strand))
            return () if change is None else (completed(step, node, change, {}),)

        found = await self._journal.perform(f"{place}/cached", effect)
        if not found:
            return False
        (known,) = found
        assert isinstance(known, StepCompleted)
        fields = opened(self._journal, known.update)
        reduced = self._steps.reduce(strand.state, [fields])
        fact = completed(step, node, StateChange(fields, known.confidence), reduced)
        self._journal.record(f"{place}/cached", msgspec.structs.replace(fact, cached=True))
        return True

    async def run(self, work: Work) -> None:
        """Take a step to its end."""
        step = self._progress.steps[work.number]
        node = self._node(step)
        try:
            strand = state_of(self._progress, step.strand)
            written = {**strand.state}
            key = self._caching.key(node, strand)  # keyed by the state before the step changes it
            if step.undoes or not isinstance(node.step, AgentStep):
                await self._journal.commit()  # store that it begins before it is called
                about = self._about(step, await self._undone(step))
                made = await self._steps.call(step, node, written, about)
            else:
                with self._live.sinks(step.turn, node.name) as sinks:
                    made = await self._steps.turn(step, node, written, sinks)
            await self._keep(node, key, made)
        except Waiting:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a step raises is recorded
            await self._journal.world.reach(work.key)
            if is_given_up(self._progress, step):
                await self.cut_off(work)
            else:
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
        """Cache the result of a step, if it declares that."""
        if (cache := node.cache) is not None and isinstance(made, StepCompleted):
            change = StateChange(made.update, made.confidence)
            await self._journal.world.send(lambda: self._caching.keep(key, change, cache))

    def _node(self, step: Step) -> StepNode:
        if step.undoes:
            return self._form.step_at(self._done(step))
        found = step_of(self._plan, self._progress.strands[step.strand])
        assert isinstance(found, StepNode)
        return found

    def _done(self, step: Step) -> CompletedStep:
        """The completed step that a step compensates."""
        undoing = self._progress.undoing
        assert undoing is not None
        return next(each for each in undoing.left if each.place == step.undoes)

    async def _undone(self, step: Step) -> Execution | None:
        """The execution that a step compensates, if it compensates one."""
        if not step.undoes:
            return None
        done = self._done(step)
        if done.number not in self._past:
            undoing = self._progress.undoing
            assert undoing is not None
            events = await self._live.means.log.read(self._journal.run)
            numbers = {each.number for each in undoing.left}
            self._past = find_executions(self._form, standing(events), numbers)
        past = self._past[done.number]
        key = f"{self._journal.state.run}/{in_life(f's{done.number}', past.life)}"
        return Execution(
            self._form.step_at(done).name,
            done.attempt,
            f"{key}/a{done.attempt}",
            key,
            state=self._steps.state(self._current(past.state)),
            result=None if past.update is None else self._steps.values(past.update),
        )

    def _current(self, written: dict[str, Json]) -> dict[str, Json]:
        """A past state, migrated to the present model."""
        states = self._form.states
        if is_current(states, written):
            return written
        return migrate(self._plan, states, written)

    def _about(self, step: Step, undone: Execution | None) -> StepInfo:
        progress, run = self._progress, self._journal.state.run
        undoing = progress.undoing
        strand = progress.strands.get(step.strand)
        handled = strand.failures[-1] if strand and strand.failures else None
        return StepInfo(
            run,
            step.node,
            step.attempt,
            f"{idempotency_key(self._journal, f's{step.number}')}/a{step.attempt}",
            failure=undoing.failure if undoing is not None else handled,
            paths=self._results(strand) if strand and not step.undoes else (),
            approvals={**progress.approvals},
            undoes=undone,
        )

    def _results(self, strand: Strand) -> list[PathResult]:
        """The results of a fork's paths, for the step that joins them."""
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


# Timeout of the migration of a run's states, in seconds.
MIGRATION = 60.0


async def migrate_states(form: FlowForm, state: RunState) -> list[tuple[str, Fact]]:
    """Convert the states of a run to the current model.

    Raises:
        PlanChanged: a state cannot be converted.
    """
    try:
        found = await ask_user_code(
            migrate_all, form.plan, form.states, state.progress, deadline=MIGRATION
        )
    except InvalidUpdate as error:
        raise PlanChanged(f"The state of flow {form.name!r} has changed. {error}") from error
    return [(f"migrated@{state.position}", StateMigrated(found))] if found else []
