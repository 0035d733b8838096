"""Code of users, whose end is its own affair."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from weft.kernel.values import said


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


@contextmanager
def contained() -> Generator[None]:
    """Let what would end more than the code inside be an error of that code.

    Raises:
        Quit: it left the program, gave up although nobody interrupts it, or the like.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt, Interrupted):
        raise
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise Quit("CancelledError", "It gave up.") from error
    except BaseException as error:
        raise Quit(type(error).__name__, said(error)) from error
