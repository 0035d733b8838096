"""The live variables of a run, for tools and hooks."""

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Protocol

from turnloom.kernel.values import Json


class VariableAccess(Protocol):
    """Read and write access to variables."""

    def read(self, name: str) -> Any:
        """The value of a variable; a list or an object can be changed in place.

        Raises:
            KeyError: it has no value.
        """
        ...

    def copy(self, name: str) -> Any:
        """A copy of the value of a variable.

        Raises:
            KeyError: it has no value.
        """
        ...

    def names(self) -> Iterator[str]:
        """The variables that have a value."""
        ...

    def write(self, name: str, value: Any) -> None:
        """Set a variable.

        Raises:
            WriteRefused: it is read-only, or rejects this value.
        """
        ...

    def remove(self, name: str) -> None:
        """Remove a variable's value.

        Raises:
            KeyError: it has no value.
            WriteRefused: it is read-only.
        """
        ...


class EffectAccess(Protocol):
    """Effects of a tool or hook call."""

    idempotency_key: str

    async def once(self, name: str, effect: Callable[[], Any]) -> Json:
        """The recorded result of the effect; without one, run it."""
        ...


class Context(MutableMapping[str, Any]):
    """The variables of a run as a mapping; a write is checked, visible at once, and recorded.

    `context.set(name, value)`, `context[name] = value` and `context.data[name] = value` are
    equivalent. A list or object changed in place is written when the call ends. Values that are not
    JSON are kept in memory only.
    """

    def __init__(self, pad: VariableAccess, desk: EffectAccess) -> None:
        self._pad = pad
        self._desk = desk

    def __getitem__(self, name: str) -> Any:
        return self._pad.read(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._pad.write(name, value)

    def __delitem__(self, name: str) -> None:
        self._pad.remove(name)

    def __iter__(self) -> Iterator[str]:
        return self._pad.names()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"Context({', '.join(self)})"

    @property
    def data(self) -> "Context":
        """The same mapping, under AG2's name."""
        return self

    def set(self, name: str, value: object) -> None:
        """Set a variable."""
        self[name] = value

    def remove(self, name: str) -> bool:
        """Remove a variable's value; return whether it had one."""
        found = name in self
        if found:
            del self[name]
        return found

    def contains(self, name: str) -> bool:
        """Whether a variable has a value."""
        return name in self

    def to_dict(self) -> dict[str, Json]:
        """A copy of all current values."""
        return {name: self._pad.copy(name) for name in self}

    @property
    def idempotency_key(self) -> str:
        """A key that identifies this call, also when it is repeated after a crash."""
        return self._desk.idempotency_key

    async def once(self, name: str, effect: Callable[[], Json | Awaitable[Json]]) -> Json:
        """The result of an effect of this call, run at most once.

        An effect with a stored result is never repeated, even if the call runs again. An effect in
        flight when the process ended is repeated with the same `idempotency_key`. `effect` takes no
        arguments and returns JSON, or an awaitable of it; `name` identifies it within the call.
        """
        return await self._desk.once(name, effect)
