"""Functions that can be called, and lead nowhere else.

A sealed function holds nothing: what it calls is kept here, under a weak reference to it, so that
no attribute that can be reached from it leads to what stands behind it.
"""

from collections.abc import Callable
from typing import Any, Never, TypeVar, cast, final
from weakref import ReferenceType, ref

from turnloom.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def sealed(function: F) -> F:
    """A function that does the same, and gives nobody a way to what it does it with."""
    if isinstance(function, _Sealed):
        return cast(F, function)
    seal = _Sealed()
    _behind[ref(seal, _forget)] = function
    return cast(F, seal)


@final
class _Sealed:
    __slots__ = ("__weakref__",)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the function gives."""
        return _function_of(self)(*args, **named)

    def __setattr__(self, name: str, value: object) -> Never:
        raise UsageError(f"This function does not change: {name!r} cannot be set.")

    def __reduce__(self) -> Never:
        # What copies and pickles an object asks for this.
        raise UsageError("This function is neither copied nor stored. Pass it on as it is.")


_behind: dict[ReferenceType[_Sealed], Callable[..., Any]] = {}


def _function_of(seal: _Sealed) -> Callable[..., Any]:
    return _behind[ref(seal)]


def _forget(seal: ReferenceType[_Sealed]) -> None:
    if _behind:  # it may be gone before a seal that lasts as long as the program
        del _behind[seal]
