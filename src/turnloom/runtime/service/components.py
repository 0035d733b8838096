"""What users put around turns and calls."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from turnloom.agents.spec import (
    Answer,
    CallComponent,
    Component,
    Engine,
    Observer,
    Task,
    TurnComponent,
)
from turnloom.assembly.spec import TurnContext
from turnloom.errors import UsageError
from turnloom.kernel.contained import contained, named
from turnloom.kernel.values import said
from turnloom.log.spec import Event
from turnloom.runs.brief import TurnOutcome
from turnloom.runtime.service.calls import Waiting
from turnloom.runtime.service.engines import ask_engine
from turnloom.runtime.service.journal import Appends, Tell, Telling
from turnloom.runtime.spec import Staff

log = logging.getLogger("turnloom.components")


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


def observed(staff: Mapping[str, Staff], stored: Appends, *tells: Tell) -> Appends:
    """A log that tells what it stored: whoever wants to know, and then those who observe."""
    components = {id(c): c for each in staff.values() for c in each.components}
    observers = [each for each in components.values() if isinstance(each, Observer)]
    if not (observers or tells):
        return stored

    async def told(batch: Sequence[Event]) -> None:
        for tell in tells:
            await tell(batch)
        for observer in observers:
            for event in batch:
                _observe(observer, event)

    return Telling(stored, told)


def _observe(observer: Observer, event: Event) -> None:
    """Let one component see an event; what it makes of that changes nothing."""
    try:
        observer.observe(event)
    except Exception:
        log.exception("%s failed to observe %s", type(observer).__name__, event.id)
