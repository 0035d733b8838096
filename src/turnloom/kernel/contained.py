"""Code of users, whose end is its own affair."""

import asyncio
import signal
from collections.abc import Callable
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from types import TracebackType
from typing import Any

from anyio import CapacityLimiter

from turnloom.kernel.threads import in_thread
from turnloom.kernel.values import said


class Interrupted(BaseException):
    """Ends whatever goes on, as the end of the process would. Nothing may handle this."""


class Quit(Exception):
    """Code that ended as if more than itself were to end; `name` is what it raised."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def named(error: Exception) -> str:
    """What an error of a user's code is called."""
    return error.name if isinstance(error, Quit) else type(error).__name__


def bare(error: Exception, depth: int = 8) -> Exception:
    """The same error without the frames that it passed: those hold on to whatever was in them. For
    one that cannot be made of its arguments, as those of pydantic, another says the same."""
    kind = type(error)
    try:
        copy: Exception = kind.__new__(kind, *error.args)
    except TypeError:
        return Exception(f"{kind.__name__}: {said(error)}")
    copy.args = error.args
    copy.__dict__.update(error.__dict__)
    cause = error.__cause__
    if isinstance(cause, Exception) and depth:
        copy.__cause__ = bare(cause, depth - 1)
    return copy


class _Contained:
    """Lets what would end more than the code inside be an error of that code."""

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
                raise Quit("CancelledError", "It gave up.") from error
            return
        raise Quit(type(error).__name__, said(error)) from error


def _is_signal(error: BaseException) -> bool:
    """Whether a person interrupts the program. Where `asyncio.run` handles the signal, it raises in
    its own code; a program that leaves it to Python is not told from code that raises by itself."""
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
    """A scope in which what would end more than the code inside is an error of that code.

    Raises:
        Quit: it left the program, gave up although nobody interrupts it, or the like.
    """
    return _CONTAINED


async def called(
    function: Callable[..., Any], *args: Any, limiter: CapacityLimiter | None = None
) -> Any:
    """What a function gives: an async one is called in the loop, a plain one in a thread."""
    if iscoroutinefunction(function):
        return await function(*args)
    given = await in_thread(partial(function, *args), limiter)
    return await given if isawaitable(given) else given
