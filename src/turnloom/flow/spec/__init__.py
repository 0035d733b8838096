"""Flows as users declare them: states, steps, paths."""

from turnloom.flow.spec.builder import Path as Path
from turnloom.flow.spec.builder import complete as complete
from turnloom.flow.spec.builder import escalate_to as escalate_to
from turnloom.flow.spec.nodes import FlowPlan as FlowPlan
from turnloom.flow.spec.nodes import Option as Option
from turnloom.flow.spec.progress import DecisionRecord as DecisionRecord
from turnloom.flow.spec.progress import Progress as Progress
from turnloom.flow.spec.progress import StepFailure as StepFailure
from turnloom.flow.spec.steps import AgentStep as AgentStep
from turnloom.flow.spec.steps import Cache as Cache
from turnloom.flow.spec.steps import Execution as Execution
from turnloom.flow.spec.steps import PathResult as PathResult
from turnloom.flow.spec.steps import Retry as Retry
from turnloom.flow.spec.steps import StepContext as StepContext
from turnloom.flow.spec.steps import Update as Update
from turnloom.flow.spec.steps import append as append
from turnloom.flow.spec.steps import merge as merge
