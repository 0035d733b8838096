"""Progress and outcome of a flow's run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal

import msgspec
from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.agents.spec import Question
from turnloom.assembly.spec import Message
from turnloom.errors import FlowError
from turnloom.kernel.markup import grid, visible
from turnloom.kernel.values import Json, preview


class StepFailure(msgspec.Struct, frozen=True):
    """Failure of a step after its last attempt: when, at which attempt, and the frame of its agent;
    `what` names what failed if it was not a step, such as the condition of a loop."""

    step: str
    error: str
    message: str
    stack: str = ""
    at: datetime | None = None
    attempt: int = 0
    frame: str = ""
    what: str = ""


class DecisionRecord(msgspec.Struct, frozen=True):
    """Result of an approval: `approved`, `rejected` or `expired`, who decided, and their
    instructions; `option` is the chosen option."""

    approver: str
    outcome: str
    option: str = ""
    instructions: str = ""
    by: str = ""


class Frame(msgspec.Struct):
    """An open path: its id, the index in it, the prefix of places in it, and the pass of a loop."""

    path: str
    at: int = 0
    prefix: str = ""
    number: int = 0


class OpenApproval(msgspec.Struct):
    """An open approval: the escalation level, the question, how often it was asked, the deadline,
    and the answer."""

    level: int = 0
    question: str = ""
    number: int = 0
    due: datetime | None = None
    answer: Json = None
    by: str = ""
    status: str = "open"


class Strand(msgspec.Struct):
    """A line of execution in a run: the flow itself, or a path of a fork.

    `frames` are the open paths, innermost last. `status` is `ready`, `busy` (a step is open),
    `waiting` (for a time or a person), `forked`, `done` or `failed`. A path of a fork has its own
    `state`, and `deltas` to be joined. `paths` are the strands of its fork, of which `open` have
    not ended.
    """

    id: str
    parent: str = ""
    frames: list[Frame] = []
    status: str = "ready"
    state: dict[str, Json] = {}
    deltas: list[dict[str, Json]] = []
    step: int = 0
    attempt: int = 0
    failures: list[StepFailure] = []
    failed: StepFailure | None = None
    broken: "CompletedStep | None" = None
    asking: "OpenApproval | None" = None
    paths: list[str] = []
    open: int = 0


class CompletedStep(msgspec.Struct, frozen=True):
    """A step that completed, or at least had an effect, and that can be compensated; `number` and
    `attempt` identify the execution."""

    place: str
    strand: str
    path: str
    at: int
    number: int
    attempt: int


class Step(msgspec.Struct):
    """An open step; `turn` is that of its agent. `acted` means that it has a recorded effect;
    `done` is used to compensate it if it is cut off. `spent` attempts were made before the run was
    retried, and do not count."""

    number: int
    place: str
    strand: str
    node: str
    attempt: int
    turn: int = 0
    undoes: str = ""
    acted: bool = False
    done: CompletedStep | None = None
    spent: int = 0


class OpenNode(msgspec.Struct):
    """What was open at a place when the flow was rewound: a step, or an approval, and the status of
    its strand."""

    status: str
    step: Step | None = None
    asking: OpenApproval | None = None


class CompensationState(msgspec.Struct):
    """Compensation of a stopped run: the failure and cause, the last step before it, the steps left
    to compensate, in order, and whether the flow's path for failures has begun."""

    failure: StepFailure
    cause: str
    begun: int
    left: list[CompletedStep] = []
    is_handled: bool = False


class Progress(msgspec.Struct):
    """The flow's part of a run's state.

    `going` and `failed` index the strands that have not ended, and those that failed, so that the
    next action is found without visiting all strands. After a flow was rewound, `kept` has the
    positions of results and decisions that are taken over at their places, and `left` what was open
    there.
    """

    strands: dict[str, Strand] = {}
    going: dict[str, None] = {}
    failed: list[str] = []
    steps: dict[int, Step] = {}
    begun: int = 0
    completed: list[CompletedStep] = []
    approvals: dict[str, DecisionRecord] = {}
    threads: dict[str, list[Message]] = {}
    undoing: CompensationState | None = None
    is_late: bool = False
    kept: dict[str, int] = {}
    left: dict[str, OpenNode] = {}


S_co = TypeVar("S_co", bound=BaseModel, default=BaseModel, covariant=True)

OutcomeStatus = Literal["finished", "failed", "cancelled", "waiting"]


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Generic[S_co]):
    """Result of a flow's run: `finished`, `failed`, `cancelled`, or `waiting` for an answer to its
    `questions`; its state, and the failure."""

    run_id: str
    status: OutcomeStatus
    state: S_co
    failure: StepFailure | None = None
    questions: tuple[Question, ...] = ()

    @property
    def question(self) -> Question | None:
        """The oldest open question."""
        return self.questions[0] if self.questions else None

    def __repr__(self) -> str:
        return visible(f"<Outcome of run {self.run_id}: {self._status_text}; {self.state!r}>")

    def _repr_html_(self) -> str:
        rows = [(name, preview(value)) for name, value in self.state]
        return grid(f"Run {self.run_id}: {self._status_text}", ("field", "value"), rows)

    @property
    def _status_text(self) -> str:
        """The status of the run, in words."""
        if self.questions and self.status == "waiting":
            asked = [f"{each.to or 'a person'}: {each.prompt}" for each in self.questions]
            return "waiting for " + "; ".join(each.rstrip(": ") for each in asked)
        if self.failure is None:
            return self.status
        where = self.failure.what or f"step {self.failure.step!r}"
        return f"{self.status} in {where}: {self.failure.error}: {self.failure.message}"


class FlowFailed(FlowError):
    """A run of a flow failed, or was cancelled; `outcome` has its result."""

    code = "TURNLOOM-FLOW-FAILED"

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome
