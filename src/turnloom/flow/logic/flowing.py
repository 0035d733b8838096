"""The form of flows: decides the next step from the plan and the state."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from turnloom.agents.events import QuestionExpiredFact, TurnStarted
from turnloom.agents.spec import (
    Agent,
    Failure,
    OpenTurn,
    OutputModel,
    Products,
    RunState,
    Toolkit,
    Transfer,
)
from turnloom.flow.events import (
    ApprovalDecided,
    FlowRewound,
    FlowStopped,
    ForkFailed,
    ForkOpened,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepHandled,
    StepRecovered,
    StepSkipped,
    StepStarted,
)
from turnloom.flow.logic.approvals import decided
from turnloom.flow.logic.endings import CANCELLED, FAILED, TIMED_OUT
from turnloom.flow.logic.fitting import misplaced_in
from turnloom.flow.logic.folding import APPROVALS, Folding
from turnloom.flow.logic.retrying import redo_flow
from turnloom.flow.logic.states import StateModel
from turnloom.flow.logic.walking import (
    children,
    failed,
    first_progress,
    is_handled,
    node_of,
    part_of,
    place_of,
)
from turnloom.flow.spec.nodes import ApprovalNode, FlowPlan, ForkNode, StepNode
from turnloom.flow.spec.progress import (
    CompensationState,
    CompletedStep,
    Progress,
    Step,
    Strand,
)
from turnloom.flow.spec.steps import AgentStep
from turnloom.hooks.spec import Hooks, MessageHook
from turnloom.log.spec import Event, Fact
from turnloom.runs.actions import Action, Begin, Cross, Facts, Finish, Record, Work
from turnloom.runs.form import Rest
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

# The maximum number of concurrent steps of one run.
ABREAST = 64

# The reason recorded for whatever a stop of the flow cuts off.
STOPPED = "the flow was stopped"


@dataclass(frozen=True, slots=True)
class FlowParts:
    """The declarations of a flow in addition to its steps: agents, outputs, variables, hooks and
    tools."""

    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    outputs: Mapping[str, OutputModel] = field(default_factory=dict[str, OutputModel])
    variables: Variables = Variables()
    triggers: Triggers = field(default_factory=lambda: Triggers({}))
    hooks: Hooks = field(default_factory=dict[Any, Any])
    toolkit: Toolkit = field(default_factory=Toolkit)


class FlowForm:
    """The form of a flow's runs."""

    form = "flow"
    has_people = True
    hears = False
    products: Mapping[str, Products] = {}
    message_hooks: tuple[MessageHook, ...] = ()
    progress = Progress

    def __init__(self, plan: FlowPlan, around: FlowParts) -> None:
        self.plan = plan
        self.name = plan.name
        self.version = plan.version
        self.states = StateModel(plan.state)
        self.agents = around.agents
        self.outputs = around.outputs
        self.variables = around.variables
        self.triggers = around.triggers
        self.hooks = around.hooks
        self.toolkit = around.toolkit
        self._folding = Folding(plan, self.states)
        self.folds: Mapping[type, Callable[[Any, Any], None]] = self._folding.folds
        self.redo = partial(redo_flow, plan, self.folds)
        self.misplaced = partial(misplaced_in, plan, self.folds, self.states)

    def begin(self) -> Progress:
        """The progress at the start of the main path."""
        return first_progress()

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold an event into the progress of the flow, and into the open steps."""
        fact = event.data
        fold = self.folds.get(fact.__class__)
        if fold is not None:
            fold(state.progress, fact)
        shared = _SHARED.get(fact.__class__)
        if shared is not None:
            shared(state, fact)

    def work(self, state: RunState) -> Sequence[Work]:
        """The open steps, those to be cut off included."""
        progress: Progress = state.progress
        if not progress.steps:
            return ()
        is_alone = len(progress.strands) == 1 and not (state.timers or state.questions)
        found: list[Work] = []
        for number, step in progress.steps.items():
            is_over = _is_over(progress, step)
            if is_over or _is_busy(progress, step):
                agent = step.node if step.turn else ""
                found.append(
                    Work(f"s{number}", number, agent, step.turn, is_over=is_over, is_alone=is_alone)
                )
        return found

    def rest(self, state: RunState) -> Rest:
        """What an idle run waits for: nothing of the form's own."""
        return Rest()

    def shows(self, agent: str) -> bool:
        """Whether the user sees this agent's messages: in a flow, always."""
        return True

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another: none, a step has its own."""
        return ()

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose: in a flow, none."""
        return ()

    def due(self, state: RunState) -> datetime | None:
        """The next deadline: none, a flow waits with timers."""
        return None

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """The facts of passed deadlines: none, timers record them."""
        return ()

    def decide(self, state: RunState) -> Action | None:
        """The next action, from the state alone."""
        progress: Progress = state.progress
        for strand in failed(progress):
            if strand.id and self._is_handled(progress, strand):
                return Record((self._failed(progress, strand),))
        if state.questions and (orphaned := self._orphaned(state, progress)):
            return Record(unasked(orphaned))
        if progress.undoing is not None:
            return self._decide_end(state, progress, progress.undoing)
        stop = self._stopped(state, progress)
        if stop is not None:
            return Record((("stop", stop), *unasked(state.questions)))
        return self._decide_onward(state, progress, Finish(reason="the flow is complete"))

    def _decide_onward(self, state: RunState, progress: Progress, end: Finish) -> Action | None:
        """The next action in the open paths, and at their end."""
        if len(progress.steps) < ABREAST:
            for id in progress.going:
                action = self._decide_for(state, progress, progress.strands[id])
                if action is not None:
                    return action
        return end if progress.strands[""].status == "done" else None

    def _orphaned(self, state: RunState, progress: Progress) -> list[str]:
        """The questions of approvals in paths that were abandoned."""
        approvals = [id for id in state.questions if id.startswith(APPROVALS)]
        return [id for id in approvals if self._folding.asking(progress, id) is None]

    def _stopped(self, state: RunState, progress: Progress) -> FlowStopped | None:
        """Why the flow must stop, if it must."""
        if state.cancel is not None:
            return FlowStopped(CANCELLED, CANCELLED, state.cancel.reason)
        if state.failure is not None:
            return FlowStopped(state.failure.error, state.failure.error, state.failure.message)
        if progress.is_late:
            seconds = f"{self.plan.timeout:g}"
            return FlowStopped(TIMED_OUT, TIMED_OUT, f"The run took over {seconds} s.")
        for strand in failed(progress):
            failure = strand.failed
            assert failure is not None
            what = failure.what or f"step {failure.step}"
            return FlowStopped(FAILED, f"{what} failed", f"{failure.error}: {failure.message}")
        return None

    def _is_handled(self, progress: Progress, path: Strand) -> bool:
        return is_handled(self.plan, progress, progress.strands[path.parent])

    def _failed(self, progress: Progress, path: Strand) -> tuple[str, Fact]:
        """The fact that a fork failed because of one of its paths."""
        around, why = progress.strands[path.parent], path.failed
        node, place = node_of(self.plan, around), place_of(self.plan, around)
        assert node is not None and why is not None
        fact = ForkFailed(
            node.name, place, path.id, why.error, message=why.message, strand=around.id
        )
        return f"{place}/failed", fact

    def _decide_end(
        self, state: RunState, progress: Progress, undoing: CompensationState
    ) -> Action | None:
        """The next action in a flow that was stopped."""
        status = "cancelled" if undoing.cause == CANCELLED else "failed"
        end = Finish(status, at_once=True)
        if undoing.is_handled:
            if state.cancel is not None or progress.failed:
                return end
            return self._decide_onward(state, progress, end)
        if progress.steps:
            return None
        return self._undo(progress, undoing.left[0]) if undoing.left else end

    def _undo(self, progress: Progress, done: CompletedStep) -> Begin:
        """Begin the compensation of a step."""
        number, step = progress.begun + 1, self.step_at(done)
        name = getattr(step.compensate, "__name__", type(step.compensate).__name__)
        place = done.place
        fact = StepStarted(name, f"{place}~", number, 1, strand=done.strand, undoes=place)
        return Begin("", ((f"s{number}/a1?", fact),), name)

    def step_at(self, done: CompletedStep) -> StepNode:
        """The step that was completed at a place."""
        node = self.plan.node(done.path, done.at)
        step = node.join if isinstance(node, ForkNode) else node
        assert isinstance(step, StepNode)
        return step

    def _decide_for(self, state: RunState, progress: Progress, strand: Strand) -> Action | None:
        if strand.status == "forked" and not strand.open:
            return Cross(strand.id)
        if strand.status != "ready":
            return None
        return self._advance(state, progress, strand)

    def _advance(self, state: RunState, progress: Progress, strand: Strand) -> Action:
        """The next action of a strand at its node; without user code, a fact."""
        plan, place = self.plan, place_of(self.plan, strand)
        match node_of(plan, strand):
            case None if part_of(plan, strand) == "handler":
                return Record((self._handled(strand),))
            case ForkNode() as fork if not children(progress, strand, place):
                paths = tuple(f"{place}.{number}" for number in range(len(fork.paths)))
                return Record(((f"{place}/fork", ForkOpened(fork.name, place, paths, strand.id)),))
            case ApprovalNode() as node if strand.asking and strand.asking.status != "open":
                return Record((self._decided(strand, node, place),))
            case StepNode() | ForkNode() if place in progress.kept:
                return Cross(strand.id)
            case StepNode() as node if not _is_crossed(strand, node):
                return self.begin_step(state, strand, node)
            case ForkNode(join=StepNode() as node) if not _is_crossed(strand, node):
                return self.begin_step(state, strand, node)
            case _:
                return Cross(strand.id)

    def begin_step(self, state: RunState, strand: Strand, node: StepNode) -> Begin:
        """Begin a step, or the next attempt of one."""
        progress: Progress = state.progress
        number, attempt = strand.step or progress.begun + 1, strand.attempt + 1
        is_agent = isinstance(node.step, AgentStep)
        turn = state.turns + 1 if is_agent else 0
        place = place_of(self.plan, strand)
        fact = StepStarted(node.name, place, number, attempt, strand=strand.id, turn=turn)
        opens: Facts = ((f"s{number}/a{attempt}?", fact),)
        if is_agent:
            opens = (*opens, (f"t{turn}", TurnStarted(turn, node.name)))
        return Begin(charge_of(number, attempt, turn), opens, node.name)

    def _handled(self, strand: Strand) -> tuple[str, Fact]:
        """The fact that a failure was handled."""
        failure, frame = strand.failures[-1], strand.frames[-1]
        placed = self.plan.paths[frame.path]
        node = self.plan.node(placed.owner, placed.at)
        step = node.join if isinstance(node, ForkNode) else node
        assert isinstance(step, StepNode)
        kind = StepRecovered if step.recover else StepHandled
        place = frame.prefix.removesuffix("!/")
        return f"{place}/handled", kind(failure.step, place, strand.id)

    def _decided(
        self, strand: Strand, node: ApprovalNode, place: str
    ) -> tuple[str, ApprovalDecided]:
        frame, asked = strand.frames[-1], strand.asking
        assert asked is not None
        fact = decided(node, place, f"{frame.path}/{frame.at}", asked, strand=strand.id)
        return f"{asked.question}/decided", fact


def _on_started(state: RunState, fact: StepStarted) -> None:
    state.status, state.begun = "running", True
    if f"s{fact.number}" not in state.scopes:
        state.scopes[f"s{fact.number}"] = OpenTurn(fact.number, fact.step, life=state.life)


def _on_ended(
    state: RunState, fact: StepCompleted | StepFailed | StepSkipped | StepCompensated
) -> None:
    state.scopes.pop(f"s{fact.number}", None)
    state.status = "running"


def _on_stopped(state: RunState, fact: FlowStopped) -> None:
    state.status, state.unguarded = "running", True
    if state.cancel is None and state.failure is None:
        state.failure = Failure(fact.error, fact.message)


def _on_rewound(state: RunState, fact: FlowRewound) -> None:
    """Close the steps that begin anew, and their turns."""
    for scope in fact.undone:
        closed = state.scopes.pop(scope, None)
        if closed is not None and scope.startswith("t"):
            state.open.pop(closed.number, None)


# The folds of facts into the state that every form shares.
_SHARED: dict[type, Callable[[RunState, Any], None]] = {
    StepStarted: _on_started,
    StepCompleted: _on_ended,
    StepFailed: _on_ended,
    StepSkipped: _on_ended,
    StepCompensated: _on_ended,
    FlowStopped: _on_stopped,
    FlowRewound: _on_rewound,
}


def charge_of(number: int, attempt: int, turn: int) -> str:
    """The key that an attempt of a step is charged to: the turn of its agent, or its own."""
    return f"t{turn}" if turn else f"s{number}/a{attempt}"


def _is_crossed(strand: Strand, node: StepNode) -> bool:
    """Whether user code or the cache is asked before a step begins for the first time."""
    return not strand.step and (node.validate is not None or node.cache is not None)


def _is_over(progress: Progress, step: Step) -> bool:
    """Whether the strand of a step has ended or was stopped."""
    undoing = progress.undoing
    if undoing is not None and step.number <= undoing.begun:
        return True
    return is_given_up(progress, step)


def is_given_up(progress: Progress, step: Step) -> bool:
    """Whether the fork that a step belongs to has failed."""
    return not step.undoes and step.strand not in progress.strands


def _is_busy(progress: Progress, step: Step) -> bool:
    """Whether a step is running, and not waiting for its next attempt."""
    strand = progress.strands.get(step.strand)
    return bool(step.undoes) or (strand is not None and strand.status == "busy")


def unasked(questions: Iterable[str]) -> Facts:
    """The facts that questions expired because the flow was stopped."""
    return tuple((f"{id}/expired", QuestionExpiredFact(id, STOPPED)) for id in questions)
