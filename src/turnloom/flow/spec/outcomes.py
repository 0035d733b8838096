"""What becomes of runs of flows."""

from dataclasses import dataclass
from typing import Generic, Literal

from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.agents.spec import Question
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
