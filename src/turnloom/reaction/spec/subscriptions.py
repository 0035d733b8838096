"""What wakes an agent: kinds of artifacts, alone, together, or so many at a time."""

from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from turnloom.assembly.spec.providers import Chosen
from turnloom.board.spec import TagFilter
from turnloom.errors import UsageError

# As many seconds as there can be.
FOREVER = timedelta.max.total_seconds()

# Says of an artifact's value whether a subscription wants it; may be async.
Predicate = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Join:
    """Inputs that belong together: those with the same key, over all correlations.

    `by` gives the key of a value (a function, or a path into the payload). `within` is how long
    each of them waits for the others, or how many artifacts later at most they come.
    """

    by: Callable[[Any], Any] | str
    within: timedelta | int | None = None

    def __post_init__(self) -> None:
        if not callable(self.by) and not _is_path(self.by):
            raise UsageError(
                f"Join.by is {self.by!r}. Give a path as in 'order.id', or a function of the value."
            )
        if self.within is not None and not _is_window(self.within):
            raise UsageError(
                f"Join.within is {self.within!r}. Give a timedelta above 0, or a number of "
                "artifacts from 1 on."
            )


@dataclass(frozen=True, slots=True)
class Batch:
    """So many at a time, over all correlations: taken at a size, or a time after the first came.

    What is there when the board is closed is taken as well.
    """

    size: int | None = None
    timeout: timedelta | float | None = None

    def __post_init__(self) -> None:
        if self.size is None and self.timeout is None:
            raise UsageError("Batch() would never be full. Give it a `size`, a `timeout`, or both.")
        if self.size is not None and not is_count(self.size):
            raise UsageError(f"Batch.size is {self.size!r}. Give a whole number from 1 on.")
        if self.timeout is not None and not _is_time(self.timeout):
            raise UsageError(
                f"Batch.timeout is {self.timeout!r}. Give a timedelta or seconds, above 0."
            )

    @property
    def wait(self) -> timedelta:
        """How long the first one waits at most."""
        if isinstance(self.timeout, timedelta):
            return self.timeout
        return timedelta.max if self.timeout is None else timedelta(seconds=self.timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What an agent consumes: one artifact of each type, in this order; a type twice is two."""

    id: str
    agent: str
    types: tuple[str, ...]
    where: tuple[Predicate, ...] = ()
    from_agents: Set[str] | None = None
    tags: TagFilter | None = None
    join: Join | None = None
    batch: Batch | None = None
    context: Chosen | None = None
    priority: int = 0

    @property
    def spans(self) -> bool:
        """Whether it looks beyond one correlation."""
        return self.join is not None or self.batch is not None


def _is_path(value: object) -> bool:
    return isinstance(value, str) and all(value.split("."))


def is_count(value: object) -> bool:
    """Whether a value is a whole number from 1 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def is_seconds(value: object) -> bool:
    """Whether a value is a number of seconds above 0 that ends."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < FOREVER


def _is_time(value: object) -> bool:
    return value > timedelta(0) if isinstance(value, timedelta) else is_seconds(value)


def _is_window(value: object) -> bool:
    return value > timedelta(0) if isinstance(value, timedelta) else is_count(value)
