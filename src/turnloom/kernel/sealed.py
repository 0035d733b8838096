"""Functions that can be called, but not inspected.

A sealed function has no attributes: the function behind it is kept here, under a weak reference,
so that no attribute of it leads to our objects.
"""

from collections.abc import Callable
from typing import Any, Never, TypeVar, cast, final
from weakref import ReferenceType, ref

from turnloom.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def sealed(function: F) -> F:
    """Wrap a function so that its closure and its attributes cannot be reached."""
    if isinstance(function, _Sealed):
        return cast(F, function)
    seal = _Sealed()
    _behind[ref(seal, _forget)] = function
    return cast(F, seal)


@final
class _Sealed:
    __slots__ = ("__weakref__",)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function."""
        return _function_of(self)(*args, **named)

    def __setattr__(self, name: str, value: object) -> Never:
        raise UsageError(f"This function is immutable: {name!r} cannot be set.")

    def __reduce__(self) -> Never:
        # Copying and pickling call this.
        raise UsageError("This function cannot be copied or pickled. Pass it as it is.")


_behind: dict[ReferenceType[_Sealed], Callable[..., Any]] = {}


def _function_of(seal: _Sealed) -> Callable[..., Any]:
    return _behind[ref(seal)]


def _forget(seal: ReferenceType[_Sealed]) -> None:
    if _behind:  # at exit it may be cleared before the last seal
        del _behind[seal]
