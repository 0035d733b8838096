"""Facts, and the events that record them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, NamedTuple

import msgspec
from typing_extensions import TypeVar

K_co = TypeVar("K_co", bound=str, default=str, covariant=True)
D_co = TypeVar("D_co", default=Any, covariant=True)

# The default tenant.
LOCAL = "local"


class RunKey(NamedTuple):
    """The key of a run: its tenant, and its id among that tenant's runs."""

    tenant: str
    id: str


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """Something that happened. Subclasses name their `kind`, and in `recorded` the fields that are
    built from recorded data: a mark of a secret in them is genuine. All other text is from
    outside."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    recorded: ClassVar[frozenset[str]] = frozenset()


class Intent(Fact, frozen=True):
    """Something that is about to be done; `request` is the digest of its exact input."""

    request: str


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """Placeholder for a fact that this release cannot read, in lists of runs. It is never
    stored."""

    reason: str


# The kind of an event that cannot be read.
UNREADABLE = "unreadable"


# Statuses of runs that have not ended.
OPEN = frozenset({"waiting", "collecting", "unfinished"})


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are listed: by `statuses`, `workflow`, `user`, or start time (both ends included).
    What is left out does not restrict."""

    statuses: frozenset[str] = frozenset()
    workflow: str | None = None
    user: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it selects only runs without a recorded end."""
        return bool(self.statuses) and self.statuses <= OPEN


# Chooses every run.
EVERY_RUN = RunFilter()


def progress_words(status: str, collected: int | None, wanted: int | None) -> str:
    """A status with the number of artifacts collected, as in `collecting 2 of 3`."""
    there = "" if collected is None else f" {collected}"
    return f"{status}{there}{'' if wanted is None else f' of {wanted}'}"


class Event(msgspec.Struct, Generic[K_co, D_co], frozen=True, omit_defaults=True, gc=False):
    """A recorded fact: its run, its position, when it happened, who caused it, and the causing
    event.

    The `kind` tells the type of `data`: `turnloom.RunEvent` is the union of all.
    """

    id: str
    run: str
    seq: int
    at: datetime
    kind: K_co
    actor: str
    data: D_co
    cause: int | None = None
    v: int = 1
