"""Subscriptions, products, agents of a board, and the plan of a board."""

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from turnloom.agents.spec import Agent, Answer, Component, Task
from turnloom.assembly.spec.providers import ChosenProvider
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import FilterConfig, Public, Reader, TagFilter, Visibility
from turnloom.errors import UsageError

# The maximum number of seconds.
FOREVER = timedelta.max.total_seconds()

# Decides whether a subscription wants an artifact's value; may be async.
Predicate = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Join:
    """Joins inputs with the same key, across correlations.

    `by` is the key: a function of the value, or a path into the payload. `within` limits how long
    an input waits for the others: a time, or a number of artifacts.
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
                "artifacts of at least 1."
            )


@dataclass(frozen=True, slots=True)
class Batch:
    """Collects inputs across correlations, up to a size or for a time after the first.

    Closing the board closes the batch too.
    """

    size: int | None = None
    timeout: timedelta | float | None = None

    def __post_init__(self) -> None:
        if self.size is None and self.timeout is None:
            raise UsageError("Batch() would never be full. Give a `size`, a `timeout`, or both.")
        if self.size is not None and not is_count(self.size):
            raise UsageError(f"Batch.size is {self.size!r}. Give a whole number of at least 1.")
        if self.timeout is not None and not _is_time(self.timeout):
            raise UsageError(
                f"Batch.timeout is {self.timeout!r}. Give a timedelta or seconds, above 0."
            )

    @property
    def wait(self) -> timedelta:
        """How long the first input waits at most."""
        if isinstance(self.timeout, timedelta):
            return self.timeout
        return timedelta.max if self.timeout is None else timedelta(seconds=self.timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A subscription of an agent: one artifact of each type, in this order; a type may repeat."""

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
        """Whether it collects across correlations."""
        return self.join is not None or self.batch is not None

    @property
    def takes_each(self) -> bool:
        """Whether the agent gets each artifact by itself, as it arrives."""
        return len(self.types) == 1 and not self.spans


def _is_path(value: object) -> bool:
    return isinstance(value, str) and all(value.split("."))


def is_count(value: object) -> bool:
    """Whether a value is a whole number of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def is_seconds(value: object) -> bool:
    """Whether a value is a finite number of seconds above 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < FOREVER


def _is_time(value: object) -> bool:
    return value > timedelta(0) if isinstance(value, timedelta) else is_seconds(value)


def _is_window(value: object) -> bool:
    return value > timedelta(0) if isinstance(value, timedelta) else is_count(value)


# Answers for an agent: an engine, a model by name, or a function, plain or async, that returns an
# answer, a text, values to publish, or None.
Answerer = Callable[[Task], object] | str

# Returns the score of one sample of an agent's turn; the highest counts.
Score = Callable[[Answer], float | Awaitable[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A type of artifacts that an agent publishes.

    `fan_out` is the minimum and maximum number that one turn publishes; `validate` accepts or
    refuses a value. With `inherit`, an artifact is visible only to those who may see everything its
    turn saw.
    """

    type: str
    visibility: Visibility = Public()
    tags: Set[str] = frozenset()
    fan_out: tuple[int, int | None] = (0, None)
    validate: Callable[[Any], Any] | None = None
    inherit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFilter:
    """Context from a filter: the artifacts that it finds, up to `limit`, and values of the turn's
    state."""

    filters: FilterConfig | None = None
    limit: int | None = None
    include_state_keys: Set[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An agent on a board: its subscriptions, its products, and its engines."""

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
        """The agent as a reader of artifacts, on a board of a tenant."""
        return Reader(self.agent.name, self.labels, tenant)

    def product(self, type: str) -> Product | None:
        """The product of a type, if the agent publishes it."""
        return next((each for each in self.products if each.type == type), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardPlan:
    """The definition of a board that its runs are pinned to: agents by name, text and digest.

    `limit` is the maximum number of turns that one publish may cause, and of turns in a row across
    runs.
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
        """The subscription with this id."""
        agent = id.rpartition("#")[0]
        return next(each for each in self.members[agent].subscriptions if each.id == id)
