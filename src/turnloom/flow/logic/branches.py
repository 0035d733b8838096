"""The case of a branch that a value takes."""

from collections.abc import Iterable
from typing import Any


def matching_case(cases: Iterable[Any], value: Any) -> int | None:
    """The position of the first case that equals a value and has its type; None without one."""
    for number, case in enumerate(cases):
        if case == value and type(case) is type(value):
            return number
    return None
