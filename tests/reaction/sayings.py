"""All that can be said of an agent on a board: how it is said, and where it is seen."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any, NamedTuple

from pydantic import BaseModel

from turnloom.agents.spec import Answer, Task
from turnloom.assembly.spec.formats import Budget, ContextFormat
from turnloom.assembly.spec.providers import (
    ChosenProvider,
    ContextRequest,
    ContextSlice,
    TurnContext,
)
from turnloom.assembly.spec.sources import Assembly, from_literal, from_state
from turnloom.board.spec import (
    After,
    FilterConfig,
    Private,
    TagFilter,
    TypeRegistry,
    artifact_type,
)
from turnloom.reaction.logic.plans import make_plan
from turnloom.reaction.spec import (
    AgentBuilder,
    Batch,
    BoardPlan,
    ContextFilter,
    Join,
    Member,
    Subscription,
)


@artifact_type(name="deals.Pitch")
class Pitch(BaseModel):
    product: str
    channels: frozenset[str] = frozenset({"mail", "phone", "letter"})


@artifact_type(name="deals.Offer")
class Offer(BaseModel):
    price: int


def large(value: Any) -> bool:
    return True


async def urgent(value: Any) -> bool:
    return True


def look_up(word: str) -> str:
    """What a word means."""
    return word


async def engine(task: Task) -> Answer:
    return Answer("Done.")


@dataclass(frozen=True)
class Wins:
    """A provider; what it is made with is its own affair."""

    most: int = 3

    async def __call__(self, request: ContextRequest) -> ContextSlice:
        return ContextSlice([])


class Watch:
    """A component."""

    async def around_turn(self, ctx: TurnContext, call_next: Callable[[], Any]) -> None:
        await call_next()


class Saying(NamedTuple):
    """Something said of an agent, where that is seen, and what is seen there."""

    say: Callable[[AgentBuilder], AgentBuilder]
    look: Callable[[Member], Any]
    seen: Any


WATCH = Watch()
KIND = from_literal("Be kind.")
HOUR = timedelta(hours=1)
OPENING = After(datetime(2026, 1, 1, tzinfo=UTC), Private({"lead", "critic", "clerk"}))
RECENT = FilterConfig(types={"Pitch", "Offer"}, tags=TagFilter(include={"won", "big"}), limit=9)


def first(member: Member) -> Subscription:
    return member.subscriptions[0]


SAYINGS: dict[str, Saying] = {
    "description.text": Saying(
        lambda agent: agent.description("You praise."),
        lambda member: member.agent.instructions,
        "You praise.",
    ),
    "consumes.types": Saying(
        lambda agent: agent.consumes(Pitch, "Offer", Pitch),
        lambda member: first(member).types,
        ("deals.Pitch", "deals.Offer", "deals.Pitch"),
    ),
    "consumes.where": Saying(
        lambda agent: agent.consumes(Pitch, where=[large, urgent]),
        lambda member: first(member).where,
        (large, urgent),
    ),
    "consumes.from_agents": Saying(
        lambda agent: agent.consumes(Pitch, from_agents={"user", "critic"}),
        lambda member: first(member).from_agents,
        {"user", "critic"},
    ),
    "consumes.tags": Saying(
        lambda agent: agent.consumes(Pitch, tags={"hot", "new", "far"}),
        lambda member: first(member).tags,
        TagFilter(include={"hot", "new", "far"}),
    ),
    "consumes.join": Saying(
        lambda agent: agent.consumes(Pitch, Offer, join=Join("product")),
        lambda member: first(member).join,
        Join("product"),
    ),
    "consumes.batch": Saying(
        lambda agent: agent.consumes(Pitch, batch=Batch(size=5)),
        lambda member: first(member).batch,
        Batch(size=5),
    ),
    "consumes.context_provider": Saying(
        lambda agent: agent.consumes(Pitch, context_provider=Wins(5)),
        lambda member: first(member).context,
        ChosenProvider(Wins(5)),
    ),
    "consumes.priority": Saying(
        lambda agent: agent.consumes(Pitch, priority=7),
        lambda member: first(member).priority,
        7,
    ),
    "publishes.types": Saying(
        lambda agent: agent.publishes(Offer, "Pitch"),
        lambda member: [each.type for each in member.products],
        ["deals.Offer", "deals.Pitch"],
    ),
    "publishes.visibility": Saying(
        lambda agent: agent.publishes(Offer, visibility=OPENING),
        lambda member: member.products[0].visibility,
        OPENING,
    ),
    "publishes.tags": Saying(
        lambda agent: agent.publishes(Offer, tags=["draft", "cheap", "quick"]),
        lambda member: member.products[0].tags,
        {"draft", "cheap", "quick"},
    ),
    "publishes.fan_out": Saying(
        lambda agent: agent.publishes(Offer, fan_out=3),
        lambda member: member.products[0].fan_out,
        (3, 3),
    ),
    "publishes.validate": Saying(
        lambda agent: agent.publishes(Offer, validate=large),
        lambda member: member.products[0].validate,
        large,
    ),
    "publishes.inherit": Saying(
        lambda it: it.publishes(Offer, inherit=True),
        lambda it: it.products[0].inherit,
        True,
    ),
    "with_engines.engines": Saying(
        lambda agent: agent.with_engines(engine, engine),
        lambda member: member.engines,
        (engine, engine),
    ),
    "with_tools.functions": Saying(
        lambda agent: agent.with_tools(look_up), lambda member: member.tools, (look_up,)
    ),
    "with_tools.max_rounds": Saying(
        lambda agent: agent.with_tools(look_up, max_rounds=3),
        lambda member: member.agent.max_tool_rounds,
        3,
    ),
    "with_context.provider": Saying(
        lambda agent: agent.with_context(Wins()),
        lambda member: member.context,
        ChosenProvider(Wins()),
    ),
    "with_context.fallback": Saying(
        lambda agent: agent.with_context(Wins(), fallback=Wins(1)),
        lambda member: member.context,
        ChosenProvider(Wins(), Wins(1)),
    ),
    "with_context.timeout": Saying(
        lambda agent: agent.with_context(Wins(), timeout=2),
        lambda member: member.context,
        ChosenProvider(Wins(), timeout=2),
    ),
    "with_context.config": Saying(
        lambda agent: agent.with_context(Wins(), config={"words": {"a", "b", "c"}, "since": HOUR}),
        lambda member: member.context,
        ChosenProvider(Wins(), config={"words": {"a", "b", "c"}, "since": HOUR}),
    ),
    "with_context_filter.filters": Saying(
        lambda agent: agent.with_context_filter(filters=RECENT),
        lambda member: member.context,
        ContextFilter(filters=RECENT),
    ),
    "with_context_filter.limit": Saying(
        lambda agent: agent.with_context_filter(limit=2),
        lambda member: member.context,
        ContextFilter(limit=2),
    ),
    "with_context_filter.include_state_keys": Saying(
        lambda agent: agent.with_context_filter(include_state_keys={"mood", "place"}),
        lambda member: member.context,
        ContextFilter(include_state_keys={"mood", "place"}),
    ),
    "with_sources.sources": Saying(
        lambda agent: agent.with_sources(KIND, from_state(large)),
        lambda member: member.context,
        Assembly((KIND, from_state(large))),
    ),
    "with_sources.budget": Saying(
        lambda agent: agent.with_sources(KIND, budget=Budget(500)),
        lambda member: member.context,
        Assembly((KIND,), Budget(500)),
    ),
    "with_sources.format": Saying(
        lambda agent: agent.with_sources(KIND, format=ContextFormat(fence="xml")),
        lambda member: member.context,
        Assembly((KIND,), format=ContextFormat(fence="xml")),
    ),
    "with_components.components": Saying(
        lambda agent: agent.with_components(WATCH), lambda member: member.components, (WATCH,)
    ),
    "labels.labels": Saying(
        lambda agent: agent.labels("sales", "east").labels("boss"),
        lambda member: member.labels,
        {"sales", "east", "boss"},
    ),
    "tenant.name": Saying(lambda agent: agent.tenant("acme"), lambda member: member.tenant, "acme"),
    "best_of.n": Saying(lambda agent: agent.best_of(3, large), lambda member: member.samples, 3),
    "best_of.score": Saying(
        lambda agent: agent.best_of(2, urgent), lambda member: member.score, urgent
    ),
    "max_concurrency.k": Saying(
        lambda agent: agent.max_concurrency(4), lambda member: member.max_concurrency, 4
    ),
    "prevent_self_trigger.enabled": Saying(
        lambda agent: agent.prevent_self_trigger(False), lambda member: member.wakes_itself, True
    ),
    "Join.by": Saying(
        lambda agent: agent.consumes(Pitch, Offer, join=Join(large)),
        lambda member: first(member).join,
        Join(large),
    ),
    "Join.within": Saying(
        lambda agent: agent.consumes(Pitch, Offer, join=Join("product", within=HOUR)),
        lambda member: first(member).join,
        Join("product", HOUR),
    ),
    "Batch.size": Saying(
        lambda agent: agent.consumes(Pitch, batch=Batch(size=2)),
        lambda member: first(member).batch,
        Batch(2),
    ),
    "Batch.timeout": Saying(
        lambda agent: agent.consumes(Pitch, batch=Batch(timeout=1.5)),
        lambda member: first(member).batch and first(member).batch.wait,
        timedelta(seconds=1.5),
    ),
}


def options() -> set[str]:
    """Every argument of every call of the builder, and every field of what is given to it."""
    calls = {
        name: signature(call).parameters
        for name, call in vars(AgentBuilder).items()
        if not name.startswith("_") and name != "member"
    }
    arguments = {f"{name}.{each}" for name, given in calls.items() for each in given}
    parts = {f"{part.__name__}.{each.name}" for part in (Join, Batch) for each in fields(part)}
    return {each for each in arguments if not each.endswith(".self")} | parts


def known() -> TypeRegistry:
    """What an app knows that has these types."""
    types = TypeRegistry()
    types.register(Pitch)
    types.register(Offer)
    return types


def build(name: str = "lead", on_change: Callable[[], None] = lambda: None) -> AgentBuilder:
    """An agent of which nothing is said."""
    return AgentBuilder(name, known(), on_change)


def plan(*members: Member, limit: int = 100) -> BoardPlan:
    """The plan of a board with these agents."""
    return make_plan("deals", members, limit, known())


def everything() -> BoardPlan:
    """The plan of a board with an agent for each saying."""
    return plan(*(each.say(build(option)).member() for option, each in SAYINGS.items()))
