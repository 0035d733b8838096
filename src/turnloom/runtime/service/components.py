"""What users put around turns and calls."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from turnloom.agents.spec import Answer, CallComponent, Component, Engine, Task, TurnComponent
from turnloom.assembly.spec import TurnContext
from turnloom.errors import UsageError
from turnloom.kernel.contained import contained, named
from turnloom.kernel.values import said
from turnloom.runs.brief import TurnOutcome
from turnloom.runtime.service.calls import Waiting
from turnloom.runtime.service.engines import ask_engine


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

    call = innermost
    for component in reversed([each for each in components if isinstance(each, TurnComponent)]):
        call = partial(component.around_turn, turn, call)
    try:
        with contained():
            await call()
    except Exception as error:  # noqa: BLE001 - whatever a component raises is recorded
        if not any(isinstance(each, Waiting) for each in came):
            return TurnOutcome(f"{named(error)}: {said(error)}")
    ended = came[0] if came else TurnOutcome("UsageError: a component did not call `call_next`")
    if isinstance(ended, Waiting):
        raise ended
    return ended


def around_calls(components: Sequence[Component], engine: Engine) -> Engine:
    """An engine with components around its calls, the first being the outermost."""

    async def innermost(task: Task) -> Answer:
        return await ask_engine(engine, task)

    call: Engine = innermost
    for component in reversed([each for each in components if isinstance(each, CallComponent)]):
        call = _Around(component, call)
    return call


class _Around:
    """One component around a call."""

    def __init__(self, component: CallComponent, inner: Engine) -> None:
        self._component = component
        self._inner = inner

    async def __call__(self, task: Task) -> Answer:
        return await self._component.around_call(task, self._inner)
