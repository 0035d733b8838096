"""What becomes of runs of flows."""

from dataclasses import dataclass
from typing import Any

from turnloom.agents.spec import Question
from turnloom.flow.spec.progress import StepFailure


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of a run of a flow: `finished`, `failed`, `cancelled`, or `waiting` for an
    answer to its `question`; its state, and why it failed."""

    run_id: str
    status: str
    state: Any
    failure: StepFailure | None = None
    question: Question | None = None
