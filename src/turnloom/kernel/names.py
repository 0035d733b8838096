"""Names of things in code."""

from functools import partial

# The tenant of whatever names none.
LOCAL = "local"


def qualified(thing: object) -> str:
    """Where a function or class stands, as in `module.Class.method`; other objects by their class.

    It is the same in every process, which what `repr` gives is not.
    """
    if isinstance(thing, partial):
        return qualified(thing.func)
    name = getattr(thing, "__qualname__", None)
    if not isinstance(name, str):
        return qualified(type(thing))
    return f"{getattr(thing, '__module__', None) or 'builtins'}.{name}"
