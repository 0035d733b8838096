"""Steps: what a flow does with its state, and what each is told beside it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isfunction, signature
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from turnloom.agents.spec import USER, Engine
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import Message
from turnloom.flow.spec.progress import Decided, StepFailure
from turnloom.flow.spec.states import Update
from turnloom.variables.spec import Context

S = TypeVar("S", bound=BaseModel)

# What a step may give: nothing, the fields that it changes, or those with how sure it is.
Given = Mapping[str, Any] | Update[Any] | None


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a step is tried again, and after how many seconds: `delay` at first, each time
    `factor` as long, `max_delay` at most; with `jitter`, chance takes off up to half of it."""

    n: int
    delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 60.0
    jitter: bool = True


@dataclass(frozen=True, slots=True)
class PathResult:
    """How a path of a fork ended: `completed`, or `recovered` after a failure, and with what."""

    name: str
    status: str
    state: Any
    failure: StepFailure | None = None


@dataclass(frozen=True, slots=True)
class About:
    """What a call of a step is told beside the variables."""

    run_id: str
    step: str
    attempt: int
    execution_id: str
    failure: StepFailure | None = None
    paths: Sequence[PathResult] = ()
    approvals: Mapping[str, Decided] = field(default_factory=dict[str, Decided])


class StepContext(Context):
    """What a step is given beside the state: the variables of the run as a mapping, and where it
    stands. `idempotency_key` is the same in every attempt; `execution_id` is this attempt's own."""

    def __init__(self, context: Context, about: About) -> None:
        super().__init__(context._pad, context._desk)
        self._about = about

    def __repr__(self) -> str:
        return f"StepContext(step={self.step!r}, attempt={self.attempt})"

    @property
    def run_id(self) -> str:
        """The run that the step is taken in."""
        return self._about.run_id

    @property
    def step(self) -> str:
        """The step's name."""
        return self._about.step

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._about.attempt

    @property
    def execution_id(self) -> str:
        """A text that only this attempt has."""
        return self._about.execution_id

    @property
    def failure(self) -> StepFailure | None:
        """What went wrong, for whoever handles it or makes up for it."""
        return self._about.failure

    @property
    def paths(self) -> Sequence[PathResult]:
        """How the paths of a fork ended, for the step that joins them."""
        return self._about.paths

    @property
    def approvals(self) -> Mapping[str, Decided]:
        """What was decided in the run so far, by the name of the approval."""
        return self._about.approvals


class AgentStep(Generic[S]):
    """A step that an agent takes: a turn with assembled context, and what its answer changes.

    `engine` answers, or else the app's; of several `engines` by name, a selection picks one. With
    `thread`, the agent remembers what was said in steps of the same thread. `on_text` hears the
    answer while it is made. A subclass says at least `user_prompt` and `apply`.
    """

    output_type: ClassVar[type[BaseModel] | None] = None
    engine: Engine | None = None
    engines: Mapping[str, Engine] = {}
    model: str | None = None
    tools: Sequence[Callable[..., Any]] = ()
    max_tool_rounds: int = 8
    thread: str | None = None
    on_text: Callable[[str], None] | None = None

    def __init_subclass__(cls) -> None:
        engine = vars(cls).get("engine")
        if isfunction(engine) and "self" not in signature(engine).parameters:
            cls.engine = staticmethod(engine)  # it takes a task, and is no method

    def instructions(self) -> str:
        """What the agent is told before anything else."""
        return ""

    def user_prompt(self, state: S) -> str:
        """What the agent is asked about the state."""
        raise NotImplementedError

    def build_messages(self, state: S, context: AssembledContext) -> Sequence[Message]:
        """What the agent hears after its instructions: its context, unless that is empty, and the
        prompt."""
        told = [] if context.is_empty else [f"Context:\n{context.to_prompt_string()}"]
        return [Message(0, USER, text) for text in (*told, self.user_prompt(state))]

    def apply(self, state: S, answer: Any, context: AssembledContext) -> Any:
        """What the answer changes: a text, or a value of `output_type`."""
        raise NotImplementedError


def function_of(step: Any) -> Callable[..., Any]:
    """What is called when a step is taken that no agent takes."""
    return step.run if hasattr(step, "run") else step
