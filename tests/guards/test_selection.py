"""Who is chosen: by seed and beliefs alone, the better one more often, the excluded never."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from turnloom.adapters.memory import MemoryBeliefs
from turnloom.agents.events import AgentOutput, AgentText, ModelAnswered
from turnloom.errors import NoCandidates
from turnloom.guards.logic.selection import (
    SelectionRequest,
    UniformDraws,
    answer_of,
    category_of,
    confidence,
    credit_of,
    draw_beta,
    names_in,
    read_credit,
    select,
)
from turnloom.guards.spec import Belief, Observation, Pool, Selection
from turnloom.log.spec import Fact

POOL = Pool("acme", "Desk", "general")
THREE = ("Ann", "Bob", "Cid")


def asked(**more: Any) -> SelectionRequest:
    return SelectionRequest("general", THREE, **more)


def chosen(selection: Selection, beliefs: Mapping[str, Belief], times: int) -> Counter[str]:
    """How often each is chosen, over so many decisions."""
    made = (select(selection, asked(), beliefs, f"seed/{n}") for n in range(times))
    return Counter(each.chosen for each in made)


def test_the_same_seed_and_beliefs_make_the_same_choice() -> None:
    selection, beliefs = Selection(candidates=THREE), {"Ann": Belief(3, 1)}
    made = select(selection, asked(), beliefs, "seed")
    assert made == select(selection, asked(), beliefs, "seed")
    for other in (
        select(selection, asked()._replace(category="other"), beliefs, "seed"),
        select(selection, asked(), beliefs, "another"),
    ):
        assert other.candidates != made.candidates


def test_everybody_is_explored_under_equal_priors() -> None:
    found = chosen(Selection(candidates=THREE), {}, 300)
    assert set(found) == set(THREE)
    assert min(found.values()) > 60


def test_a_better_record_is_chosen_more_often() -> None:
    beliefs = {"Ann": Belief(8, 2), "Bob": Belief(5, 5), "Cid": Belief(2, 8)}
    found = chosen(Selection(candidates=THREE), beliefs, 300)
    assert found["Ann"] > found["Bob"] > found["Cid"]


def test_who_is_excluded_is_never_chosen() -> None:
    selection, beliefs = Selection(candidates=THREE), {"Ann": Belief(99, 0)}
    made = [select(selection, asked(excluded=("Ann",)), beliefs, f"s/{n}") for n in range(50)]
    assert {each.chosen for each in made} == {"Bob", "Cid"}
    assert {each.excluded for each in made} == {("Ann",)}
    assert {tuple(c.agent for c in each.candidates) for each in made} == {("Bob", "Cid")}


def test_nobody_left_is_a_typed_failure() -> None:
    with pytest.raises(NoCandidates) as refused:
        select(Selection(candidates=THREE), asked(excluded=THREE), {}, "seed")
    assert all(name in str(refused.value) for name in ("'general'", *THREE))


@pytest.mark.parametrize(
    ("belief", "sure"),
    [
        (Belief(), 0.0),
        (Belief(1, 0), 0.05),
        (Belief(4, 6), 0.5),
        (Belief(19, 1), 1.0),
        (Belief(90, 9), 1.0),
    ],
)
def test_confidence_grows_with_what_was_observed_up_to_one(belief: Belief, sure: float) -> None:
    assert confidence(belief) == pytest.approx(sure)


def test_a_cost_is_taken_off_the_draw() -> None:
    beliefs = dict.fromkeys(THREE, Belief(50, 50))
    costly = Selection(candidates=THREE, costs={"Ann": 0.5, "Bob": 0.5})
    assert chosen(costly, beliefs, 100) == {"Cid": 100}
    made = select(costly, asked(), beliefs, "seed")
    assert [each.score for each in made.candidates] == [
        each.draw - each.cost for each in made.candidates
    ]


def test_a_prior_counts_as_if_it_had_been_observed() -> None:
    timid = Selection(candidates=THREE, prior=(1, 60))
    made = select(timid, asked(), {"Ann": Belief(2, 0)}, "seed")
    assert [(each.alpha, each.beta) for each in made.candidates] == [(3, 60), (1, 60), (1, 60)]


records = st.builds(Belief, st.floats(0, 50), st.floats(0, 50))


@given(beliefs=st.dictionaries(st.sampled_from(THREE), records), chance=st.text(max_size=8))
def test_what_is_on_record_is_all_that_the_choice_follows_from(
    beliefs: dict[str, Belief], chance: str
) -> None:
    made = select(Selection(candidates=THREE, costs={"Bob": 0.1}), asked(), beliefs, chance)
    for each in made.candidates:
        stream = UniformDraws(made.chance, made.category, each.agent)
        assert each.draw == draw_beta(each.alpha, each.beta, stream)
    assert made.chosen == max(made.candidates, key=lambda each: each.draw - each.cost).agent


async def simulate(selection: Selection, rounds: int, odds: Any) -> list[str]:
    """Who is chosen, round by round, when each succeeds as often as its odds of that round say."""
    store, went = MemoryBeliefs(), list[str]()
    world = UniformDraws("world")
    for n in range(rounds):
        beliefs = await store.beliefs(POOL, THREE)
        agent = select(selection, asked(), beliefs, f"seed/{n}").chosen
        credit = float(world.next() < odds(n)[agent])
        seen = Observation("run", f"t{n}", POOL, agent, credit, selection.decay)
        await store.observe([seen])
        went.append(agent)
    return went


async def test_the_better_one_wins_clearly_in_two_thousand_draws() -> None:
    odds = {"Ann": 0.55, "Bob": 0.75, "Cid": 0.35}
    went = await simulate(Selection(candidates=THREE), 2000, lambda n: odds)
    assert Counter(went)["Bob"] > 1600
    assert Counter(went[-500:])["Bob"] > 450
    assert set(went) == set(THREE)


async def test_with_decay_it_is_noticed_that_another_became_better() -> None:
    first, then = {"Ann": 0.9, "Bob": 0.5, "Cid": 0.1}, {"Ann": 0.1, "Bob": 0.5, "Cid": 0.9}

    async def found(decay: float) -> int:
        selection = Selection(candidates=THREE, decay=decay)
        went = await simulate(selection, 1200, lambda n: first if n < 1000 else then)
        return Counter(went[-200:])["Cid"]

    assert await found(0.02) > 100 > await found(0.0)


# ------------------------------------------------------------------ credit


@pytest.mark.parametrize(
    ("answer", "credit"),
    [
        ({"confidence": 0.25}, 0.25),
        ({"confidence": 1}, 1.0),
        ({"confidence": 0}, 0.0),
        ({"confidence": 7}, 1.0),
        ({"confidence": True}, 1.0),
        ({"confidence": "high"}, 1.0),
        ({}, 1.0),
        ("Fine.", 1.0),
        ([{"confidence": 0.1}], 1.0),
    ],
)
def test_an_answer_says_how_sure_it_is(answer: Any, credit: float) -> None:
    assert credit_of(answer) == credit


@pytest.mark.parametrize(
    ("facts", "answer"),
    [
        ([ModelAnswered(1, "A"), AgentOutput(1, "A", "M", {"a": 1})], {"a": 1}),
        ([AgentOutput(1, "A", "M", 1), AgentOutput(1, "A", "M", 2)], [1, 2]),
        ([ModelAnswered(1, "A"), AgentText(1, "A", "Hi.")], "Hi."),
        ([ModelAnswered(1, "A", raw="Raw.")], "Raw."),
        ([], ""),
    ],
)
def test_what_an_agent_answered(facts: list[Fact], answer: Any) -> None:
    assert answer_of(facts) == answer


def test_a_score_is_a_share() -> None:
    assert [read_credit(each) for each in (True, 0, 0.5)] == [1.0, 0.0, 0.5]
    for each in (-0.1, 1.1, "1", None, float("nan")):
        with pytest.raises(ValueError) as refused:
            read_credit(each)
        assert repr(each) in str(refused.value)


@pytest.mark.parametrize(
    ("value", "category"),
    [
        ("a b", "a b"),
        (None, ""),
        (3, "3"),
        (True, "true"),
        ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        (object(), ""),
        (float("nan"), ""),
    ],
)
def test_a_value_as_a_category(value: Any, category: str) -> None:
    assert category_of(value) == category


def test_names_that_a_variable_holds() -> None:
    assert [list(names_in(each)) for each in (["A", "B"], "A", None, 3)] == [
        ["A", "B"],
        ["A"],
        [],
        [],
    ]


# ------------------------------------------------------------------ what can be declared


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ({"candidates": ["A"]}, "candidates"),
        ({"candidates": ["A", "A"]}, "candidate"),
        ({"candidates": ["A", "B"], "exclude": ["C"]}, "'C'"),
        ({"candidates": ["A", "B"], "costs": {"C": 1}}, "'C'"),
        ({"candidates": ["A", "B"], "costs": {"A": -1}}, "costs.A"),
        ({"candidates": ["A", "B"], "exclude": ["A", "B"]}, "exclude"),
        ({"candidates": ["A", "B"], "prior": [0, 1]}, "prior.0"),
        ({"candidates": ["A", "B"], "prior": [1]}, "prior.1"),
        ({"candidates": ["A", "B"], "decay": 1}, "decay"),
        ({"candidates": ["A", "B"], "category": {}}, "category"),
        ({"candidates": ["A", "B"], "category": ""}, "category"),
        ({"candidates": ["A", "B"], "colour": 1}, "colour"),
    ],
)
def test_what_makes_no_sense_is_refused(declared: dict[str, Any], value: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Selection.model_validate(declared)
    (problem,) = refused.value.errors()
    assert value in ".".join(map(str, problem["loc"])) or value in problem["msg"]
