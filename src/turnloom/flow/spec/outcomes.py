"""What becomes of runs of flows."""

from dataclasses import dataclass
from typing import Generic, Literal

from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.agents.spec import Question
from turnloom.errors import FlowError
from turnloom.flow.spec.progress import StepFailure
from turnloom.kernel.pages import grid, visible
from turnloom.kernel.values import preview

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
