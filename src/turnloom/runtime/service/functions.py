"""Functions that derive variables: asked off the loop and in bounded time."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import anyio
from anyio import CapacityLimiter

from turnloom.kernel.marks import neutral
from turnloom.kernel.threads import in_thread, threads
from turnloom.kernel.values import Json, said
from turnloom.log.spec import Event
from turnloom.runtime.service.users import SHORT
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.derivation import Rule, settle
from turnloom.variables.spec import UNCHANGED, Function

# Gives a value for its variable from an event and the values of the moment, or UNCHANGED.
Derivation = Callable[[Event, Mapping[str, Json]], Any]

# Seconds that a function may take.
DEADLINE = 1.0


class Values(Mapping[str, Json]):
    """The values of the run, to be read: what is taken out of them is a copy."""

    def __init__(self, values: Mapping[str, Json]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Json:
        return deepcopy(self._values[name])

    def __iter__(self) -> Iterator[str]:
        return iter([*self._values])

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Values({self._values!r})"


class GaveUp(Exception):
    """A function raised what would end more than itself."""


def _asked(function: Derivation, event: Event, values: Mapping[str, Json]) -> Any:
    try:
        return function(event, values)
    except Exception:
        raise
    except BaseException as error:
        raise GaveUp(f"{type(error).__name__}: {said(error)}") from error


async def ask_function(
    rule: Rule, functions: Mapping[str, Derivation], event: Event, values: Mapping[str, Json]
) -> ContextChanged | ContextRefused | None:
    """What a function makes of an event: a change, a refusal, or nothing."""
    trigger = rule.trigger
    assert isinstance(trigger, Function)
    name = rule.definition.name
    given: Any = UNCHANGED
    try:
        asked = partial(_asked, functions[trigger.function], deepcopy(event), Values(values))
        async with threads(SHORT):
            with anyio.move_on_after(DEADLINE) as scope:
                given = await in_thread(asked, CapacityLimiter(1))
        if given is not UNCHANGED:
            return settle(rule.definition, neutral(given), rule.writer, values)
    except GaveUp as error:
        return ContextRefused(name, rule.writer, said(error))
    except Exception as error:  # noqa: BLE001 - all of it is recorded
        return ContextRefused(name, rule.writer, f"{type(error).__name__}: {said(error)}")
    if scope.cancelled_caught:
        return ContextRefused(name, rule.writer, f"{trigger.function!r} took over {DEADLINE} s")
    return None
