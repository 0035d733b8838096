"""Writes of tools and hooks: checked when they are made, recorded with the call's result."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from turnloom.errors import WriteRefused
from turnloom.kernel.marks import neutral
from turnloom.kernel.values import Json, as_array, as_object, is_text
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.types import apart, is_json, misfit, same
from turnloom.variables.spec import BAKED_IN, BASE, RUN_STATUS, Definition, Derived

# Why a write does not count that a call behind it in the same answer made as well.


class Removed:
    """What a variable is that was taken away."""


REMOVED = Removed()


class Held(NamedTuple):
    """What a run holds: recorded values, and what is in memory only.

    `ephemeral` names the values that are not JSON with the call that wrote each, `objects` has
    them by both as far as this process made them, and `shown` has what is recorded masked or not
    at all. `recorded` gives a value as it is recorded.
    """

    values: Mapping[str, Json]
    ephemeral: Mapping[str, str]
    objects: Mapping[tuple[str, str], Any]
    shown: Mapping[str, Json]
    definitions: Mapping[str, Definition]
    recorded: Callable[[Json], Json] = neutral

    def has(self, name: str) -> bool:
        """Whether the variable has a value here."""
        if name in self.ephemeral:
            return (name, self.ephemeral[name]) in self.objects
        return name in self.values or name in self.shown

    def read(self, name: str) -> Any:
        """The value of a variable that has one; a copy, unless it is an object."""
        if name in self.ephemeral:
            return self.objects[name, self.ephemeral[name]]
        return _copied(self.shown[name] if name in self.shown else self.values[name])


def ephemeral(value: Any) -> str:
    """What is recorded in place of a value that is not JSON."""
    return f"<ephemeral {type(value).__name__}>"


class Draft:
    """The values as one call sees them: those of the run, and over them what it wrote.

    A call that is made again (`after` the failed one) goes on with what was written before.
    """

    def __init__(self, held: Held, writer: str, after: "Draft | None" = None) -> None:
        self._held = held
        self._writer = writer
        self._written: dict[str, Json] = dict(after._written) if after else {}
        self._made: dict[str, Any] = dict(after._made) if after else {}
        self._refused: list[ContextRefused] = list(after._refused) if after else []
        self.closed = False

    def close(self) -> None:
        """Refuse whatever is written from now on: the call is over, and it would be lost."""
        self.closed = True

    @property
    def written(self) -> frozenset[str]:
        """The variables that the call wrote."""
        return frozenset(self._written)

    @property
    def made(self) -> Mapping[str, Any]:
        """What the call wrote that is not JSON, by variable."""
        return self._made

    def read(self, name: str) -> Any:
        """The value of a variable; a copy, unless it is an object."""
        if name in self._made:
            return self._made[name]
        if name in self._written:
            value = _copied(self._written[name])
        else:
            value = self._held.read(name) if self._held.has(name) else REMOVED
        if value is REMOVED:
            raise KeyError(name)
        return value

    def names(self) -> Iterator[str]:
        """The variables that have a value."""
        held = self._held
        for name in dict.fromkeys([*held.values, *held.shown, *self._written]):
            written = self._written.get(name)
            if written is not REMOVED and (name in self._written or held.has(name)):
                yield name

    def write(self, name: str, value: Any) -> None:
        """Give a variable a value, if it may have it.

        Raises:
            WriteRefused: it cannot be written, or not with this value.
        """
        self._check_open(name)
        problem = self._read_only(name) or self._misfit(name, value)
        if problem:
            self._refuse(name, problem)
        self._made.pop(name, None)
        if is_json(value):
            self._written[name] = apart(value)
        else:
            self._made[name], self._written[name] = value, ephemeral(value)

    def remove(self, name: str) -> None:
        """Take a variable's value away."""
        self._check_open(name)
        self.read(name)
        if problem := self._read_only(name):
            self._refuse(name, problem)
        self._made.pop(name, None)
        self._written[name] = REMOVED

    def _check_open(self, name: str) -> None:
        if self.closed:
            raise WriteRefused(
                f"{name!r} cannot be written any more: the call of {self._writer} is over. Write "
                "before it returns, and within its `timeout_s`."
            )

    def _refuse(self, name: str, problem: str) -> None:
        said = name if is_text(name) else ""
        self._refused.append(ContextRefused(said, self._writer, problem))
        raise WriteRefused(f"{problem}. {self._remedy(name)}")

    def _remedy(self, name: str) -> str:
        writable = [n for n, d in self._held.definitions.items() if isinstance(d.source, Derived)]
        if name in writable:
            return "Write a value of its type."
        return f"Write a derived variable ({', '.join(writable) or 'none is declared'})."

    def _read_only(self, name: str) -> str | None:
        if not is_text(name) or not name:
            return f"A variable is called by a text, not {name!r}"
        definition = self._held.definitions.get(name)
        if definition is not None and not isinstance(definition.source, Derived):
            return f"{name!r} comes from its {definition.source.type} source and is read-only"
        if name in BASE or name == RUN_STATUS or (definition is None and name in BAKED_IN):
            return f"{name!r} belongs to the run and is read-only"
        return None

    def _misfit(self, name: str, value: Any) -> str | None:
        definition = self._held.definitions.get(name)
        return misfit(definition, value) if definition is not None else None

    def facts(self) -> Iterator[ContextChanged | ContextRefused]:
        """What the writes come to, given the values of the moment they are recorded at."""
        for name, value in list(self._written.items()):
            if (change := self._change(name, value)) is not None:
                yield change
        yield from self._refused

    def _change(self, name: str, value: Json) -> ContextChanged | None:
        values, undeclared = self._held.values, name not in self._held.definitions
        previous, known = values.get(name), name in values
        if value is REMOVED:
            if not known:
                return None
            return ContextChanged(
                name, None, previous, self._writer, undeclared=undeclared, removed=True
            )
        value, kept = self._held.recorded(value), name not in self._made
        if known and kept and name not in self._held.ephemeral and same(previous, value):
            return None
        return ContextChanged(
            name, value, previous, self._writer, undeclared=undeclared, ephemeral=not kept
        )


def _copied(value: Json) -> Json:
    """A recorded value, such that nobody changes it from outside."""
    is_open = as_object(value) is not None or as_array(value) is not None
    return apart(value) if is_open else value
