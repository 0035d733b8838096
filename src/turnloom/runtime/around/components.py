"""Components: user code around turns and calls."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from turnloom.agents.spec import Answer, CallComponent, Component, Engine, Task, TurnComponent
from turnloom.assembly.spec import TurnContext
from turnloom.errors import UsageError
from turnloom.kernel.contained import contained, error_name
from turnloom.kernel.sealed import sealed
from turnloom.kernel.values import error_text
from turnloom.runs.brief import TurnOutcome
from turnloom.runtime.calls import Waiting
from turnloom.runtime.engine_calls import ask_engine
from turnloom.runtime.spec import AgentRuntime
from turnloom.variables.spec import Context, EffectAccess, VariableAccess


def every_component(
    common: Sequence[Component], staff: Mapping[str, AgentRuntime], agent: str
) -> Sequence[Component]:
    """The components of an agent: those of all agents, then its own, each once."""
    own = staff[agent].components
    if not common:
        return own
    return (*common, *(each for each in own if not any(each is other for other in common)))


async def around_turn(
    components: Sequence[Component], turn: TurnContext, go_on: Callable[[], Awaitable[TurnOutcome]]
) -> TurnOutcome:
    """How a turn ends with components around it, the first being the outermost.

    Raises:
        Waiting: a person was asked, whatever a component made of it.
    """
    came: list[TurnOutcome | Waiting] = []

    async def innermost() -> None:
        if came:
            raise UsageError("A component went on twice. Call `call_next` once.")
        try:
            came.append(await go_on())
        except Waiting as waiting:
            came.append(waiting)
            raise

    call: Callable[[], Awaitable[None]] = innermost
    for component in reversed([each for each in components if isinstance(each, TurnComponent)]):
        call = partial(component.around_turn, turn, sealed(call))
    try:
        with contained():
            await call()
    except Exception as error:  # noqa: BLE001 - whatever a component raises is recorded
        if not any(isinstance(each, Waiting) for each in came):
            return TurnOutcome(f"{error_name(error)}: {error_text(error)}")
    ended = came[0] if came else TurnOutcome("UsageError: a component did not call `call_next`")
    if isinstance(ended, Waiting):
        raise ended
    return ended


def around_calls(components: Sequence[Component], engine: Engine) -> Engine:
    """An engine with components around its calls, the first one outermost.

    Components get the task and its context, and no way to anything behind these.
    """
    around = [each for each in components if isinstance(each, CallComponent)]
    if not around:
        return engine

    async def innermost(task: Task) -> Answer:
        return await ask_engine(engine, task)

    call: Engine = innermost
    for component in reversed(around):
        call = partial(_call, component, call)

    async def outermost(task: Task) -> Answer:
        return await call(_closed(task))

    return outermost


async def _call(component: CallComponent, inner: Engine, task: Task) -> Any:
    """The answer to a task with one component around the call.

    Raises:
        UsageError: the component was given an answer, and gives none.
    """
    came: list[Any] = []

    async def go_on(asked: Task) -> Answer:
        came.append(await inner(asked))
        return came[-1]

    given: Any = await component.around_call(task, sealed(go_on))
    if given is None and any(each is not None for each in came):
        name = type(component).__name__
        raise UsageError(f"`around_call` of {name} returned nothing. Return the answer.")
    return given


def _closed(task: Task) -> Task:
    """A task that leads to nothing beyond its turn."""
    variables = None if task.variables is None else _ClosedContext(task.variables)
    return msgspec.structs.replace(
        task,
        transcript=task.transcript.closed(),
        say=sealed(task.say),
        mask=sealed(task.mask),
        retry=sealed(task.retry),
        variables=variables,
    )


class _ClosedContext(Context):
    """The variables of the run, and nothing behind them."""

    def __init__(self, context: Context) -> None:
        closed = _ClosedPad(context._pad, context._desk)
        super().__init__(closed, closed)


class _ClosedPad:
    """A context as another one reads and writes it."""

    def __init__(self, pad: VariableAccess, desk: EffectAccess) -> None:
        self.idempotency_key = desk.idempotency_key
        self.read = sealed(pad.read)
        self.copy = sealed(pad.copy)
        self.names = sealed(pad.names)
        self.write = sealed(pad.write)
        self.remove = sealed(pad.remove)
        self.once = sealed(desk.once)
