"""What would have fired a rule: checked by trying every value."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from tests.explain import shop
from tests.explain.conftest import Tell
from turnloom import Flow, FlowRouteExplained, Loom, OfferExplained, Path, Task
from turnloom.board.spec import Private, TagFilter
from turnloom.explain.logic.counterfactuals import ELSE, MOST, domain_of, smallest_change
from turnloom.variables.logic.conditions import Condition, Term, judge
from turnloom.variables.spec import VariableDefinition

NAMES = ("a", "b", "c", "d")
VALUES = ("x", "y", "z")

terms = st.builds(Term, st.sampled_from(NAMES), st.sampled_from(VALUES))
conditions = st.builds(lambda some: Condition(tuple(some)), st.lists(terms, min_size=1, max_size=2))


def first(rules: Sequence[Condition], values: Mapping[str, Any]) -> int | None:
    """The first rule that fires."""
    return next((n for n, each in enumerate(rules) if judge(each, values, {}).holds), None)


@settings(deadline=None)
@given(
    st.lists(conditions, min_size=1, max_size=4),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(VALUES), unique=True)),
)
def test_the_smallest_change_is_the_smallest_of_all(
    rules: Sequence[Condition], values: dict[str, Any], domains: dict[str, list[Any]]
) -> None:
    fired = first(rules, values)
    for number, rule in enumerate(rules):
        if number == fired:
            continue

        def fires(changed: Mapping[str, Any], number: int = number) -> bool:
            return first(rules, {**values, **changed}) == number

        names = list(dict.fromkeys(term.name for each in rules for term in each.terms))
        found = smallest_change(rule, names, domains, values, fires=fires)
        assert len(found) == fewest(fires, domains, values)
        if found:
            assert fires({each.variable: each.becomes for each in found})
            assert all(each.becomes in domains[each.variable] for each in found)
            assert all(each.was == values.get(each.variable) for each in found)


def fewest(fires: Any, domains: Mapping[str, Sequence[Any]], values: Mapping[str, Any]) -> int:
    """How many values have to change, at most `MOST`; 0 if that is not enough."""
    for size in range(1, MOST + 1):
        for names in combinations(domains, size):
            for picked in product(*(domains[name] for name in names)):
                changed = dict(zip(names, picked, strict=True))
                is_new = all(values.get(n) != v for n, v in changed.items())
                if is_new and fires(changed):
                    return size
    return 0


def declared(**fields: Any) -> VariableDefinition:
    source = {"type": "static", "value": None}
    return VariableDefinition.model_validate({"name": "v", "source": source, **fields})


def test_domains_are_declared() -> None:
    assert domain_of(declared(type="boolean"), [True, "x"]) == [True, False]
    assert domain_of(declared(type="string", enum=["x", "y"]), ["z"]) == ["x", "y"]
    assert domain_of(declared(type="string"), ["x", 3]) == ["x", ELSE]
    assert domain_of(declared(), ["x"]) == [] == domain_of(None, ["x"])


RULES = {
    "orchestrator.yaml": "{initial_agent: A, initial_message: Begin., max_turns: 2}",
    "agents.yaml": "{A: {system_message: Talk.}, B: {system_message: Talk.}}",
    "context_variables.yaml": """
        definitions:
          ready: {type: boolean,
            source: {type: environment, env_var: TEST_NONE, default: false}}
          stage: {type: string, enum: [new, old],
            source: {type: environment, env_var: TEST_NONE, default: new}}
          size: {type: integer, source: {type: environment, env_var: TEST_NONE, default: 3}}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: A, target_agent: B, handoff_type: condition,
             condition: '${ready} == True AND ${stage} == "old"'}
          - {source_agent: A, target_agent: terminate, handoff_type: condition,
             condition: '${stage} == "old" AND ${ready} == True'}
          - {source_agent: A, target_agent: A, handoff_type: condition,
             condition: '${size} == 3'}
          - {source_agent: A, target_agent: B, handoff_type: condition,
             condition: '${stage} == "old"'}
          - {source_agent: A, target_agent: terminate, handoff_type: after_work}
        """,
}


async def test_each_rule_says_what_would_have_fired_it(tell: Tell) -> None:
    told = await tell(RULES, {"A": ["Hm.", "Hm."]}, answers=())
    route = told.route(told.seq("route.decided", 1))
    assert [each.fired for each in route.rules] == [False, False, True, False, False]
    needed = {
        each.rule: [(value.variable, value.becomes, value.anything_else) for value in each.needed]
        for each in route.rules
    }
    assert needed == {
        1: [("ready", True, False), ("stage", "old", False)],
        2: [],  # rule 1 fires first, always
        3: [],  # it fired
        4: [("stage", "old", False), ("size", None, True)],
        5: [("size", None, True)],
    }
    assert [part.variable for part in route.rules[0].failed] == ["ready", "stage"]
    assert [part.wanted for part in route.rules[1].failed] == ["old", True]
    text = str(route)
    assert "rule 2 → terminate: no single change" in text
    assert "had ready been True (it was False) and stage been 'old' (it was 'new')" in text


class Parcel(BaseModel):
    """What is sent."""

    model_config = ConfigDict(frozen=True)
    size: str = "small"
    passes: int = 0


def note(state: Parcel) -> dict[str, int]:
    return {"passes": state.passes + 1}


def size(state: Parcel) -> str:
    return state.size


def is_done(state: Parcel) -> bool:
    return state.passes > 3


@pytest.mark.parametrize("given", ["small", "huge"])
async def test_each_case_of_a_branch_says_what_would_have_taken_it(
    given: str, tmp_path: FilePath
) -> None:
    flow = (
        Flow("parcels", Parcel)
        .start_with(note)
        .branch(
            size,
            {"small": Path().then(note, name="s"), "large": Path().then(note, name="l")},
            otherwise=Path().then(note, name="o"),
            name="by",
        )
        .repeat_until(is_done, Path().then(note, name="again"), name="loop")
        .finally_(note, name="end")
    )
    async with Loom(store=str(tmp_path / "runs.db")) as app:
        outcome = await app.run(flow, Parcel(size=given))
    async with Loom(store=str(tmp_path / "runs.db")) as app:  # without the flow
        events = await app.history.events(outcome.run_id)
        at = {event.kind: event.seq for event in reversed(events)}
        route = await app.explain.route(outcome.run_id, at["branch.taken"])
        loop = await app.explain.route(outcome.run_id, at["loop.passed"])
    assert isinstance(route, FlowRouteExplained) and isinstance(loop, FlowRouteExplained)
    fired = [each.target for each in route.rules if each.fired]
    assert fired == [given if given == "small" else "otherwise"]
    needed = [[value.becomes for value in each.needed] for each in route.rules]
    assert needed == [["small"], ["large"], [None]]
    assert "had value been 'large'" in str(route)
    (until,) = loop.rules
    assert not until.fired and until.needed[0].becomes is True


async def test_each_subscription_says_what_it_would_have_taken() -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("seller").consumes(shop.Parcel).publishes(shop.Order).with_engines(nothing)
        board.agent("by").consumes(shop.Order, from_agents=["seller"]).with_engines(nothing)
        board.agent("both").consumes(
            shop.Order, from_agents=["seller"], tags=TagFilter(include={"gift"})
        ).with_engines(nothing)
        board.agent("blind").consumes(shop.Order, tags={"gift"}).with_engines(nothing)
        board.agent("picky").consumes(shop.Order, where=lambda order: False).with_engines(nothing)
        board.agent("odd").consumes(
            shop.Order, from_agents=["seller"], where=lambda order: True
        ).with_engines(nothing)
        seen = Private(agents={"by", "both", "picky", "odd"})
        order = await board.publish(shop.Order(item="tea"), visibility=seen)
        await board.run_until_idle()
        assert order.run
        events = await app.history.events(order.run)
        seq = next(event.seq for event in events if event.kind == "artifact.offered")
        found = await app.explain.route(order.run, seq)
    assert isinstance(found, OfferExplained)
    failed = {each.subscription: [part.variable for part in each.failed] for each in found.to}
    assert failed == {
        "by#1": ["produced_by"],
        "both#1": ["produced_by", "tags"],
        "blind#1": ["tags", "visible"],
        "picky#1": ["condition 1"],
        "odd#1": ["produced_by"],
    }
    needed = {
        each.subscription: [(value.variable, value.becomes) for value in each.needed]
        for each in found.to
    }
    assert needed == {
        "by#1": [("produced_by", "seller")],
        "both#1": [("produced_by", "seller"), ("tags", ["gift"])],
        "blind#1": [],
        "picky#1": [("condition 1", True)],
        "odd#1": [],
    }
    unknown = [each.subscription for each in found.to if each.unknown]
    assert unknown == ["odd#1"] and shop.CARD not in str(found)
    assert "blind#1" in str(found) and "no single change" in str(found)


async def nothing(task: Task) -> None:
    """Answer nothing."""
