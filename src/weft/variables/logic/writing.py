"""Writes of tools and hooks: checked when they are made, recorded with the call's result."""

from collections.abc import Iterator, Mapping, Set
from copy import deepcopy
from typing import Any, NamedTuple, cast

from weft.errors import WriteRefused
from weft.kernel.values import Json, as_array, as_object
from weft.variables.events import ContextChanged, ContextRefused
from weft.variables.logic.types import is_json, misfit, same
from weft.variables.spec import BAKED_IN, BASE, Definition, Derived

# The status of a run, which hooks after its end can read.
RUN_STATUS = "run_status"


class Removed:
    """What a variable is that was taken away."""


REMOVED = Removed()


class Held(NamedTuple):
    """What a run holds: recorded values, and what is in memory only.

    `ephemeral` names the values that are not JSON, `objects` has them as far as this process made
    them, and `shown` has what is recorded masked or not at all.
    """

    values: Mapping[str, Json]
    ephemeral: Mapping[str, str]
    objects: Mapping[str, Any]
    shown: Mapping[str, Json]
    definitions: Mapping[str, Definition]

    def has(self, name: str) -> bool:
        """Whether the variable has a value here."""
        if name in self.ephemeral:
            return name in self.objects
        return name in self.values or name in self.shown

    def read(self, name: str) -> Any:
        """The value of a variable that has one."""
        if name in self.ephemeral:
            return self.objects[name]
        return self.shown[name] if name in self.shown else self.values[name]


def ephemeral(value: Any) -> str:
    """What is recorded in place of a value that is not JSON."""
    return f"<ephemeral {type(value).__name__}>"


class Draft:
    """The values as one call sees them: those of the run, and over them what it wrote."""

    def __init__(self, held: Held, writer: str) -> None:
        self._held = held
        self._writer = writer
        self._written: dict[str, Any] = {}
        self._refused: list[ContextRefused] = []

    @property
    def written(self) -> frozenset[str]:
        """The variables that the call wrote."""
        return frozenset(self._written)

    @property
    def objects(self) -> dict[str, Any]:
        """What the call wrote that is not JSON."""
        return {
            name: value
            for name, value in self._written.items()
            if value is not REMOVED and not is_json(value)
        }

    def read(self, name: str) -> Any:
        """The value of a variable; a copy where it could be changed from outside."""
        if name in self._written:
            value = self._written[name]
        else:
            value = self._held.read(name) if self._held.has(name) else REMOVED
        if value is REMOVED:
            raise KeyError(name)
        return _apart(value)

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
        problem = self._read_only(name) or self._misfit(name, value)
        if problem:
            self._refuse(name, problem)
        self._written[name] = _apart(value)

    def remove(self, name: str) -> None:
        """Take a variable's value away."""
        self.read(name)
        if problem := self._read_only(name):
            self._refuse(name, problem)
        self._written[name] = REMOVED

    def _refuse(self, name: str, problem: str) -> None:
        self._refused.append(ContextRefused(name, self._writer, problem))
        raise WriteRefused(f"{problem}. {self._remedy(name)}")

    def _remedy(self, name: str) -> str:
        writable = [n for n, d in self._held.definitions.items() if isinstance(d.source, Derived)]
        if name in writable:
            return "Write a value of its type."
        return f"Write a derived variable ({', '.join(writable) or 'none is declared'})."

    def _read_only(self, name: str) -> str | None:
        if not isinstance(cast(object, name), str) or not name:
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

    def facts(self, overruled: Set[str] = frozenset()) -> Iterator[ContextChanged | ContextRefused]:
        """What the writes come to, given the values of the moment they are recorded at."""
        for name, value in self._written.items():
            change = None if name in overruled else self._change(name, value)
            if change is not None:
                yield change
        yield from self._refused

    def _change(self, name: str, value: Any) -> ContextChanged | None:
        values, undeclared = self._held.values, name not in self._held.definitions
        previous = values.get(name)
        if value is REMOVED:
            if name not in values:
                return None
            return ContextChanged(
                name, None, previous, self._writer, undeclared=undeclared, removed=True
            )
        kept = is_json(value)
        shown = value if kept else ephemeral(value)
        if name in values and same(previous, shown) and kept == (name not in self._held.ephemeral):
            return None
        return ContextChanged(
            name, shown, previous, self._writer, undeclared=undeclared, ephemeral=not kept
        )


def _apart(value: Any) -> Any:
    """The value, such that nobody else changes it by changing theirs."""
    is_data = (as_object(value) is not None or as_array(value) is not None) and is_json(value)
    return deepcopy(value) if is_data else value
