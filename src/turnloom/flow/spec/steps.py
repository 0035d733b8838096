"""Steps: their code, their context, and their changes of the state."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import isfunction, signature
from math import inf
from typing import Any, Generic, Protocol, Self, TypeAlias

from pydantic import BaseModel
from typing_extensions import TypeVar

from turnloom.agents.spec import USER, Answer, Component, Engine, Task
from turnloom.agents.spec.arguments import as_answerer, as_component, as_score
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import Message
from turnloom.errors import UsageError
from turnloom.flow.spec.progress import DecisionRecord, StepFailure
from turnloom.kernel.arguments import as_count, as_names, need, refuse_repeats
from turnloom.kernel.code import fits
from turnloom.variables.spec import Context

S_co = TypeVar("S_co", bound=BaseModel, default=BaseModel, covariant=True)
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def append(current: list[T], given: list[T]) -> list[T]:
    """The reducer of lists: adds the given items at the end."""
    return [*current, *given]


def merge(current: Mapping[K, V], given: Mapping[K, V]) -> dict[K, V]:
    """The reducer of mappings: a given key replaces the current one."""
    return {**current, **given}


class Update(Generic[S_co]):
    """The fields that a step changes, and its confidence from 0 to 1.

    `Update(total=3)` and `Update({"total": 3}, confidence=0.8)` change the field `total`.
    """

    __slots__ = ("changes", "confidence")

    def __init__(
        self,
        changes: Mapping[str, object] | None = None,
        /,
        *,
        confidence: float | None = None,
        **fields: object,
    ) -> None:
        self.changes: dict[str, object] = {**(changes or {}), **fields}
        self.confidence = confidence

    def __repr__(self) -> str:
        sure = "" if self.confidence is None else f", confidence={self.confidence:g}"
        return f"Update({self.changes!r}{sure})"


S = TypeVar("S", bound=BaseModel)
S_contra = TypeVar("S_contra", bound=BaseModel, contravariant=True)
A = TypeVar("A", bound=str | BaseModel, default=str)

# The result of a step: None, the fields that it changes, or these with its confidence.
StepChange: TypeAlias = Mapping[str, object] | Update | None


@dataclass(frozen=True, slots=True)
class Retry:
    """Retries of a step: up to `n` after the first attempt. The first waits `delay` seconds, each
    further one `factor` times as long, up to `max_delay`; `jitter` shortens a wait by up to half,
    at random."""

    n: int
    delay: float = 1.0
    factor: float = 2.0
    max_delay: float = 60.0
    jitter: bool = True


@dataclass(frozen=True, slots=True)
class Cache:
    """Caching of a step's result for `seconds`: for the user of the run, or with `shared` for every
    user of the tenant."""

    seconds: float = inf
    shared: bool = False


@dataclass(frozen=True, slots=True)
class PathResult:
    """Result of a path of a fork: `completed`, or `recovered` after a failure, and its state."""

    name: str
    status: str
    state: BaseModel
    failure: StepFailure | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of a step, for its compensation: the `state` that it was given, and as `result`
    the fields that it changed, or `None` if it did not complete. Its keys are those of the step
    itself."""

    step: str
    attempt: int
    execution_id: str
    idempotency_key: str
    state: BaseModel
    result: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class StepInfo:
    """The data of a `StepContext` in addition to the variables."""

    run_id: str
    step: str
    attempt: int
    execution_id: str
    failure: StepFailure | None = None
    paths: Sequence[PathResult] = ()
    approvals: Mapping[str, DecisionRecord] = field(default_factory=dict[str, DecisionRecord])
    undoes: Execution | None = None


class StepContext(Context):
    """Context of a step: the variables of the run as a mapping, and the current execution.
    `idempotency_key` is the same in every attempt; `execution_id` is unique to the attempt."""

    def __init__(self, context: Context, about: StepInfo) -> None:
        super().__init__(context._pad, context._desk)
        self._about = about

    def __repr__(self) -> str:
        return f"StepContext(step={self.step!r}, attempt={self.attempt})"

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._about.run_id

    @property
    def step(self) -> str:
        """The step's name."""
        return self._about.step

    @property
    def attempt(self) -> int:
        """The number of the attempt, from 1."""
        return self._about.attempt

    @property
    def execution_id(self) -> str:
        """An id that is unique to this attempt."""
        return self._about.execution_id

    @property
    def failure(self) -> StepFailure | None:
        """The failure, in a step that handles or compensates it."""
        return self._about.failure

    @property
    def paths(self) -> Sequence[PathResult]:
        """The results of a fork's paths, in the step that joins them."""
        return self._about.paths

    @property
    def approvals(self) -> Mapping[str, DecisionRecord]:
        """The decisions of the run so far, by the name of the approval."""
        return self._about.approvals

    @property
    def undoes(self) -> Execution | None:
        """The execution that this step compensates, if it does."""
        return self._about.undoes


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAgent:
    """Settings of a step's agent: its engines in order, its components, its labels, the number of
    samples and their score, and the maximum number of concurrent turns."""

    engines: tuple[Callable[[Task], Any] | str, ...] = ()
    components: tuple[Component, ...] = ()
    labels: Set[str] = frozenset()
    samples: int = 1
    score: Callable[[Any], Any] | None = None
    max_concurrency: int | None = None


class AgentStep(Generic[S_contra, A]):
    """A step that an agent takes: a turn with assembled context, and what its answer changes.

    `AgentStep[State]` gets a text; `AgentStep[State, Model]` with `output_type = Model` gets a
    value of that model. `engine` answers, or else the app's engine; of several `engines` by name, a
    selection picks one. With `thread`, the agent remembers the messages of steps with the same
    thread. `on_text` receives the text of the answer as it is streamed. A subclass defines at least
    `user_prompt` and `apply`.

    Its methods configure the agent, as those of an agent on a board do. Each call is checked at
    once.

    Raises:
        UsageError: a call is invalid, or repeats an earlier one.
    """

    output_type: type[A] | None = None
    engine: Engine | None = None
    engines: Mapping[str, Engine] = {}
    model: str | None = None
    tools: Sequence[Callable[..., object]] = ()
    max_tool_rounds: int = 8
    thread: str | None = None
    on_text: Callable[[str], None] | None = None
    _agent: StepAgent = StepAgent()
    _is_built: bool = False

    def __init_subclass__(cls) -> None:
        engine = vars(cls).get("engine")
        if isfunction(engine) and "self" not in signature(engine).parameters:
            cls.engine = staticmethod(engine)  # it takes a task, not `self`

    def instructions(self) -> str:
        """The agent's system message."""
        return ""

    def user_prompt(self, state: S_contra) -> str:
        """The prompt about the state."""
        raise NotImplementedError

    def build_messages(self, state: S_contra, context: AssembledContext) -> Sequence[Message]:
        """The messages after the instructions: the context, unless it is empty, and the prompt."""
        given = [] if context.is_empty else [f"Context:\n{context.to_prompt_string()}"]
        return [Message(0, USER, text) for text in (*given, self.user_prompt(state))]

    def apply(
        self, state: S_contra, answer: A, context: AssembledContext
    ) -> StepChange | Awaitable[StepChange]:
        """The changes for an answer: a text, or a value of `output_type`."""
        raise NotImplementedError

    def with_engines(self, *engines: Callable[[Task], object] | str) -> Self:
        """Answer with engines, models by name, or functions, one after the other: each gets the
        answers before it, and the last one answers for the agent."""
        with self._call("with_engines"):
            need(engines, "an engine")
            made = [as_answerer(each) for each in engines]
            self._set(engines=(*self._agent.engines, *made))
        return self

    def with_components(self, *components: Component) -> Self:
        """Put components around the agent's turns and calls, the first one outermost."""
        with self._call("with_components"):
            need(components, "a component")
            found = (*self._agent.components, *map(as_component, components))
            refuse_repeats([id(each) for each in found], "A component is listed twice.")
            self._set(components=found)
        return self

    def labels(self, *labels: str) -> Self:
        """Give the agent labels, so that it may see artifacts labelled with them."""
        with self._call("labels"):
            need(labels, "a label")
            self._set(labels=self._agent.labels | as_names(labels, "the labels"))
        return self

    def best_of(self, n: int, score: Callable[[Answer], float | Awaitable[float]]) -> Self:
        """Take `n` samples of each turn; the `Answer` with the highest score counts."""
        with self._call("best_of"):
            _refuse_again(self._agent.score)
            self._set(samples=as_count(n, "`n`", least=2), score=as_score(score))
        return self

    def max_concurrency(self, k: int) -> Self:
        """Let the agent take at most `k` turns at the same time, in all runs of this process."""
        with self._call("max_concurrency"):
            _refuse_again(self._agent.max_concurrency)
            self._set(max_concurrency=as_count(k, "`k`"))
        return self

    @contextmanager
    def _call(self, method: str) -> Generator[None]:
        """Prefix errors with the call."""
        try:
            if self._is_built:
                raise UsageError(
                    "The step belongs to a flow that is built. Call it before the flow's "
                    "`finally_`."
                )
            yield
        except UsageError as error:
            raise UsageError(f"{type(self).__name__}().{method}(): {error}") from error

    def _set(self, **values: Any) -> None:
        # A frozen dataclass may be a step as well.
        object.__setattr__(self, "_agent", replace(self._agent, **values))


def agent_of(step: AgentStep[Any, Any]) -> StepAgent:
    """The settings of a step's agent."""
    return step._agent  # pyright: ignore[reportPrivateUsage]


def build(step: AgentStep[Any, Any]) -> None:
    """Freeze a step that belongs to the plan of a flow."""
    object.__setattr__(step, "_is_built", True)


def _refuse_again(current: object) -> None:
    if current is not None:
        raise UsageError("An earlier call has already set this. Keep one of the two.")


class StateRunner(Protocol[S_contra]):
    """A step as an object that runs with the state."""

    def run(self, state: S_contra, /) -> StepChange | Awaitable[StepChange]:
        """Run the step and return its changes."""
        ...


class ContextRunner(Protocol[S_contra]):
    """A step as an object that runs with the state and the step's context."""

    def run(self, state: S_contra, ctx: StepContext, /) -> StepChange | Awaitable[StepChange]:
        """Run the step and return its changes."""
        ...


# A step as a function, plain or async, of the state, or of the state and the context.
StepFunction: TypeAlias = (
    Callable[[S], StepChange | Awaitable[StepChange]]
    | Callable[[S, StepContext], StepChange | Awaitable[StepChange]]
)

# A step as a function or an object, or a class of such objects.
CodeStep: TypeAlias = (
    StepFunction[S]
    | StateRunner[S]
    | ContextRunner[S]
    | type[StateRunner[S]]
    | type[ContextRunner[S]]
)

# A step as code, or as an agent.
AnyStep: TypeAlias = CodeStep[S] | AgentStep[S, Any] | type[AgentStep[S, Any]]


def function_of(step: Any) -> Callable[..., Any]:
    """The function of a code step."""
    return step.run if hasattr(step, "run") else step


def takes_context(step: Any) -> bool:
    """Whether a step takes its context in addition to the state."""
    function = function_of(step)
    return not callable(function) or fits(function, 2) or not fits(function, 1)
