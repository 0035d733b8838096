"""What comes next in a flow, from its plan and what a run of it knows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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
from turnloom.flow.logic.folding import APPROVALS, Folding
from turnloom.flow.logic.states import StateModel
from turnloom.flow.logic.walking import (
    MAIN,
    children,
    failed,
    is_handled,
    node_of,
    part_of,
    place_of,
)
from turnloom.flow.spec.nodes import ApprovalNode, FlowPlan, ForkNode, StepNode
from turnloom.flow.spec.progress import CompletedStep, Frame, Progress, Step, Strand, Undoing
from turnloom.flow.spec.steps import AgentStep
from turnloom.hooks.spec import Hooks, MessageHook
from turnloom.log.spec import Event, Fact
from turnloom.runs.actions import Action, Begin, Cross, Facts, Finish, Record, Work
from turnloom.runs.form import Rest
from turnloom.variables.logic.derivation import Triggers
from turnloom.variables.spec import Variables

# How many steps of one run are taken side by side at most.
ABREAST = 64

# What is said of what is cut off when a flow does not go on.
STOPPED = "the flow does not go on"


@dataclass(frozen=True, slots=True)
class Around:
    """What a flow declares beside its steps: variables, hooks, and its agents with their tools."""

    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    outputs: Mapping[str, OutputModel] = field(default_factory=dict[str, OutputModel])
    variables: Variables = Variables()
    triggers: Triggers = field(default_factory=lambda: Triggers({}))
    hooks: Hooks = field(default_factory=dict[Any, Any])
    toolkit: Toolkit = field(default_factory=Toolkit)


class Flowing:
    """A flow as something that decides what comes next."""

    form = "flow"
    has_people = True
    products: Mapping[str, Products] = {}
    message_hooks: tuple[MessageHook, ...] = ()
    progress = Progress

    def __init__(self, plan: FlowPlan, around: Around) -> None:
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

    def begin(self) -> Progress:
        """At the beginning of the main path."""
        return Progress({"": Strand("", frames=[Frame(MAIN)])}, {"": None})

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold an event into where the flow stands, and into the steps that are open."""
        fact = event.data
        fold = self.folds.get(fact.__class__)
        if fold is not None:
            fold(state.progress, fact)
        shared = _SHARED.get(fact.__class__)
        if shared is not None:
            shared(state, fact)

    def work(self, state: RunState) -> Sequence[Work]:
        """The steps that are being taken, those that are to be cut off among them."""
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
        """It collects nothing, and does not continue by itself."""
        return Rest()

    def shows(self, agent: str) -> bool:
        """Whether the user sees what this agent says: in a flow, everything."""
        return True

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another: none, a step has its own."""
        return ()

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose: in a flow, none."""
        return ()

    def due(self, state: RunState) -> datetime | None:
        """When something is overdue: what a flow waits for has timers."""
        return None

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """What is to be put on record because its time has come: timers say it."""
        return ()

    def decide(self, state: RunState) -> Action | None:
        """What comes next, from the state alone."""
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
        return self._decide_onward(state, progress, Finish(reason="the flow is through"))

    def _decide_onward(self, state: RunState, progress: Progress, end: Finish) -> Action | None:
        """What comes next in the paths being walked, and at their end."""
        if len(progress.steps) < ABREAST:
            for id in progress.going:
                action = self._decide_for(state, progress, progress.strands[id])
                if action is not None:
                    return action
        return end if progress.strands[""].status == "done" else None

    def _orphaned(self, state: RunState, progress: Progress) -> list[str]:
        """The questions of approvals on paths that are not walked any more."""
        approvals = [id for id in state.questions if id.startswith(APPROVALS)]
        return [id for id in approvals if self._folding.asking(progress, id) is None]

    def _stopped(self, state: RunState, progress: Progress) -> FlowStopped | None:
        """Why the flow is not to go on, if it is not."""
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
            return FlowStopped(FAILED, f"{what} failed", _told(failure))
        return None

    def _is_handled(self, progress: Progress, path: Strand) -> bool:
        return is_handled(self.plan, progress, progress.strands[path.parent])

    def _failed(self, progress: Progress, path: Strand) -> tuple[str, Fact]:
        """That a fork is not joined, since a path of it failed."""
        around, why = progress.strands[path.parent], path.failed
        node, place = node_of(self.plan, around), place_of(self.plan, around)
        assert node is not None and why is not None
        fact = ForkFailed(
            node.name, place, path.id, why.error, message=why.message, strand=around.id
        )
        return f"{place}/failed", fact

    def _decide_end(self, state: RunState, progress: Progress, undoing: Undoing) -> Action | None:
        """What comes next in a flow that stops early."""
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
        """Begin to make up for a step."""
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
        """What a strand does with what it has come to; what no code has a say in is a fact."""
        plan, place = self.plan, place_of(self.plan, strand)
        match node_of(plan, strand):
            case None if part_of(plan, strand) == "handler":
                return Record((self._handled(strand),))
            case ForkNode() as fork if not children(progress, strand, place):
                paths = tuple(f"{place}.{number}" for number in range(len(fork.paths)))
                return Record(((f"{place}/fork", ForkOpened(fork.name, place, paths, strand.id)),))
            case ApprovalNode() as node if strand.asking and strand.asking.status != "open":
                return Record((self._decided(strand, node, place),))
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
        """That a failure was handled."""
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
        state.scopes[f"s{fact.number}"] = OpenTurn(fact.number, fact.step)


def _on_ended(
    state: RunState, fact: StepCompleted | StepFailed | StepSkipped | StepCompensated
) -> None:
    state.scopes.pop(f"s{fact.number}", None)
    state.status = "running"


def _on_stopped(state: RunState, fact: FlowStopped) -> None:
    state.status, state.unguarded = "running", True
    if state.cancel is None and state.failure is None:
        state.failure = Failure(fact.error, fact.message)


# How facts of a flow change what every run knows.
_SHARED: dict[type, Callable[[RunState, Any], None]] = {
    StepStarted: _on_started,
    StepCompleted: _on_ended,
    StepFailed: _on_ended,
    StepSkipped: _on_ended,
    StepCompensated: _on_ended,
    FlowStopped: _on_stopped,
}


def charge_of(number: int, attempt: int, turn: int) -> str:
    """What an attempt of a step is charged to: the turn of its agent, or itself."""
    return f"t{turn}" if turn else f"s{number}/a{attempt}"


def _is_crossed(strand: Strand, node: StepNode) -> bool:
    """Whether code has a say before a step begins for the first time."""
    return not strand.step and (node.validate is not None or node.cache is not None)


def _is_over(progress: Progress, step: Step) -> bool:
    """Whether the line of work does not continue that a step belongs to."""
    undoing = progress.undoing
    if undoing is not None and step.number <= undoing.begun:
        return True
    return not step.undoes and step.strand not in progress.strands


def _is_busy(progress: Progress, step: Step) -> bool:
    """Whether a step is being taken, not waiting for its next attempt."""
    strand = progress.strands.get(step.strand)
    return bool(step.undoes) or (strand is not None and strand.status == "busy")


def unasked(questions: Iterable[str]) -> Facts:
    """That the answers to questions are not waited for any more."""
    return tuple((f"{id}/expired", QuestionExpiredFact(id, STOPPED)) for id in questions)


def _told(failure: Any) -> str:
    return f"{failure.error}: {failure.message}"
