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
    """Why a step failed for good: at which attempt, when, and which frame its agent was shown;
    `what` says what failed where that was no step, such as the condition of a loop."""

    step: str
    error: str
    message: str
    stack: str = ""
    at: datetime | None = None
    attempt: int = 0
    frame: str = ""
    what: str = ""


class Decided(msgspec.Struct, frozen=True):
    """What came of an approval: `approved`, `rejected` or `expired`, by whom and with what to be
    kept in mind; `option` is what was chosen."""

    approver: str
    outcome: str
    option: str = ""
    instructions: str = ""
    by: str = ""


class Frame(msgspec.Struct):
    """A path being walked: which, where in it, what places in it begin with, and in which pass."""

    path: str
    at: int = 0
    prefix: str = ""
    number: int = 0


class OpenApproval(msgspec.Struct):
    """An approval being waited for: whom it asks (how often that was passed on), the question, how
    often it was asked, until when, and what came back."""

    level: int = 0
    question: str = ""
    number: int = 0
    due: datetime | None = None
    answer: Json = None
    by: str = ""
    status: str = "open"


class Strand(msgspec.Struct):
    """A line of work in a run: the flow itself, a path of a fork, or a path after the end.

    `frames` are the paths being walked, the innermost last. `status` is `ready`, `busy` (a step is
    being taken), `waiting` (for a time or a person), `forked`, `done` or `failed`. A path of a fork
    has its own `state`, and `deltas` that are to be joined. `paths` are the strands that walk the
    paths of a fork in it, of which so many are `open`: not at their end.
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
    """A step that was taken, or did something at least, and that can be made up for; `number` and
    `attempt` tell which execution of it that was."""

    place: str
    strand: str
    path: str
    at: int
    number: int
    attempt: int


class Step(msgspec.Struct):
    """A step being taken; `turn` is that of its agent. `acted` says that an effect of it is on
    record, `done` how it is made up for, if it is cut off then."""

    number: int
    place: str
    strand: str
    node: str
    attempt: int
    turn: int = 0
    undoes: str = ""
    acted: bool = False
    done: CompletedStep | None = None


class Undoing(msgspec.Struct):
    """The end of a run that is not to go on: why, which step began last before, what is still to be
    made up for, in order, and what comes then."""

    failure: StepFailure
    cause: str
    begun: int
    left: list[CompletedStep] = []
    is_handled: bool = False


class Progress(msgspec.Struct):
    """What a run of a flow knows beside what every run knows.

    `going` and `failed` say which strands are not at their end, and which failed: what comes next
    is found without looking at all of them.
    """

    strands: dict[str, Strand] = {}
    going: dict[str, None] = {}
    failed: list[str] = []
    steps: dict[int, Step] = {}
    begun: int = 0
    completed: list[CompletedStep] = []
    approvals: dict[str, Decided] = {}
    threads: dict[str, list[Message]] = {}
    undoing: Undoing | None = None
    is_late: bool = False


S_co = TypeVar("S_co", bound=BaseModel, default=BaseModel, covariant=True)

OutcomeStatus = Literal["finished", "failed", "cancelled", "waiting"]


@dataclass(frozen=True, slots=True, repr=False)
class Outcome(Generic[S_co]):
    """What has become of a run of a flow: `finished`, `failed`, `cancelled`, or `waiting` for an
    answer to its `questions`; its state, and why it failed."""

    run_id: str
    status: OutcomeStatus
    state: S_co
    failure: StepFailure | None = None
    questions: tuple[Question, ...] = ()

    @property
    def question(self) -> Question | None:
        """The oldest of the questions that it waits for."""
        return self.questions[0] if self.questions else None

    def __repr__(self) -> str:
        return visible(f"<Outcome of run {self.run_id}: {self._told}; {self.state!r}>")

    def _repr_html_(self) -> str:
        rows = [(name, preview(value)) for name, value in self.state]
        return grid(f"Run {self.run_id}: {self._told}", ("field", "value"), rows)

    @property
    def _told(self) -> str:
        """How the run stands, in words."""
        if self.questions and self.status == "waiting":
            asked = [f"{each.to or 'a person'}: {each.prompt}" for each in self.questions]
            return "waiting for " + "; ".join(each.rstrip(": ") for each in asked)
        if self.failure is None:
            return self.status
        where = self.failure.what or f"step {self.failure.step!r}"
        return f"{self.status} in {where}: {self.failure.error}: {self.failure.message}"


class FlowFailed(FlowError):
    """A run of a flow failed, or was cancelled; `outcome` is what became of it."""

    code = "TURNLOOM-FLOW-FAILED"

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome
