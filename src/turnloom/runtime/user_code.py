"""Call user functions in bounded time, and record where their errors came from."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from types import TracebackType
from typing import Any

import anyio
from anyio import CapacityLimiter

from turnloom.kernel.contained import called, contained
from turnloom.kernel.marks import neutral
from turnloom.kernel.threads import in_thread, threads, user_calls
from turnloom.kernel.values import Json, error_text, preview, writable
from turnloom.log.spec import Event
from turnloom.runtime.world import RecordedError
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.derivation import DerivationRule, settle
from turnloom.variables.logic.secrets import Secrets
from turnloom.variables.spec import UNCHANGED, Function
from turnloom.variables.spec.unknown import Unknown

# Functions that only answer a question: slow calls elsewhere do not hold them up.
SHORT = "questions"

# Names of boolean types: Python's own, and those of arrays.
_BOOLEANS = ("bool", "bool_")


async def ask_user_code(function: Callable[..., Any], *args: Any, deadline: float) -> Any:
    """The result of a function; the time it waits for a thread does not count.

    Raises:
        TimeoutError: it took too long.
        Quit: it left the program, or the like.
        Exception: whatever it raises.
    """
    with contained(), user_calls():
        async with threads(SHORT):
            with anyio.fail_after(deadline):
                return await called(function, *args, limiter=CapacityLimiter(1))


async def ask_condition(function: Callable[..., Any], *args: Any, deadline: float) -> bool:
    """Whether a condition holds.

    Raises:
        TypeError: it says neither yes nor no, as a function without `return` does.
        TimeoutError: it took too long.
        Exception: whatever it raises.
    """
    verdict = await ask_user_code(function, *args, deadline=deadline)
    if type(verdict).__name__ not in _BOOLEANS:
        raise TypeError(f"A condition gives True or False, and this one gave {preview(verdict)}.")
    return bool(verdict)


# Returns a value for its variable from an event and the current values, or UNCHANGED.
Derivation = Callable[[Event, Mapping[str, Json]], Any]

# Seconds that a function may take.
DEADLINE = 1.0


class ReadOnlyValues(Mapping[str, Json]):
    """The values of the run, read-only: items are copies. `unknown` is the first value that was
    read and is not known, in a backtest."""

    def __init__(self, values: Mapping[str, Json]) -> None:
        self._values = values
        self.unknown: Unknown | None = None

    def __getitem__(self, name: str) -> Json:
        value = self._values[name]
        if isinstance(value, Unknown):
            self.unknown = self.unknown or value
            raise LookupError(f"{name!r} is not known here.")
        return deepcopy(value)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._values])

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Values({self._values!r})"


class GaveUp(Exception):
    """A function raised something that would end more than itself."""


def _asked(function: Derivation, event: Event, values: Mapping[str, Json]) -> Any:
    try:
        return function(event, values)
    except Exception:
        raise
    except BaseException as error:
        raise GaveUp(f"{type(error).__name__}: {error_text(error)}") from error


async def ask_function(
    rule: DerivationRule,
    functions: Mapping[str, Derivation],
    event: Event,
    values: Mapping[str, Json],
) -> ContextChanged | ContextRefused | None:
    """The change that a function makes of an event, or its refusal; None for no change."""
    trigger = rule.trigger
    assert isinstance(trigger, Function)
    name = rule.definition.name
    given: Any = UNCHANGED
    shown, is_late = ReadOnlyValues(values), False
    try:
        asked = partial(_asked, functions[trigger.function], deepcopy(event), shown)
        with user_calls():
            async with threads(SHORT):
                with anyio.move_on_after(DEADLINE) as scope:
                    given = await in_thread(asked, CapacityLimiter(1))
        is_late = scope.cancelled_caught
        if given is not UNCHANGED and shown.unknown is None:
            return settle(rule.definition, neutral(given), rule.writer, values)
    except GaveUp as error:
        return ContextRefused(name, rule.writer, error_text(error))
    except Exception as error:  # noqa: BLE001 - all of it is recorded
        if shown.unknown is None:
            return ContextRefused(name, rule.writer, f"{type(error).__name__}: {error_text(error)}")
    if shown.unknown is not None:
        return _unknown(rule, shown.unknown, values)
    if is_late:
        return ContextRefused(name, rule.writer, f"{trigger.function!r} took over {DEADLINE} s")
    return None


def _unknown(
    rule: DerivationRule, read: Unknown, values: Mapping[str, Json]
) -> ContextChanged | None:
    """The change of a variable whose function read an unknown value."""
    name = rule.definition.name
    previous = values.get(name)
    if isinstance(previous, Unknown):
        return None
    value: Any = Unknown(name, f"its function reads {read.what}: {read.why}")
    return ContextChanged(name, value, previous, rule.writer)


# Modules that call user code: ours, and those that move a call to a thread or a task.
CALLERS = ("turnloom", "anyio", "asyncio", "concurrent", "contextlib", "contextvars", "threading")

# The most frames that are kept, innermost first, and the most characters of a line.
FRAMES = 12
LINE = 200


def stack_of(error: BaseException, secrets: Secrets) -> str:
    """The frames of user code in which an error was raised, masked; empty if our own code raised
    it."""
    if isinstance(error, RecordedError):
        return error.stack
    begin = without_callers(error.__traceback__)
    if begin is None:
        return ""
    walked = traceback.walk_tb(begin)
    kept = [each for each in walked if not _is_ours(each[0].f_globals)][-FRAMES:]
    frames = traceback.StackSummary.extract(iter(kept))
    lines = [f"{each.filename}:{each.lineno} in {each.name}: {each.line}"[:LINE] for each in frames]
    return secrets.received(writable("\n".join(lines)))


def without_callers(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the first frame of user code on, if there is one."""
    while trace is not None and _package(trace.tb_frame.f_globals) in CALLERS:
        trace = trace.tb_next
    return trace


def _is_ours(names: dict[str, object]) -> bool:
    return _package(names) == "turnloom"


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
