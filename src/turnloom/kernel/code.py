"""Names and signatures of Python code."""

from collections.abc import Callable
from functools import partial
from inspect import signature


def qualified(thing: object) -> str:
    """Where a function or class stands, as in `module.Class.method`; other objects by their class.

    It is the same in every process, which what `repr` gives is not. Names of ours leave out
    their module, so that plans stay the same when our code moves.
    """
    if isinstance(thing, partial):
        return qualified(thing.func)
    name = getattr(thing, "__qualname__", None)
    if not isinstance(name, str):
        return qualified(type(thing))
    package, _, _ = (module := getattr(thing, "__module__", None) or "builtins").partition(".")
    return f"{package if package == 'turnloom' else module}.{name}"


def fits(function: Callable[..., object], count: int) -> bool:
    """Whether a function can be called with so many values, as far as it says."""
    try:
        wanted = signature(function)
    except (TypeError, ValueError):
        return True
    try:
        wanted.bind(*range(count))
    except TypeError:
        return False
    return True
