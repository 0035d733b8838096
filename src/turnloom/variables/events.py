"""What happened to context variables."""

from datetime import datetime
from typing import ClassVar

import msgspec

from turnloom.kernel.values import Json
from turnloom.log.spec import Fact

# What the note of a variable begins with whose store did not answer.
UNAVAILABLE = "unavailable: "


class InitialValue(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How one variable got its first value; `origin` is where exactly it was looked for."""

    name: str
    source: str
    value: Json = None
    raw: str | None = None
    defaulted: bool = False
    note: str = ""
    origin: str = ""


class ContextLoaded(Fact, frozen=True):
    """The first values of a run, each with where it came from."""

    kind: ClassVar[str] = "context.loaded"
    recorded: ClassVar[frozenset[str]] = frozenset({"values"})
    values: tuple[InitialValue, ...]


class ContextChanged(Fact, frozen=True):
    """A variable took another value, or lost it (`removed`).

    `undeclared` says that no definition has the name; `ephemeral` that the value is no JSON and
    lives in the memory of the process alone.
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
    """Somebody wanted a variable to take a value that it cannot have."""

    kind: ClassVar[str] = "context.refused"
    name: str
    writer: str
    reason: str


class ContextMissed(Fact, frozen=True):
    """An answer held a value for a variable, and the tool that asked did not set it."""

    kind: ClassVar[str] = "context.missed"
    recorded: ClassVar[frozenset[str]] = frozenset({"value"})
    name: str
    tool: str
    key: str
    value: Json


class ContextSuppressed(Fact, frozen=True):
    """Variables that this deployment does not have, and why."""

    kind: ClassVar[str] = "context.suppressed"
    names: tuple[str, ...]
    reason: str


class TimerSet(Fact, frozen=True):
    """A trigger will fire at an instant; a timer that is set again starts again."""

    kind: ClassVar[str] = "timer.set"
    timer: str
    due: datetime


class TimerExpired(Fact, frozen=True):
    """The instant has come."""

    kind: ClassVar[str] = "timer.expired"
    timer: str
