"""What becomes of runs of flows."""

from dataclasses import dataclass
from typing import Generic, Literal

from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.agents.spec import Question
from turnloom.errors import FlowError
from turnloom.flow.spec.progress import StepFailure

S_co = TypeVar("S_co", bound=BaseModel, default=BaseModel, covariant=True)

OutcomeStatus = Literal["finished", "failed", "cancelled", "waiting"]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[S_co]):
    """What has become of a run of a flow: `finished`, `failed`, `cancelled`, or `waiting` for an
    answer to its `question`; its state, and why it failed."""

    run_id: str
    status: OutcomeStatus
    state: S_co
    failure: StepFailure | None = None
    question: Question | None = None


class FlowFailed(FlowError):
    """A run of a flow failed, or was cancelled; `outcome` is what became of it."""

    code = "TURNLOOM-FLOW-FAILED"

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome
