"""Validation of the arguments that programs pass.

Each function returns the argument in its normal form, or raises a UsageError.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from turnloom.errors import UsageError
from turnloom.kernel.values import is_name, is_text, plain_string, preview

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

# The maximum length of a name or an id.
NAME_LENGTH = 1000
# The largest count or number of seconds that every store and timer can hold.
MOST = 2**53


def as_string(value: object, what: str) -> str:
    """A string, possibly empty; a subclass of `str` becomes a plain one."""
    text = plain_string(value)
    if is_text(text):
        return text
    raise wrong(what, value, "Give a string that can be written as UTF-8.")


def as_text(value: object, what: str) -> str:
    """A string that is not blank."""
    text = plain_string(value)
    if is_text(text) and text.strip():
        return text
    raise wrong(what, value, "Give a string that is not empty.")


def as_name(value: object, what: str) -> str:
    """A valid name."""
    name = plain_string(value)
    if is_name(name) and len(name) <= NAME_LENGTH:
        return name
    remedy = f"Give a name: a string of 1 to {NAME_LENGTH} characters, none of them NUL."
    raise wrong(what, value, remedy)


def as_names(values: object, what: str) -> frozenset[str]:
    """A set of names; a single string is refused, not split into letters."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong(what, values, "Give a set, as in {'name'}.")
    each = f"One of {what}"
    return frozenset(as_name(value, each) for value in cast(Iterable[object], values))


def as_count(value: object, what: str, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST:
        return int(value)
    raise wrong(what, value, f"Give a whole number of at least {least}.")


def as_flag(value: object, what: str) -> bool:
    """A bool."""
    if not isinstance(value, bool):
        raise wrong(what, value, "Give True or False.")
    return value


def as_seconds(value: object, what: str) -> float | None:
    """Seconds to wait, or None."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST:
        return float(value)
    raise wrong(what, value, "Give a number of seconds, or None for no limit.")


def as_function(value: F, what: str) -> F:
    """A callable."""
    if not callable(value):
        raise wrong(what, value, "Give a function.")
    return value


def as_made(value: F, what: str) -> F:
    """A callable instance; a class is refused."""
    if isinstance(value, type):
        name = value.__name__
        raise UsageError(f"{what} is the class {name!r}. Pass an instance, as in {name}().")
    return as_function(value, what)


def as_one_of(value: T, kind: type[T], what: str) -> T:
    """An instance of a class."""
    if not isinstance(cast(object, value), kind):
        raise wrong(what, value, f"Give a `{kind.__name__}`.")
    return value


def wrong(what: str, value: object, remedy: str) -> UsageError:
    """The error for an invalid argument."""
    return UsageError(f"{what} is {preview(value)}. {remedy}")


def need(given: Sequence[object], what: str) -> None:
    """Refuse a call without arguments."""
    if not given:
        raise UsageError(f"The call has no arguments. Give at least {what}.")


def refuse_repeats(keys: Sequence[Any], problem: str) -> None:
    """Refuse a call that names the same thing twice."""
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise UsageError(f"{problem.format(repr(key))} Drop one of them.")
