"""Writes of tools and hooks: checked at once, recorded with the result of the call."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from turnloom.errors import WriteRefused
from turnloom.kernel.marks import neutral
from turnloom.kernel.values import Json, as_array, as_object, is_text
from turnloom.variables.events import ContextChanged, ContextRefused
from turnloom.variables.logic.types import apart, is_json, misfit, same
from turnloom.variables.spec import BAKED_IN, BASE, RUN_STATUS, Derived, VariableDefinition


class RemovedValue:
    """The value of a removed variable."""


REMOVED = RemovedValue()


class HeldValues(NamedTuple):
    """The values of a run: recorded ones, and those in memory only.

    `ephemeral` maps the names of values that are not JSON to the call that wrote each, `objects`
    has those that this process created, and `shown` has the clear values of those recorded masked
    or not at all. `recorded` returns a value as it is recorded.
    """

    values: Mapping[str, Json]
    ephemeral: Mapping[str, str]
    objects: Mapping[tuple[str, str], Any]
    shown: Mapping[str, Json]
    definitions: Mapping[str, VariableDefinition]
    recorded: Callable[[Json], Json] = neutral

    def has(self, name: str) -> bool:
        """Whether the variable has a value in this process."""
        if name in self.ephemeral:
            return (name, self.ephemeral[name]) in self.objects
        return name in self.values or name in self.shown

    def read(self, name: str) -> Any:
        """The value of a variable; a copy, unless it is ephemeral."""
        if name in self.ephemeral:
            return self.objects[name, self.ephemeral[name]]
        return _copied(self.shown[name] if name in self.shown else self.values[name])


def ephemeral(value: Any) -> str:
    """The recorded replacement of a value that is not JSON."""
    return f"<ephemeral {type(value).__name__}>"


class LentValue(NamedTuple):
    """A list or object that the call may change in place, and its original text."""

    value: Json
    text: bytes


class VariableWrite(NamedTuple):
    """One write of a call: the recorded value, or `REMOVED`."""

    name: str
    value: Any
    ephemeral: bool = False


class DraftValues:
    """The values as one call sees them: those of the run, overlaid with its writes.

    Lists and objects can be changed in place; such changes are written when the call is closed. A
    repeated call (`after` the failed one) keeps the earlier writes.
    """

    def __init__(self, held: HeldValues, writer: str, after: "DraftValues | None" = None) -> None:
        self._held = held
        self._writer = writer
        self._writes: list[VariableWrite] = list(after._writes) if after else []
        self._written: dict[str, Any] = dict(after._written) if after else {}
        self._made: dict[str, Any] = dict(after._made) if after else {}
        self._refused: list[ContextRefused] = list(after._refused) if after else []
        self._lent: dict[str, LentValue] = {}
        self.closed = False

    def close(self) -> WriteRefused | None:
        """Write changes in place, and reject later writes, which would be lost. Returns the first
        refusal of a change in place."""
        refusals: list[WriteRefused] = []
        for name, lent in list(self._lent.items()):
            try:
                if _text(lent.value) != lent.text:
                    self.write(name, lent.value)
            except WriteRefused as error:
                why = "It was changed in place; copy it first for a private change."
                refusals.append(WriteRefused(f"{error} {why}"))
        self.closed = True
        return refusals[0] if refusals else None

    @property
    def written(self) -> frozenset[str]:
        """The variables that the call wrote."""
        return frozenset(self._written)

    @property
    def made(self) -> Mapping[str, Any]:
        """The values that the call wrote and that are not JSON, by variable."""
        return self._made

    def read(self, name: str) -> Any:
        """The value of a variable; changes in place are written when the call ends."""
        if name in self._made:
            return self._made[name]
        if name in self._lent:
            return self._lent[name].value
        value = self.copy(name)
        if name in self._written or name not in self._held.ephemeral:
            self._lend(name, value)
        return value

    def copy(self, name: str) -> Any:
        """The value of a variable; a copy, unless it is ephemeral."""
        if name in self._made:
            return self._made[name]
        if name in self._lent:
            return _copied(self._lent[name].value)
        if name in self._written:
            value = _copied(self._written[name])
        else:
            value = self._held.read(name) if self._held.has(name) else REMOVED
        if value is REMOVED:
            raise KeyError(name)
        return value

    def _lend(self, name: str, value: Json) -> None:
        if _is_open(value) and (text := _text(value)) is not None:
            self._lent[name] = LentValue(value, text)

    def names(self) -> Iterator[str]:
        """The variables that have a value."""
        held = self._held
        for name in dict.fromkeys([*held.values, *held.shown, *self._written]):
            written = self._written.get(name)
            if written is not REMOVED and (name in self._written or held.has(name)):
                yield name

    def write(self, name: str, value: Any) -> None:
        """Set a variable.

        Raises:
            WriteRefused: it is read-only, or rejects this value.
        """
        self._check_open(name)
        problem = self._read_only(name) or self._unnamable(name) or self._misfit(name, value)
        if problem:
            self._refuse(name, problem)
        if is_json(value):
            self._put(VariableWrite(name, apart(value)))
            self._lend(name, value)
        else:
            self._put(VariableWrite(name, ephemeral(value), ephemeral=True))
            self._made[name] = value

    def remove(self, name: str) -> None:
        """Remove a variable's value."""
        self._check_open(name)
        self.copy(name)
        if problem := self._read_only(name):
            self._refuse(name, problem)
        self._put(VariableWrite(name, REMOVED))

    def _put(self, write: VariableWrite) -> None:
        self._made.pop(write.name, None)
        self._lent.pop(write.name, None)
        self._written[write.name] = write.value
        self._writes.append(write)

    def _check_open(self, name: str) -> None:
        if self.closed:
            raise WriteRefused(
                f"{name!r} cannot be written: the call of {self._writer} has ended. Write before "
                "it returns, and within its `timeout_s`."
            )

    def _refuse(self, name: str, problem: str) -> None:
        said = self._held.recorded(name) if is_text(name) else ""
        self._refused.append(ContextRefused(said, self._writer, problem))
        raise WriteRefused(f"{problem}. {self._remedy(name)}")

    def _remedy(self, name: str) -> str:
        writable = [n for n, d in self._held.definitions.items() if isinstance(d.source, Derived)]
        if name in writable:
            return "Write a value of its type."
        return f"Write a derived variable ({', '.join(writable) or 'none is declared'})."

    def _read_only(self, name: str) -> str | None:
        if not is_text(name) or not name:
            return f"The name of a variable must be a text, not {name!r}"
        definition = self._held.definitions.get(name)
        if definition is not None and not isinstance(definition.source, Derived):
            return f"{name!r} has a {definition.source.type} source and is read-only"
        if name in BASE or name == RUN_STATUS or (definition is None and name in BAKED_IN):
            return f"{name!r} belongs to the run and is read-only"
        return None

    def _unnamable(self, name: str) -> str | None:
        """The problem with an undeclared name that contains a secret: names are not masked."""
        if name in self._held.definitions or self._held.recorded(name) == neutral(name):
            return None
        return "The name of the variable contains a secret, and names are recorded unmasked"

    def _misfit(self, name: str, value: Any) -> str | None:
        definition = self._held.definitions.get(name)
        return misfit(definition, value) if definition is not None else None

    def facts(self) -> Iterator[ContextChanged | ContextRefused]:
        """The facts of the writes, relative to the values at the time of recording."""
        now: dict[str, VariableWrite] = {}
        for write in self._writes:
            if (change := self._change(write, now.get(write.name))) is not None:
                value = REMOVED if change.removed else change.value
                now[write.name] = write._replace(value=value)
                yield change
        yield from self._refused

    def _change(self, write: VariableWrite, before: VariableWrite | None) -> ContextChanged | None:
        """The change that a write makes, if any, after an earlier write of this call."""
        name, held = write.name, self._held
        previous, known = held.values.get(name), name in held.values
        was_object = name in held.ephemeral
        if before is not None:
            previous, known, was_object = before.value, True, before.ephemeral
        if previous is REMOVED:
            previous, known = None, False
        undeclared = name not in held.definitions
        if write.value is REMOVED:
            gone = ContextChanged(
                name, None, previous, self._writer, undeclared=undeclared, removed=True
            )
            return gone if known else None
        value = held.recorded(write.value)
        is_object = was_object or write.ephemeral
        if known and not is_object and same(previous, value):
            return None
        return ContextChanged(
            name,
            value,
            previous,
            self._writer,
            undeclared=undeclared,
            ephemeral=write.ephemeral,
        )


def _is_open(value: Json) -> bool:
    return as_object(value) is not None or as_array(value) is not None


def _copied(value: Json) -> Json:
    """An independent copy of a recorded value."""
    return apart(value) if _is_open(value) else value


def _text(value: Json) -> bytes | None:
    """The JSON of a value, or None if it has none."""
    try:
        return msgspec.json.encode(value)
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return None
