"""Subscriptions, the agents of a board, and boards as definitions of runs."""

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from turnloom.agents.spec import Agent, Answer, Component, Task
from turnloom.assembly.spec.providers import ChosenProvider
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import FilterConfig, Public, Reader, TagFilter, Visibility
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
    context: ChosenProvider | None = None
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


# Answers for an agent: an engine, a model by its name, or a function, plain or async, that gives an
# answer, a text, what is to be published (one value, or several), or nothing.
Answerer = Callable[[Task], object] | str

# Gives the score of what one try of an agent came to; the highest counts.
Score = Callable[[Answer], float | Awaitable[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A type of artifacts that an agent publishes, and what holds for each of them.

    `fan_out` says how many of them one turn gives, at least and at most; `validate` says of a value
    whether it may be published. With `inherit`, only those may see it who may see all that its
    turn was shown.
    """

    type: str
    visibility: Visibility = Public()
    tags: Set[str] = frozenset()
    fan_out: tuple[int, int | None] = (0, None)
    validate: Callable[[Any], Any] | None = None
    inherit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFilter:
    """Context that is chosen by what it is: the artifacts that a filter finds, at most so many, and
    what the turn's state holds under some keys."""

    filters: FilterConfig | None = None
    limit: int | None = None
    include_state_keys: Set[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An agent on a board: what wakes it, what it publishes, and what makes it answer."""

    agent: Agent
    subscriptions: tuple[Subscription, ...] = ()
    products: tuple[Product, ...] = ()
    engines: tuple[Answerer, ...] = ()
    tools: tuple[Callable[..., Any], ...] = ()
    components: tuple[Component, ...] = ()
    context: ChosenProvider | ContextFilter | Assembly | None = None
    labels: Set[str] = frozenset()
    tenant: str = ""
    samples: int = 1
    score: Score | None = None
    max_concurrency: int | None = None
    wakes_itself: bool = False

    def reader(self, tenant: str) -> Reader:
        """Who looks when this agent does, on a board of a tenant."""
        return Reader(self.agent.name, self.labels, tenant)

    def product(self, type: str) -> Product | None:
        """What it says of artifacts of a type, if it publishes them."""
        return next((each for each in self.products if each.type == type), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPlan:
    """A board as runs of it are pinned to: its agents by name, its text and the digest of that.

    `limit` is how many turns one publish may set off, and how many may follow from each other over
    several runs.
    """

    name: str
    members: Mapping[str, Member]
    limit: int
    text: str
    digest: str
    by_type: Mapping[str, tuple[Subscription, ...]] = field(
        default_factory=dict[str, tuple[Subscription, ...]]
    )

    def subscription(self, id: str) -> Subscription:
        """The subscription of this id."""
        agent = id.rpartition("#")[0]
        return next(each for each in self.members[agent].subscriptions if each.id == id)
