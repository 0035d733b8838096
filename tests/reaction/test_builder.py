"""What is said of an agent is kept as it is said, or refused where it is."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel

from tests.reaction.sayings import (
    SAYINGS,
    Offer,
    Pitch,
    Watch,
    Wins,
    build,
    engine,
    known,
    large,
    look_up,
    options,
    plan,
)
from turnloom.board.spec import Public, TagFilter, artifact_type
from turnloom.errors import UnknownType, UsageError
from turnloom.reaction.spec import AgentBuilder, Batch, Join, Product, Subscription


def test_there_is_a_saying_for_every_option() -> None:
    assert set(SAYINGS) == options()


@pytest.mark.parametrize("option", SAYINGS)
def test_what_is_said_is_kept(option: str) -> None:
    say, look, seen = SAYINGS[option]
    assert look(say(build()).member()) == seen


def test_no_two_sayings_come_to_the_same_plan() -> None:
    texts = {option: plan(each.say(build()).member()).text for option, each in SAYINGS.items()}
    texts["nothing"] = plan(build().member()).text
    texts["no options"] = plan(build().consumes(Pitch).publishes(Offer).member()).text
    assert len(set(texts.values())) == len(texts)


def test_what_is_left_out_asks_nothing() -> None:
    member = build().consumes(Pitch).publishes(Offer).member()
    assert member.subscriptions == (
        Subscription(id="lead#1", agent="lead", types=("deals.Pitch",)),
    )
    assert member.products == (Product(type="deals.Offer"),)
    assert member.products[0].visibility == Public()


def test_an_agent_of_which_nothing_is_said_is_one() -> None:
    member = build().member()
    assert member.agent.name == "lead"
    assert member.agent.instructions == ""
    assert (member.subscriptions, member.products, member.wakes_itself) == ((), (), False)


def test_each_call_of_consumes_is_a_subscription() -> None:
    member = build().consumes(Pitch).consumes(Offer, where=large).member()
    assert [(each.id, each.types) for each in member.subscriptions] == [
        ("lead#1", ("deals.Pitch",)),
        ("lead#2", ("deals.Offer",)),
    ]


def test_calls_that_name_more_add_to_what_is_there() -> None:
    def tell(word: str) -> str:
        return word

    one, two = Watch(), Watch()
    agent = build().publishes(Pitch).publishes(Offer).with_tools(look_up).with_tools(tell)
    agent.with_engines(engine).with_engines(engine).with_components(one).with_components(two)
    member = agent.member()
    assert [each.type for each in member.products] == ["deals.Pitch", "deals.Offer"]
    assert member.tools == (look_up, tell)
    assert member.engines == (engine, engine)
    assert member.components == (one, two)


def test_a_model_is_known_from_then_on() -> None:
    @artifact_type(name="deals.Late")
    class Late(BaseModel):
        pass

    types = known()
    agent = AgentBuilder("lead", types, lambda: None).consumes(Late).publishes("deals.Late")
    assert "deals.Late" in types.names
    assert agent.member().products[0].type == "deals.Late"


@pytest.mark.parametrize(
    ("fan_out", "kept"),
    [(None, (0, None)), (1, (1, 1)), ((0, 2), (0, 2)), ((2, None), (2, None)), ([1, 1], (1, 1))],
)
def test_fan_out_is_a_number_or_a_range(fan_out: Any, kept: tuple[int, int | None]) -> None:
    assert build().publishes(Offer, fan_out=fan_out).member().products[0].fan_out == kept


def test_tags_are_looked_at_once() -> None:
    member = build().publishes(Pitch, Offer, tags=iter(["draft"])).member()
    assert [each.tags for each in member.products] == [{"draft"}, {"draft"}]


def test_one_producer_may_be_named_alone() -> None:
    member = build().consumes(Pitch, from_agents="critic", where=large).member()
    assert member.subscriptions[0].from_agents == {"critic"}
    assert member.subscriptions[0].where == (large,)


def test_what_a_provider_is_told_is_a_copy() -> None:
    config = {"words": 3}
    context = build().with_context(Wins(), config=config).member().context
    config["words"] = 4
    assert getattr(context, "config") == {"words": 3}  # noqa: B009 - it is one of two kinds


def test_a_change_is_told_and_nothing_else_is() -> None:
    told: list[str] = []
    agent = build(on_change=lambda: told.append("changed"))
    agent.member()
    assert told == []
    agent.consumes(Pitch).labels("sales")
    assert len(told) == 2
    with pytest.raises(UsageError):
        agent.consumes(Pitch, priority="high")  # type: ignore[arg-type]
    assert len(told) == 2


def test_what_was_given_out_stays_as_it_was() -> None:
    agent = build().consumes(Pitch)
    before = agent.member()
    agent.publishes(Offer).tenant("acme")
    assert before == build().consumes(Pitch).member()


@pytest.mark.parametrize("name", ["", "user", "a#1", "#", "a\0b", None, 5, ["lead"]])
def test_some_names_are_not_for_agents(name: Any) -> None:
    with pytest.raises(UsageError):
        build(name)


class Bystander:
    """Wraps nothing."""


class Witness:
    """Wraps calls, and would see every event of every run."""

    async def around_call(self, task: Any, call_next: Any) -> Any:
        return await call_next(task)

    def observe(self, event: Any) -> None:
        pass


class Unmarked(BaseModel):
    pass


# What cannot be said, and the name or the value that the refusal is about.
REFUSED: dict[str, tuple[Callable[[AgentBuilder], Any], str]] = {
    "no text": (lambda a: a.description("  "), "'  '"),
    "half a character": (lambda a: a.description("\ud800"), "description"),
    "no types": (lambda a: a.consumes(), "consumes"),
    "nothing to publish": (lambda a: a.publishes(), "publishes"),
    "no class": (lambda a: a.consumes(5), "5"),
    "another class": (lambda a: a.consumes(dict), "dict"),
    "no mark": (lambda a: a.publishes(Unmarked), "@artifact_type"),
    "a list of types": (lambda a: a.consumes([Pitch]), "Pitch"),
    "no predicate": (lambda a: a.consumes(Pitch, where=5), "where"),
    "a text as predicate": (lambda a: a.consumes(Pitch, where="price > 3"), "`where` is"),
    "one of several": (lambda a: a.consumes(Pitch, where=[large, 3]), "where"),
    "no producer": (lambda a: a.consumes(Pitch, from_agents=set()), "from_agents"),
    "a nameless one": (lambda a: a.consumes(Pitch, from_agents={""}), "from_agents"),
    "a number as producer": (lambda a: a.consumes(Pitch, from_agents=3), "from_agents"),
    "one tag as text": (lambda a: a.consumes(Pitch, tags="hot"), "'hot'"),
    "no tag": (lambda a: a.consumes(Pitch, tags=set()), "tags"),
    "one of no tags": (
        lambda a: a.consumes(Pitch, tags=TagFilter(include=set(), match="all")),
        "tags",
    ),
    "a tag that is forbidden": (
        lambda a: a.consumes(Pitch, tags=TagFilter(include={"a"}, exclude={"a", "b"})),
        "tags",
    ),
    "all of what is forbidden": (
        lambda a: a.consumes(Pitch, tags=TagFilter(include={"a", "b"}, exclude={"a"}, match="all")),
        "tags",
    ),
    "no join": (lambda a: a.consumes(Pitch, Offer, join="product"), "'product'"),
    "a join of one": (lambda a: a.consumes(Pitch, join=Join("product")), "join"),
    "no batch": (lambda a: a.consumes(Pitch, batch=5), "5"),
    "a class of providers": (
        lambda a: a.consumes(Pitch, context_provider=Wins),
        "Wins",
    ),
    "no priority": (lambda a: a.consumes(Pitch, priority=None), "priority"),
    "a priority of what is collected": (
        lambda a: a.consumes(Pitch, batch=Batch(2), priority=1),
        "priority",
    ),
    "a flag as priority": (lambda a: a.consumes(Pitch, priority=True), "priority"),
    "the same twice": (
        lambda a: a.consumes(Pitch, tags={"hot"}).consumes("Pitch", tags={"hot"}),
        "consumes",
    ),
    "no visibility": (lambda a: a.publishes(Offer, visibility="public"), "'public'"),
    "a tag as text": (lambda a: a.publishes(Offer, tags="draft"), "'draft'"),
    "none": (lambda a: a.publishes(Offer, fan_out=0), "fan_out"),
    "a flag as number": (lambda a: a.publishes(Offer, fan_out=True), "fan_out"),
    "more than at most": (lambda a: a.publishes(Offer, fan_out=(3, 1)), "fan_out"),
    "at most none": (lambda a: a.publishes(Offer, fan_out=(0, 0)), "fan_out"),
    "less than none": (lambda a: a.publishes(Offer, fan_out=(-1, None)), "fan_out"),
    "three numbers": (lambda a: a.publishes(Offer, fan_out=(1, 2, 3)), "fan_out"),
    "no function": (lambda a: a.publishes(Offer, validate="large"), "validate"),
    "one type twice": (lambda a: a.publishes(Offer, Offer), "'deals.Offer'"),
    "one type again": (
        lambda a: a.publishes(Offer).publishes("Offer", tags={"b"}),
        "'deals.Offer'",
    ),
    "no engines": (lambda a: a.with_engines(), "with_engines"),
    "no engine": (lambda a: a.with_engines("scripted"), "'scripted'"),
    "a class of engines": (lambda a: a.with_engines(Wins), "'Wins'"),
    "no tools": (lambda a: a.with_tools(), "with_tools"),
    "the name of a tool": (lambda a: a.with_tools("look_up"), "'look_up'"),
    "a tool without a name": (lambda a: a.with_tools(lambda word: word), "with_tools"),
    "half a tool": (lambda a: a.with_tools(partial(look_up, "a")), "with_tools"),
    "one tool twice": (
        lambda a: a.with_tools(look_up).with_tools(look_up),
        "'look_up'",
    ),
    "no provider": (lambda a: a.with_context({"items": []}), "{'items'"),
    "no fallback": (lambda a: a.with_context(Wins(), fallback="none"), "fallback"),
    "no time": (lambda a: a.with_context(Wins(), timeout=0), "timeout"),
    "endless time": (lambda a: a.with_context(Wins(), timeout=float("inf")), "timeout"),
    "no config": (lambda a: a.with_context(Wins(), config=["a"]), "['a']"),
    "a key that is no name": (lambda a: a.with_context(Wins(), config={1: 2}), "config"),
    "context twice": (
        lambda a: a.with_context(Wins()).with_context(Wins(5)),
        "with_context",
    ),
    "two kinds of context": (
        lambda a: a.with_context(Wins()).with_context_filter(limit=3),
        "with_context",
    ),
    "no filter": (lambda a: a.with_context_filter(filters={"types": []}), "{'types': []}"),
    "no limit": (lambda a: a.with_context_filter(limit=0), "limit"),
    "one key as text": (lambda a: a.with_context_filter(include_state_keys="mood"), "'mood'"),
    "no components": (lambda a: a.with_components(), "with_components"),
    "no component": (lambda a: a.with_components(Bystander()), "Bystander"),
    "a class of components": (lambda a: a.with_components(Watch), "Watch"),
    "a component that observes": (lambda a: a.with_components(Witness()), "Witness"),
    "one component twice": (lambda a: a.with_components(*[Watch()] * 2), "with_components"),
    "no labels": (lambda a: a.labels(), "labels"),
    "a set of labels": (lambda a: a.labels({"sales"}), "{'sales'}"),
    "no tenant": (lambda a: a.tenant(""), "''"),
    "two tenants": (lambda a: a.tenant("acme").tenant("best"), "tenant"),
    "best of one": (lambda a: a.best_of(1, large), "n"),
    "no score": (lambda a: a.best_of(3, None), "score"),
    "best of twice": (lambda a: a.best_of(3, large).best_of(2, large), "best_of"),
    "no turns": (lambda a: a.max_concurrency(0), "k"),
    "two limits": (lambda a: a.max_concurrency(1).max_concurrency(2), "max_concurrency"),
    "neither yes nor no": (lambda a: a.prevent_self_trigger(None), "None"),
    "yes and no": (
        lambda a: a.prevent_self_trigger().prevent_self_trigger(False),
        "prevent_self_trigger",
    ),
    "two descriptions": (lambda a: a.description("One.").description("Two."), "description"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_where_it_is_said(case: str) -> None:
    say, named = REFUSED[case]
    with pytest.raises(UsageError) as refused:
        say(build())
    assert "'lead'" in str(refused.value)
    assert named in str(refused.value)
    assert type(refused.value) is UsageError


def test_a_name_that_the_app_does_not_know_is_refused_as_such() -> None:
    with pytest.raises(UnknownType, match=r"'lead'.*consumes.*'Pitsh'.*'Pitch'"):
        build().consumes("Pitsh")


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_leaves_no_trace(case: str) -> None:
    """The agent is as it was when a change was told last."""
    agent = build(on_change=lambda: told.append(agent.member()))
    told = [agent.member()]
    with pytest.raises(UsageError):
        REFUSED[case][0](agent)
    assert agent.member() is told[-1]


def test_what_was_refused_can_be_said_rightly() -> None:
    agent = build()
    with pytest.raises(UsageError):
        agent.best_of(3, "score")  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        agent.publishes(Offer, Pitch, Offer)
    agent.best_of(2, large).publishes(Pitch)
    assert agent.member() == build().best_of(2, large).publishes(Pitch).member()


@pytest.mark.parametrize("within", [0, -1, True, 1.5, "PT1H", timedelta(0)])
def test_a_join_waits_for_some_time_or_some_artifacts(within: Any) -> None:
    with pytest.raises(UsageError, match="Join.within"):
        Join("product", within)


@pytest.mark.parametrize("by", ["", "a..b", ".", 5, None])
def test_a_join_is_by_a_path_or_a_function(by: Any) -> None:
    with pytest.raises(UsageError, match="Join.by"):
        Join(by)


@pytest.mark.parametrize(
    "timeout", [0, -1, True, "5", float("nan"), float("inf"), 1e30, timedelta(0)]
)
def test_a_batch_waits_for_some_time(timeout: Any) -> None:
    with pytest.raises(UsageError, match="Batch.timeout"):
        Batch(timeout=timeout)


@pytest.mark.parametrize("size", [0, True, 1.0, "5"])
def test_a_batch_is_of_some_size(size: Any) -> None:
    with pytest.raises(UsageError, match="Batch.size"):
        Batch(size)


def test_a_batch_says_when_it_is_taken() -> None:
    with pytest.raises(UsageError):
        Batch()
    assert Batch(timeout=2).wait == timedelta(seconds=2)
    assert Batch(timeout=timedelta(days=1)).wait == timedelta(days=1)
    assert Batch(size=2).wait == timedelta.max
