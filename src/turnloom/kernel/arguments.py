"""What a program gives, checked where it comes in.

Each function gives an argument as it is kept, and raises a UsageError when it cannot be one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from turnloom.errors import UsageError
from turnloom.kernel.values import is_name, is_text, plain_string, preview

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# How long the name or the id of something is at most.
NAME_LENGTH = 1000
# The largest number of things or seconds that means anything: every store and timer can hold it.
MOST = 2**53


def as_string(value: object, what: str) -> str:
    """A text, empty or not; of a subclass of `str`, its plain text."""
    text = plain_string(value)
    if is_text(text):
        return text
    raise wrong(what, value, "Give a string that can be written as UTF-8.")


def as_text(value: object, what: str) -> str:
    """A text that says something."""
    text = plain_string(value)
    if is_text(text) and text.strip():
        return text
    raise wrong(what, value, "Give a text that is not empty.")


def as_name(value: object, what: str) -> str:
    """A text that can name something."""
    name = plain_string(value)
    if is_name(name) and len(name) <= NAME_LENGTH:
        return name
    remedy = f"Give a name: a string of 1 to {NAME_LENGTH} characters, none of them NUL."
    raise wrong(what, value, remedy)


def as_names(values: object, what: str) -> frozenset[str]:
    """A set of names; one text is not taken for a set of letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong(what, values, "Give a set, as in {'name'}.")
    each = f"One of {what}"
    return frozenset(as_name(value, each) for value in cast(Iterable[object], values))


def as_count(value: object, what: str, least: int = 1) -> int:
    """A whole number from `least` on."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST:
        return int(value)
    raise wrong(what, value, f"Give a whole number from {least} on.")


def as_flag(value: object, what: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong(what, value, "Give True or False.")
    return value


def as_seconds(value: object, what: str) -> float | None:
    """Seconds to wait, or nothing."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST:
        return float(value)
    raise wrong(what, value, "Give seconds, or None for any time.")


def as_function(value: F, what: str) -> F:
    """Something that can be called."""
    if not callable(value):
        raise wrong(what, value, "Give a function.")
    return value


def as_made(value: F, what: str) -> F:
    """Something that can be called; not a class, which only makes such things."""
    if isinstance(value, type):
        name = value.__name__
        raise UsageError(f"{what} is the class {name!r}. Make one of it, as in {name}().")
    return as_function(value, what)


def as_one_of(value: T, kind: type[T], what: str) -> T:
    """Something of a class."""
    if not isinstance(cast(object, value), kind):
        raise wrong(what, value, f"Give a `{kind.__name__}`.")
    return value


def wrong(what: str, value: object, remedy: str) -> UsageError:
    """The error of an argument that cannot be what it is."""
    return UsageError(f"{what} is {preview(value)}. {remedy}")


def need(given: Sequence[object], what: str) -> None:
    """Refuse a call that names nothing."""
    if not given:
        raise UsageError(f"It names nothing. Give it {what} at least.")


def refuse_repeats(keys: Sequence[Any], problem: str) -> None:
    """Refuse a call that names something twice."""
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise UsageError(f"{problem.format(repr(key))} Drop one of them.")
