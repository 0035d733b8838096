"""What functions say about the values that they take."""

from collections.abc import Callable
from inspect import signature


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
