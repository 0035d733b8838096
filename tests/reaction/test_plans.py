"""The plan of a board: the same in every process, different when the board is, and diffed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from tests.reaction.sayings import (
    SAYINGS,
    Offer,
    Pitch,
    Saying,
    Watch,
    Wins,
    build,
    everything,
    known,
    plan,
)
from turnloom import (
    Budget,
    CompositeProvider,
    ContextRequest,
    ContextSlice,
    DefaultCorrelationProvider,
    FilterConfig,
    FilteredContextProvider,
    RedactingProvider,
    TagFilter,
    from_literal,
)
from turnloom.board.spec import TypeRegistry, artifact_type
from turnloom.errors import UsageError
from turnloom.kernel.code import qualified
from turnloom.kernel.digests import fingerprint
from turnloom.reaction.logic.checking import check_plan, refuse_problems
from turnloom.reaction.logic.plans import describe_plan, make_plan, plan_diff, subscription_digest
from turnloom.reaction.spec import AgentBuilder, BoardPlan, Member

CONSUMING = [each for option, each in SAYINGS.items() if option.startswith("consumes.")]


@st.composite
def agents(draw: st.DrawFn, name: str) -> Member:
    """An agent of which some of what can be said is said."""
    agent = build(name)
    for saying in draw(st.lists(st.sampled_from(list(SAYINGS.values())), max_size=6)):
        try:
            saying.say(agent)
        except UsageError:
            assert agent.member() != build(name).member(), "only a repetition is refused"
    return agent.member()


boards = st.permutations("abc").flatmap(lambda names: st.tuples(*(agents(name) for name in names)))


@given(boards)
def test_the_text_is_json_and_decides_the_digest(members: tuple[Member, ...]) -> None:
    made = plan(*members)
    written = json.loads(made.text)
    assert list(written["agents"]) == [member.agent.name for member in members]
    assert made.digest == fingerprint(made.text)
    assert plan(*members) == made


@given(boards, boards)
def test_there_is_a_difference_where_texts_differ(
    one: tuple[Member, ...], other: tuple[Member, ...]
) -> None:
    old, new = plan(*one), plan(*other)
    assert bool(plan_diff(old.text, new.text)) == (old.text != new.text)


@given(boards)
def test_whoever_subscribes_to_a_type_is_found_by_it(members: tuple[Member, ...]) -> None:
    made = plan(*members)
    declared = [each for member in members for each in member.subscriptions]
    for type in ("deals.Pitch", "deals.Offer"):
        found = made.by_type.get(type, ())
        wanted = [each for each in declared if type in each.types]
        assert list(found) == sorted(wanted, key=lambda each: (-each.priority, wanted.index(each)))
    assert all(made.subscription(each.id) is each for each in declared)


@given(st.sampled_from(CONSUMING), boards, st.integers(1, 9))
def test_what_collects_is_disturbed_by_nothing_else(
    saying: Saying, others: tuple[Member, ...], limit: int
) -> None:
    alone = saying.say(build("lead")).member()
    busy = build("lead").description("Busy.").publishes(Offer).best_of(2, max).consumes(Offer)
    among = saying.say(busy).member()
    before, after = plan(alone), plan(*others, among, limit=limit)
    assert subscription_digest(before, alone.subscriptions[0]) == subscription_digest(
        after, among.subscriptions[1]
    )


def test_what_collects_is_known_by_all_that_it_says() -> None:
    members = [saying.say(build()).member() for saying in CONSUMING]
    members += [build("clerk").consumes(Pitch).member(), build().consumes(Pitch).member()]
    digests = {subscription_digest(plan(each), each.subscriptions[0]) for each in members}
    elsewhere = make_plan("other", members[-1:], 100, known())
    digests.add(subscription_digest(elsewhere, members[-1].subscriptions[0]))
    assert len(digests) == len(members) + 1


def test_a_plan_is_the_same_in_every_process() -> None:
    def elsewhere(seed: str) -> str:
        program = "from tests.reaction.sayings import everything; print(everything().text)"
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env=environment,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=True,
        )
        return done.stdout

    assert elsewhere("1") == elsewhere("2") == f"{everything().text}\n"


def test_an_option_that_nobody_uses_is_not_in_the_plan() -> None:
    text = plan(build().consumes(Pitch).member()).text
    assert json.loads(text)["agents"] == {
        "lead": {"subscriptions": [{"id": "lead#1", "agent": "lead", "types": ["deals.Pitch"]}]}
    }


def test_code_is_in_the_plan_by_name_only() -> None:
    assert (
        plan(build().with_context(Wins(1)).member()).text
        == plan(build().with_context(Wins(2)).member()).text
    )
    written = json.loads(plan(build().with_context(Wins(1)).member()).text)
    assert written["agents"]["lead"]["context"] == {"provider": qualified(Wins)}


def plan_of_type(model: type[BaseModel]) -> BoardPlan:
    types = TypeRegistry()
    agent = AgentBuilder("lead", types, lambda: None).consumes(model)
    return make_plan("deals", [agent.member()], 100, types)


def test_a_type_is_in_the_plan_by_name_and_schema() -> None:
    def model(default: int) -> type[BaseModel]:
        @artifact_type(name="deals.Pitch")
        class Pitch(BaseModel):
            price: int = default

        return Pitch

    assert plan_of_type(model(1)).text == plan_of_type(model(1)).text
    assert json.loads(plan_of_type(model(1)).text)["types"].keys() == {"deals.Pitch"}
    assert plan_of_type(model(1)).digest != plan_of_type(model(2)).digest


def test_a_type_without_a_schema_is_refused() -> None:
    @artifact_type(name="deals.Odd")
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        watch: Watch

    with pytest.raises(UsageError, match="'deals.Odd'"):
        plan_of_type(Odd)


def test_two_agents_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="'lead'"):
        plan(build().member(), build().consumes(Pitch).member())


def test_half_characters_can_be_written_down() -> None:
    made = plan(build().with_context(Wins(), config={"half": "\ud800"}).member())
    made.text.encode()
    assert json.loads(made.text)["agents"]["lead"]["context"]["config"] == {"half": "\ud800"}


DIFFERENCE = """\
--- board then
+++ board now
@@ -1,6 +1,6 @@
 {
   "board": "deals"
-  "limit": 100
+  "limit": 50
   "agents": [
     "lead"
     "critic"
--- agent 'critic' then
+++ agent 'critic' now
@@ -6,6 +6,7 @@
       "types": [
         "deals.Offer"
       ]
+      "priority": 3
     }
   ]
 }"""


def test_what_differs_is_shown_under_its_agent() -> None:
    lead = build().consumes(Pitch).publishes(Offer).member()
    old = plan(lead, build("critic").consumes(Offer).member())
    new = plan(lead, build("critic").consumes(Offer, priority=3).member(), limit=50)
    assert plan_diff(old.text, new.text) == DIFFERENCE


def test_another_order_of_agents_is_a_difference() -> None:
    one, two = build("one").consumes(Pitch).member(), build("two").consumes(Pitch).member()
    assert plan_diff(plan(one, two).text, plan(two, one).text)


def test_who_comes_and_who_goes_is_a_difference() -> None:
    one, two = build("one").consumes(Pitch).member(), build("two").tenant("acme").member()
    shown = plan_diff(plan(one).text, plan(two).text).splitlines()
    assert '-      "id": "one#1"' in shown
    assert '+  "tenant": "acme"' in shown


def critic(**said: Any) -> Member:
    return build("critic").consumes(Offer, **said).member()


LEAD = build().consumes(Pitch).publishes(Offer).member()

# What can never work, and the names that each of its problems is about.
NEVER: dict[str, tuple[Member, list[list[str]]]] = {
    "nobody of that name": (
        critic(from_agents={"laed", "lead", "somebody else"}),
        [["'critic#1'", "'laed'", "'lead'"], ["'critic#1'", "'somebody else'", "user"]],
    ),
    "nobody publishes it": (
        build("critic").consumes(Pitch, Offer, Pitch, from_agents={"lead", "critic"}).member(),
        [["'critic#1'", "'deals.Pitch'", "'critic'", "'lead'"]],
    ),
    "it does not wake itself": (
        build("critic").publishes(Pitch).consumes(Pitch, from_agents={"lead", "critic"}).member(),
        [["'critic#1'", "'deals.Pitch'", "'critic'", "prevent_self_trigger"]],
    ),
}


@pytest.mark.parametrize("case", NEVER)
def test_what_can_never_work_is_told(case: str) -> None:
    member, problems = NEVER[case]
    found = check_plan(plan(LEAD, member))
    for told, names in zip(found, problems, strict=True):
        assert [name for name in names if name not in told] == []
    with pytest.raises(UsageError, match="'deals'") as refused:
        refuse_problems(plan(LEAD, member))
    assert [each for each in found if each not in str(refused.value)] == []


@pytest.mark.parametrize(
    "member",
    [
        critic(from_agents="lead"),
        critic(from_agents={"lead", "critic"}),
        build("critic").consumes(Pitch, from_agents="user").member(),
        build("critic").consumes(Pitch, from_agents={"user", "lead"}).member(),
        build("critic").consumes(Pitch).publishes(Pitch).prevent_self_trigger(False).member(),
        build("critic")
        .consumes(Pitch, from_agents="critic")
        .publishes(Pitch)
        .prevent_self_trigger(False)
        .member(),
        build("critic").member(),
    ],
)
def test_what_can_work_is_let_be(member: Member) -> None:
    refuse_problems(plan(LEAD, member))


def test_what_gives_agents_context_is_described() -> None:
    async def wins(request: ContextRequest) -> ContextSlice:
        return ContextSlice([])

    name = qualified(wins)
    described = describe_plan(
        plan(
            build("lead").with_sources(from_literal("Be kind."), budget=Budget(9)).member(),
            build("critic").with_context(wins).consumes(Pitch, context_provider=wins).member(),
            build("clerk").with_context_filter(limit=3).member(),
            build("helper").member(),
        )
    )
    assert described.splitlines() == [
        "lead",
        "  1. from_literal('Be kind.')",
        "  budget: 9 tokens",
        "critic",
        f"  from_provider({name}, timeout=60)",
        f"  critic#1: from_provider({name}, timeout=60)",
        "clerk",
        "  artifacts by filter: limit=3",
        "helper",
        "  artifacts with the correlation id",
    ]


def test_what_a_provider_was_made_with_is_in_the_plan_and_described() -> None:
    def declared(*keys: str, limit: int = 3) -> BoardPlan:
        wins = FilteredContextProvider(FilterConfig(tags=TagFilter(include={"won"})), limit=limit)
        inner = CompositeProvider(DefaultCorrelationProvider(), wins)
        return plan(build().with_context(RedactingProvider(inner, keys=keys)).member())

    usual = declared("email")
    assert declared("email").text == usual.text
    for other in (declared("phone"), declared("email", limit=4)):
        assert other.digest != usual.digest
    described = describe_plan(usual)
    assert "keys=['email']" in described and "limit=3" in described and "won" in described


def test_a_provider_that_was_made_with_nothing_is_known_by_its_name() -> None:
    text = plan(build().with_context(DefaultCorrelationProvider()).member()).text
    assert f'"{qualified(DefaultCorrelationProvider())}"' in text
