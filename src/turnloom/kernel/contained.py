"""Calls of user code that cannot end the program or cancel the caller."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from types import TracebackType
from typing import Any

from anyio import CapacityLimiter

from turnloom.kernel.interruption import Interrupted
from turnloom.kernel.threads import in_thread
from turnloom.kernel.values import error_text


class NamedError(Exception):
    """An error that stands for another one, whose `name` it has."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Quit(NamedError):
    """User code tried to exit or to cancel itself; `name` is the exception that it raised."""


def error_name(error: Exception) -> str:
    """The name of an error raised by user code."""
    return error.name if isinstance(error, NamedError) else type(error).__name__


def bare(error: Exception, depth: int = 8) -> Exception:
    """A copy of an error without its traceback, which keeps the frames and their values alive. An
    error that cannot be rebuilt from its arguments, as in pydantic, becomes a plain `Exception`."""
    kind = type(error)
    try:
        copy: Exception = kind.__new__(kind, *error.args)
    except TypeError:
        return Exception(f"{kind.__name__}: {error_text(error)}")
    copy.args = error.args
    copy.__dict__.update(error.__dict__)
    cause = error.__cause__
    if isinstance(cause, Exception) and depth:
        copy.__cause__ = bare(cause, depth - 1)
    return copy


class _Contained:
    """Turns an exit or a self-cancellation inside the scope into a `Quit`."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, (Exception, Interrupted)) or _is_signal(error):
            return
        if isinstance(error, asyncio.CancelledError):
            current = asyncio.current_task()
            if current is None or not current.cancelling():
                raise Quit("CancelledError", "It cancelled itself.") from error
            return
        raise Quit(type(error).__name__, error_text(error)) from error


def _is_signal(error: BaseException) -> bool:
    """Whether a person interrupts the program. `asyncio.run` raises from its own code when it
    handles the signal; under Python's default handler the two cases cannot be told apart."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        return True
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__") == "asyncio.runners"


_CONTAINED = _Contained()


def contained() -> _Contained:
    """A scope in which an exit or a self-cancellation of the code inside is an ordinary error.

    Raises:
        Quit: the code raised `SystemExit`, cancelled itself, or the like.
    """
    return _CONTAINED


async def called(
    function: Callable[..., Any], *args: Any, limiter: CapacityLimiter | None = None
) -> Any:
    """Call a function and return its result: async functions in the loop, plain ones in a
    thread."""
    if iscoroutinefunction(function):
        return await function(*args)
    given = await in_thread(partial(function, *args), limiter)
    return await given if isawaitable(given) else given
