"""Derived variables: what an event changes, and nothing else."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.variables.declared import checked, derived, hear, trigger, triggers_of
from turnloom.kernel.values import Json
from turnloom.variables.events import ContextChanged
from turnloom.variables.logic.matching import reader


def fires_on(text: str, **said: Any) -> bool:
    """Whether a trigger fires on a text."""
    return reader(checked(trigger(**said))).find(text) is not None


@pytest.mark.parametrize(
    ("said", "text", "fires"),
    [
        ({"equals": "NEXT"}, "NEXT", True),
        ({"equals": "NEXT"}, "  next\n", True),
        ({"equals": " next "}, "NEXT", True),
        ({"equals": "NEXT"}, "NEXT!", False),
        ({"equals": "NEXT", "trim": False}, " NEXT", False),
        ({"equals": " NEXT", "trim": False}, " next", True),
        ({"equals": "NEXT", "ignore_case": False}, "next", False),
        ({"equals": "NEXT", "ignore_case": False}, " NEXT ", True),
        ({"equals": "NEXT", "exact": True}, "NEXT", True),
        ({"equals": "NEXT", "exact": True}, " NEXT", False),
        ({"equals": "NEXT", "exact": True}, "next", False),
        ({"equals": "STRASSE"}, "Straße", True),
        ({"equals": "ΣΊΣΥΦΟΣ"}, "σίσυφος", True),
        ({"equals": ""}, " \n", True),
        ({"contains": "next"}, "go to NEXT please", True),
        ({"contains": "next"}, "nothing", False),
        ({"contains": " a "}, "banana", False),
        ({"contains": " a "}, "is a plan", True),
        ({"contains": "next", "exact": True}, "NEXT", False),
        ({"contains": "strasse"}, "In der Straße.", True),
        ({"regex": r"^plan \d+$"}, " PLAN 12 ", True),
        ({"regex": r"^plan \d+$", "trim": False}, " plan 12", False),
        ({"regex": r"^plan \d+$", "ignore_case": False}, "PLAN 12", False),
        ({"regex": r"^ plan$", "exact": True}, " plan", True),
        ({"regex": "a|b"}, "xB", True),
        ({"regex": "É"}, "é", True),
        ({"equals": "next", "contains": "x", "regex": "^n"}, "NEXT", True),
        ({"equals": "next", "contains": "y"}, "NEXT", False),
        ({"contains": "x", "regex": "^m"}, "NEXT", False),
    ],
)
def test_a_trigger_fires_if_all_that_its_match_says_holds(
    said: dict[str, Any], text: str, fires: bool
) -> None:
    assert fires_on(text, **said) is fires


@pytest.mark.timeout(5)
@pytest.mark.parametrize("regex", ["(a+)+$", "(a|aa)+$", "(.*a){25}", r"^(\w+\s?)*$"])
def test_no_regular_expression_can_stall(regex: str) -> None:
    fires_on("a" * 100_000 + "!", regex=regex)


@pytest.mark.parametrize("regex", ["(a", "a{2000}", r"(a)\1", "(?=a)", "[z-a]", "*"])
def test_a_regular_expression_that_re2_does_not_know_is_refused_quietly(
    regex: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="RE2"):
        reader(checked(trigger(regex=regex)))
    assert capfd.readouterr() == ("", "")


def test_a_trigger_sets_the_value_it_says_and_true_if_it_says_none() -> None:
    index = triggers_of(
        derived("flag", trigger(contains="go")),
        derived("stage", trigger(contains="go", value="moving"), default="still"),
    )
    assert hear(index, "A", "go", {"flag": False, "stage": "still"}) == [
        ContextChanged("flag", True, False, "trigger:flag[0]"),
        ContextChanged("stage", "moving", "still", "trigger:stage[0]"),
    ]


@pytest.mark.parametrize("value", [True, "moving", 0, None, [1, [True]], {"a": 1}])
def test_setting_the_value_it_has_changes_nothing(value: Json) -> None:
    index = triggers_of(derived("x", trigger(contains="go", value=value), default=value))
    assert hear(index, "A", "go", {"x": value}) == []


def test_true_is_set_where_one_stands() -> None:
    index = triggers_of(derived("x", trigger(contains="go", value=[True])))
    assert hear(index, "A", "go", {"x": [1]})


def test_any_of_several_triggers_will_do() -> None:
    index = triggers_of(
        derived("x", trigger(equals="a"), trigger(equals="b"), trigger("B", equals="c"))
    )
    before = {"x": False}
    assert [change.writer for change in hear(index, "A", "a", before)] == ["trigger:x[0]"]
    assert [change.writer for change in hear(index, "A", "b", before)] == ["trigger:x[1]"]
    assert [change.writer for change in hear(index, "B", "c", before)] == ["trigger:x[2]"]
    assert hear(index, "A", "c", before) == []


@pytest.mark.parametrize("before", [0, 1, 2])
def test_of_several_triggers_that_match_the_last_one_decides_whatever_the_value_was(
    before: int,
) -> None:
    index = triggers_of(
        derived("x", trigger(contains="go", value=1), trigger(contains="go", value=2), default=0)
    )
    changes = hear(index, "A", "go", {"x": before})
    assert changes == ([] if before == 2 else [ContextChanged("x", 2, before, "trigger:x[1]")])


def test_a_trigger_fires_again_unless_it_is_said_to_fire_once() -> None:
    index = triggers_of(
        derived("again", trigger(contains="go")),
        derived("once", trigger(contains="go", once=True)),
    )
    fired = {"trigger:again[0]", "trigger:once[0]"}
    changes = hear(index, "A", "go", {"again": False, "once": False}, fired)
    assert [change.name for change in changes] == ["again"]


def test_a_message_is_hidden_by_the_matcher_that_fires_also_when_nothing_changes() -> None:
    index = triggers_of(derived("x", trigger(equals="NEXT", hide=True), trigger(contains="plan")))
    assert index.hides("A", " next ")
    assert not index.hides("A", "the plan")
    assert not index.hides("B", "NEXT")


@pytest.mark.parametrize("match", [{"contains": "next"}, {"regex": "n.xt"}, {"equals": "go: NEXT"}])
def test_whatever_matches_hides(match: dict[str, str]) -> None:
    index = triggers_of(derived("x", trigger(**match, hide=True)))
    assert index.hides("A", "go: NEXT")
    assert not index.hides("A", "go on")


class Name(str):
    """A name that knows how often it was compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("agent", ["Agent7", "Nobody"])
def test_a_message_looks_at_the_triggers_of_its_agent_only(agent: str) -> None:
    many = [derived(f"x{n}", trigger(f"Agent{n}", contains="go")) for n in range(1000)]
    index, Name.compared = triggers_of(*many), 0
    changes = hear(index, Name(agent), "go", {})
    assert [change.name for change in changes] == ["x7"] * (agent == "Agent7")
    assert Name.compared <= 2


def test_a_variable_without_triggers_never_changes() -> None:
    assert hear(triggers_of(derived("x")), "A", "go", {"x": 1}) == []


words = st.sampled_from(["go", "GO ", "stop", "a", ""])
some_triggers = st.builds(
    trigger,
    st.sampled_from(["A", "B"]),
    contains=words,
    value=st.sampled_from([True, False, 1, 2, None]),
    once=st.booleans(),
    exact=st.booleans(),
)
some_variables = st.lists(some_triggers, max_size=4)


@given(
    st.lists(some_variables, max_size=4),
    st.lists(st.tuples(st.sampled_from("AB"), words), max_size=6),
    st.dictionaries(st.sampled_from(["x0", "x1", "x2", "x3"]), st.sampled_from([True, 1, None])),
)
def test_deriving_is_deterministic_and_a_second_time_changes_nothing(
    declared: list[list[dict[str, Any]]], said: list[tuple[str, str]], values: dict[str, Json]
) -> None:
    definitions = [derived(f"x{n}", *each) for n, each in enumerate(declared)]
    one, other = triggers_of(*definitions), triggers_of(*definitions)
    fired: set[str] = set()
    for agent, text in said:
        changes = hear(one, agent, text, values, fired)
        assert changes == hear(other, agent, text, dict(values), frozenset(fired))
        assert len({change.name for change in changes}) == len(changes)
        values = values | {change.name: change.value for change in changes}
        assert {c.name: c.value for c in hear(one, agent, text, values, fired)} == {}
        fired |= {change.writer for change in changes}


@given(st.text(string.printable, max_size=20))
def test_what_equals_also_contains_and_matches_its_own_escape(text: str) -> None:
    assert fires_on(text, equals=text)
    assert fires_on(text, contains=text.strip())
    escaped = "".join(f"\\x{{{ord(letter):x}}}" for letter in text.strip())
    assert fires_on(text, regex=f"^{escaped}$")
