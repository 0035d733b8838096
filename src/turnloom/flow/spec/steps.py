"""Steps: what they do with the state, and what they receive."""

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
from turnloom.flow.spec.progress import Decided, StepFailure
from turnloom.kernel.arguments import as_count, as_names, need, refuse_repeats
from turnloom.kernel.code import fits
from turnloom.variables.spec import Context

S_co = TypeVar("S_co", bound=BaseModel, default=BaseModel, covariant=True)
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def append(current: list[T], given: list[T]) -> list[T]:
    """The reducer of lists: what is given comes after what is there."""
    return [*current, *given]


def merge(current: Mapping[K, V], given: Mapping[K, V]) -> dict[K, V]:
    """The reducer of mappings: what is given counts where both have a key."""
    return {**current, **given}


class Update(Generic[S_co]):
    """What a step changes, field by field, and how sure it is of that, from 0 to 1.

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

# What a step gives: nothing, the fields that it changes, or those with how sure it is.
StepChange: TypeAlias = Mapping[str, object] | Update | None


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
class Cache:
    """How many seconds the result of a step counts, and for whom: for the user whose run it was, or
    with `shared` for every user of the tenant."""

    seconds: float = inf
    shared: bool = False


@dataclass(frozen=True, slots=True)
class PathResult:
    """How a path of a fork ended: `completed`, or `recovered` after a failure, and with what."""

    name: str
    status: str
    state: BaseModel
    failure: StepFailure | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution of a step, for what undoes it: the `state` that it was given, and as `result`
    the fields that it changed, or `None` if it did not complete. Its keys are those that the step
    had itself."""

    step: str
    attempt: int
    execution_id: str
    idempotency_key: str
    state: BaseModel
    result: Mapping[str, object] | None = None


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
    undoes: Execution | None = None


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

    @property
    def undoes(self) -> Execution | None:
        """The execution that this step undoes, if it compensates another one."""
        return self._about.undoes


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAgent:
    """What calls say of the agent of a step: the engines that answer one after the other, what is
    put around its turns and calls, as whom it reads, how often it tries and how the tries are
    scored, and how many of its turns are taken at the same time."""

    engines: tuple[Callable[[Task], Any] | str, ...] = ()
    components: tuple[Component, ...] = ()
    labels: Set[str] = frozenset()
    samples: int = 1
    score: Callable[[Any], Any] | None = None
    max_concurrency: int | None = None


class AgentStep(Generic[S_contra, A]):
    """A step that an agent takes: a turn with assembled context, and what its answer changes.

    `AgentStep[State]` gets a text; `AgentStep[State, Model]` with `output_type = Model` gets a
    value of that model.
    `engine` answers, or else the app's; of several `engines` by name, a selection picks one. With
    `thread`, the agent remembers what was said in steps of the same thread. `on_text` hears the
    answer while it is made. A subclass says at least `user_prompt` and `apply`.

    Its calls say more of the agent, as those of an agent on a board do. Each is checked at once.

    Raises:
        UsageError: from each call that cannot mean anything, or says again what was said.
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
            cls.engine = staticmethod(engine)  # it takes a task, and is no method

    def instructions(self) -> str:
        """What the agent is told before anything else."""
        return ""

    def user_prompt(self, state: S_contra) -> str:
        """What the agent is asked about the state."""
        raise NotImplementedError

    def build_messages(self, state: S_contra, context: AssembledContext) -> Sequence[Message]:
        """What the agent hears after its instructions: its context, unless that is empty, and the
        prompt."""
        told = [] if context.is_empty else [f"Context:\n{context.to_prompt_string()}"]
        return [Message(0, USER, text) for text in (*told, self.user_prompt(state))]

    def apply(
        self, state: S_contra, answer: A, context: AssembledContext
    ) -> StepChange | Awaitable[StepChange]:
        """What the answer changes: a text, or a value of `output_type`."""
        raise NotImplementedError

    def with_engines(self, *engines: Callable[[Task], object] | str) -> Self:
        """Let engines, models by their names, or functions answer, one after the other: each is
        told what those before it said, and the last one answers for the agent."""
        with self._call("with_engines"):
            need(engines, "an engine")
            made = [as_answerer(each) for each in engines]
            self._say(engines=(*self._agent.engines, *made))
        return self

    def with_components(self, *components: Component) -> Self:
        """Put components around the agent's turns and calls, the first one outermost."""
        with self._call("with_components"):
            need(components, "a component")
            found = (*self._agent.components, *map(as_component, components))
            refuse_repeats([id(each) for each in found], "A component is there twice.")
            self._say(components=found)
        return self

    def labels(self, *labels: str) -> Self:
        """Let the agent see what is for those who have these labels."""
        with self._call("labels"):
            need(labels, "a label")
            self._say(labels=self._agent.labels | as_names(labels, "the labels"))
        return self

    def best_of(self, n: int, score: Callable[[Answer], float | Awaitable[float]]) -> Self:
        """Let the agent try `n` times; the try whose `Answer` has the highest score counts."""
        with self._call("best_of"):
            _refuse_again(self._agent.score)
            self._say(samples=as_count(n, "`n`", least=2), score=as_score(score))
        return self

    def max_concurrency(self, k: int) -> Self:
        """Let the agent take at most `k` turns at the same time, in all runs of this program."""
        with self._call("max_concurrency"):
            _refuse_again(self._agent.max_concurrency)
            self._say(max_concurrency=as_count(k, "`k`"))
        return self

    @contextmanager
    def _call(self, method: str) -> Generator[None]:
        """Say of what is refused where it was said."""
        try:
            if self._is_built:
                raise UsageError(
                    "The step belongs to a flow that is built. Say this before the flow's "
                    "`finally_`."
                )
            yield
        except UsageError as error:
            raise UsageError(f"{type(self).__name__}().{method}(): {error}") from error

    def _say(self, **said: Any) -> None:
        # A frozen dataclass may be a step as well.
        object.__setattr__(self, "_agent", replace(self._agent, **said))


def agent_of(step: AgentStep[Any, Any]) -> StepAgent:
    """What calls say of the agent of a step."""
    return step._agent  # pyright: ignore[reportPrivateUsage]


def build(step: AgentStep[Any, Any]) -> None:
    """Let calls change a step no more: it belongs to the plan of a flow."""
    object.__setattr__(step, "_is_built", True)


def _refuse_again(said: object) -> None:
    if said is not None:
        raise UsageError("A call before has said this already. Keep one of the two.")


class StateRunner(Protocol[S_contra]):
    """A step that is an object, and runs with the state."""

    def run(self, state: S_contra, /) -> StepChange | Awaitable[StepChange]:
        """What the step changes."""
        ...


class ContextRunner(Protocol[S_contra]):
    """A step that is an object, and runs with the state and the context of the step."""

    def run(self, state: S_contra, ctx: StepContext, /) -> StepChange | Awaitable[StepChange]:
        """What the step changes."""
        ...


# A step that is a function, plain or async, of the state, or of the state and the context.
StepFunction: TypeAlias = (
    Callable[[S], StepChange | Awaitable[StepChange]]
    | Callable[[S, StepContext], StepChange | Awaitable[StepChange]]
)

# A step that is a function or an object, or a class that makes one.
CodeStep: TypeAlias = (
    StepFunction[S]
    | StateRunner[S]
    | ContextRunner[S]
    | type[StateRunner[S]]
    | type[ContextRunner[S]]
)

# A step that is code, or one that an agent takes.
AnyStep: TypeAlias = CodeStep[S] | AgentStep[S, Any] | type[AgentStep[S, Any]]


def function_of(step: Any) -> Callable[..., Any]:
    """What is called when a step is taken that no agent takes."""
    return step.run if hasattr(step, "run") else step


def takes_context(step: Any) -> bool:
    """Whether a step is called with its context beside the state."""
    function = function_of(step)
    return not callable(function) or fits(function, 2) or not fits(function, 1)
