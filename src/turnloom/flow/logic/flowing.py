"""What comes next in a flow, from its plan and what a run of it knows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from turnloom.agents.events import QuestionExpired
from turnloom.agents.spec import (
    Agent,
    Decision,
    Finish,
    MakeUp,
    OutputModel,
    Proceed,
    Products,
    Rest,
    RunState,
    Toolkit,
    Transfer,
)
from turnloom.flow.events import (
    ApprovalDecided,
    FlowStopped,
    ForkFailed,
    ForkOpened,
    StepHandled,
    StepRecovered,
)
from turnloom.flow.logic.approvals import decided
from turnloom.flow.logic.endings import CANCELLED, FAILED, TIMED_OUT
from turnloom.flow.logic.folding import Folding
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
from turnloom.flow.spec.progress import Frame, Progress, Strand, Undoing
from turnloom.lifecycle.spec import Hooks, MessageHook
from turnloom.log.spec import Fact
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
        self.folds: Mapping[type, Callable[[Any, Any], None]] = Folding(plan, self.states).folds

    def begin(self) -> Progress:
        """At the beginning of the main path."""
        return Progress({"": Strand("", frames=[Frame(MAIN)])}, {"": None})

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

    def decide(self, state: RunState) -> Decision:
        """What comes next, from the state alone."""
        progress: Progress = state.progress
        for strand in failed(progress):
            if strand.id and self._is_handled(progress, strand):
                return Rest((self._failed(progress, strand),))
        if progress.undoing is not None:
            return self._decide_end(state, progress, progress.undoing)
        stopped = self._stopped(state, progress)
        if stopped is not None:
            return Rest((("stop", stopped), *_unasked(state)))
        return self._decide_onward(state, progress, "the flow is through")

    def _decide_onward(self, state: RunState, progress: Progress, end: str) -> Decision:
        """What comes next in the paths being walked, and at their end."""
        if len(progress.steps) < ABREAST:
            for id in progress.going:
                decision = self._decide_for(state, progress, progress.strands[id])
                if decision is not None:
                    return decision
        return Finish(end) if progress.strands[""].status == "done" else Rest()

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
        fact = ForkFailed(node.name, place, path.id, why.error, why.message, around.id)
        return f"{place}/failed", fact

    def _decide_end(self, state: RunState, progress: Progress, undoing: Undoing) -> Decision:
        """What comes next in a flow that does not go on."""
        if undoing.is_handled:
            if state.cancel is not None or progress.failed:
                return Finish(undoing.cause)
            return self._decide_onward(state, progress, undoing.cause)
        if progress.steps:
            return Rest()
        return MakeUp(undoing.left[0].place) if undoing.left else Finish(undoing.cause)

    def _decide_for(self, state: RunState, progress: Progress, strand: Strand) -> Decision | None:
        if strand.status == "forked" and not strand.open:
            return Proceed(strand.id)
        if strand.status != "ready":
            return None
        is_asking = isinstance(node_of(self.plan, strand), ApprovalNode)
        if is_asking and strand.asking is None and state.question is not None:
            return None  # one person is asked at a time
        return self._go_on(progress, strand)

    def _go_on(self, progress: Progress, strand: Strand) -> Decision:
        """What a strand does with what it has come to; what no code has a say in is a fact."""
        plan, place = self.plan, place_of(self.plan, strand)
        match node_of(plan, strand):
            case None if part_of(plan, strand) == "handler":
                return Rest((self._handled(strand),))
            case ForkNode() as fork if not children(progress, strand, place):
                paths = tuple(f"{place}.{number}" for number in range(len(fork.paths)))
                return Rest(((f"{place}/fork", ForkOpened(fork.name, place, paths, strand.id)),))
            case ApprovalNode() as node if strand.asking and strand.asking.status != "open":
                return Rest((self._decided(strand, node, place),))
            case _:
                return Proceed(strand.id)

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
        fact = decided(node, place, f"{frame.path}/{frame.at}", asked, strand.id)
        return f"{asked.question}/decided", fact


def _unasked(state: RunState) -> Sequence[tuple[str, Fact]]:
    """That nobody waits for the answer to the open question any more."""
    asked = state.question
    return ((f"{asked.id}/expired", QuestionExpired(asked.id, STOPPED)),) if asked else ()


def _told(failure: Any) -> str:
    return f"{failure.error}: {failure.message}"
