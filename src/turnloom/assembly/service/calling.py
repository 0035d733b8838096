"""Calling functions of others that give texts."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from turnloom.errors import ContextUnavailable
from turnloom.kernel.contained import called
from turnloom.kernel.values import is_text

T = TypeVar("T")


async def text_from(call: Callable[[T], str | Awaitable[str]], given: T, what: str) -> str:
    """The text that a function makes of something; a plain function is called in a thread.

    Raises:
        ContextUnavailable: it gives something else.
    """
    text = await called(call, given)
    if not is_text(text):
        raise ContextUnavailable(f"{what} gave a {type(text).__name__!r}. Let it give a text.")
    return str(text)
