"""Agents on a board, and boards as definitions of runs."""

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from turnloom.agents.spec import Agent, Answer, Component, Task
from turnloom.assembly.spec.assemblies import Assembly
from turnloom.assembly.spec.providers import Chosen
from turnloom.board.spec import FilterConfig, Public, Reader, Visibility
from turnloom.reaction.spec.subscriptions import Subscription

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
    context: Chosen | ContextFilter | Assembly | None = None
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
class Plan:
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
