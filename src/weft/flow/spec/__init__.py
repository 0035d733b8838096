"""Flows as users write them down: states, steps, paths."""

from weft.flow.spec.builder import Path as Path
from weft.flow.spec.builder import complete as complete
from weft.flow.spec.builder import escalate_to as escalate_to
from weft.flow.spec.nodes import FlowPlan as FlowPlan
from weft.flow.spec.nodes import Option as Option
from weft.flow.spec.progress import Decided as Decided
from weft.flow.spec.progress import Progress as Progress
from weft.flow.spec.progress import StepFailure as StepFailure
from weft.flow.spec.states import Update as Update
from weft.flow.spec.states import append as append
from weft.flow.spec.states import merge as merge
from weft.flow.spec.steps import AgentStep as AgentStep
from weft.flow.spec.steps import PathResult as PathResult
from weft.flow.spec.steps import Retry as Retry
from weft.flow.spec.steps import StepContext as StepContext
