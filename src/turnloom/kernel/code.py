"""Names and signatures of Python code."""

from collections.abc import Callable
from functools import partial
from inspect import signature


def qualified(thing: object) -> str:
    """The qualified name of a function or class, as in `module.Class.method`, or of an object's
    class.

    Unlike `repr`, it is the same in every process. Our own names leave out their module, so that
    plans stay the same when our code moves.
    """
    if isinstance(thing, partial):
        return qualified(thing.func)
    name = getattr(thing, "__qualname__", None)
    if not isinstance(name, str):
        return qualified(type(thing))
    package, _, _ = (module := getattr(thing, "__module__", None) or "builtins").partition(".")
    return f"{package if package == 'turnloom' else module}.{name}"


def fits(function: Callable[..., object], count: int) -> bool:
    """Whether a function accepts `count` positional arguments, as far as its signature says."""
    try:
        wanted = signature(function)
    except (TypeError, ValueError):
        return True
    try:
        wanted.bind(*range(count))
    except TypeError:
        return False
    return True
