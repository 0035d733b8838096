"""The live context of a run, as its tools and hooks have it."""

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, Protocol

from turnloom.kernel.values import Json


class Pad(Protocol):
    """Where a context reads and writes."""

    def read(self, name: str) -> Any:
        """The value of a variable; a list or an object can be changed in place.

        Raises:
            KeyError: it has none.
        """
        ...

    def copy(self, name: str) -> Any:
        """The value of a variable, of which changes in place change nothing.

        Raises:
            KeyError: it has none.
        """
        ...

    def names(self) -> Iterator[str]:
        """The variables that have a value."""
        ...

    def write(self, name: str, value: Any) -> None:
        """Give a variable a value.

        Raises:
            WriteRefused: it cannot be written, or not with this value.
        """
        ...

    def remove(self, name: str) -> None:
        """Take a variable's value away.

        Raises:
            KeyError: it has none.
            WriteRefused: it cannot be written.
        """
        ...


class Desk(Protocol):
    """What one call of a tool or hook may do besides reading and writing variables."""

    idempotency_key: str

    async def once(self, name: str, effect: Callable[[], Any]) -> Json:
        """What the effect gave when it was done; it is done unless that is on record."""
        ...


class Context(MutableMapping[str, Any]):
    """The variables of a run as a mapping; a write is checked, seen at once, and recorded.

    `context.set(name, value)`, `context[name] = value` and `context.data[name] = value` are the
    same write. A list or an object that is changed in place is written when the call ends. What is
    not JSON is kept in memory only.
    """

    def __init__(self, pad: Pad, desk: Desk) -> None:
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
        """The same mapping, under the name that AG2 gives it."""
        return self

    def set(self, name: str, value: object) -> None:
        """Give a variable a value."""
        self[name] = value

    def remove(self, name: str) -> bool:
        """Take a variable's value away; whether it had one."""
        found = name in self
        if found:
            del self[name]
        return found

    def contains(self, name: str) -> bool:
        """Whether a variable has a value."""
        return name in self

    def to_dict(self) -> dict[str, Json]:
        """All values of this moment, as a copy."""
        return {name: self._pad.copy(name) for name in self}

    @property
    def idempotency_key(self) -> str:
        """A text that this call always has, also when it is made again after a kill."""
        return self._desk.idempotency_key

    async def once(self, name: str, effect: Callable[[], Json | Awaitable[Json]]) -> Json:
        """What an effect of this call gave.

        An effect that completed and whose result is stored is never repeated, also when the call
        is entered again. One that was in flight when the process ended is repeated, with the same
        `idempotency_key`. `effect` takes nothing and gives JSON, or an awaitable of it; `name`
        tells it from the other effects of the call.
        """
        return await self._desk.once(name, effect)
