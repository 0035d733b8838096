"""Facts about context variables."""

from datetime import datetime
from typing import ClassVar

import msgspec

from turnloom.kernel.values import Json
from turnloom.log.spec import Fact

# Prefix of the note of a variable whose store failed.
UNAVAILABLE = "unavailable: "


class InitialValue(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The first value of a variable; `origin` is the exact location it was read from."""

    name: str
    source: str
    value: Json = None
    raw: str | None = None
    defaulted: bool = False
    note: str = ""
    origin: str = ""


class ContextLoaded(Fact, frozen=True):
    """The first values of a run, each with its source."""

    kind: ClassVar[str] = "context.loaded"
    recorded: ClassVar[frozenset[str]] = frozenset({"values"})
    values: tuple[InitialValue, ...]


class ContextChanged(Fact, frozen=True):
    """A variable changed, or lost its value (`removed`).

    `undeclared` says that no definition has the name; `ephemeral` that the value is not JSON and
    exists only in memory.
    """

    kind: ClassVar[str] = "context.changed"
    recorded: ClassVar[frozenset[str]] = frozenset({"value", "previous"})
    name: str
    value: Json
    previous: Json = None
    writer: str = ""
    undeclared: bool = False
    ephemeral: bool = False
    removed: bool = False


class ContextRefused(Fact, frozen=True):
    """A write to a variable was rejected."""

    kind: ClassVar[str] = "context.refused"
    name: str
    writer: str
    reason: str


class ContextMissed(Fact, frozen=True):
    """An answer contained a value for a variable, but the tool that asked did not set it."""

    kind: ClassVar[str] = "context.missed"
    recorded: ClassVar[frozenset[str]] = frozenset({"value"})
    name: str
    tool: str
    key: str
    value: Json


class ContextSuppressed(Fact, frozen=True):
    """Variables that this deployment does not have, and the reason."""

    kind: ClassVar[str] = "context.suppressed"
    names: tuple[str, ...]
    reason: str


class TimerSet(Fact, frozen=True):
    """A timer of a trigger was set, or restarted."""

    kind: ClassVar[str] = "timer.set"
    timer: str
    due: datetime


class TimerExpired(Fact, frozen=True):
    """A timer expired."""

    kind: ClassVar[str] = "timer.expired"
    timer: str
