"""Conditions: one equality or two, and the reason when they do not hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnloom.kernel.values import Json
from turnloom.variables.logic.conditions import (
    FORM,
    Condition,
    ConditionVerdict,
    Term,
    judge,
    parse_condition,
)


def condition(*terms: tuple[str, Json]) -> Condition:
    return Condition(tuple(Term(name, value) for name, value in terms))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("${a} == True", [("a", True)]),
        ("a is true", [("a", True)]),
        ("a == TRUE", [("a", True)]),
        ("${a} is False", [("a", False)]),
        ("a==false", [("a", False)]),
        ("${ a }==FALSE", [("a", False)]),
        ("  a  ==  'x y'  ", [("a", "x y")]),
        ('a is "True"', [("a", "True")]),
        ("a == ''", [("a", "")]),
        ('a == "it\'s"', [("a", "it's")]),
        ("a == 5", [("a", 5)]),
        ("a == -5", [("a", -5)]),
        ("a == 0.50", [("a", 0.5)]),
        ("a == 0", [("a", 0)]),
        ("is is true", [("is", True)]),
        ("${größe} == 'groß'", [("größe", "groß")]),
        ("When a is true", [("a", True)]),
        ("when ${when} is true", [("when", True)]),
        ("whenever is true", [("whenever", True)]),
        ('When a is true AND ${b} == "x"', [("a", True), ("b", "x")]),
        ("${a} == 1 and b is 'AND'", [("a", 1), ("b", "AND")]),
        ("a == true\n  AND\n  b == true", [("a", True), ("b", True)]),
    ],
)
def test_the_allowed_forms_are_read(text: str, terms: list[tuple[str, Json]]) -> None:
    assert parse_condition(text) == condition(*terms)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "when",
        "a",
        "${a}",
        "a is",
        "a == ",
        "a = true",
        "a === true",
        "a != true",
        "a is not true",
        "not a is true",
        "!a",
        "a < 5",
        "a >= 5",
        "a == 5 OR b == 6",
        "a == 5 || b == 6",
        "a == 5 && b == 6",
        "a is true, b is true",
        "a is true b is true",
        "a is true AND",
        "AND a is true",
        "a is true AND b is true AND c is true",
        "(a is true)",
        "len(a) == 5",
        "a == len('x')",
        "a.b == true",
        "a[0] == true",
        "a == b",
        "a == nothing",
        "a == NoneType",
        "not true",
        "true == a",
        "a is truely",
        "a is trueAND b is true",
        "a == 007",
        "a == 1e5",
        "a == ٣",
        "a == 5.",
        "a == .5",
        f"a == {'9' * 5000}",
        "a == 'x",
        "a == 'x\\'y'",
        "a == true; import os",
        "__import__('os').system('x') == 1",
        "5 == 5",
        "${a == true",
        "$a == true",
        "{a} == true",
        "${${a}} == true",
    ],
)
def test_every_other_form_is_refused_with_the_allowed_one(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_condition(text)
    assert str(refused.value).startswith("Condition ")
    assert FORM in str(refused.value)


@given(st.text(max_size=40) | st.text(alphabet="ab${}='\" isANDtrue05-.", max_size=40))
def test_no_text_is_read_as_something_else(text: str) -> None:
    """What is accepted says the same when it is written out again."""
    try:
        read = parse_condition(text)
    except ValueError as error:
        assert FORM in str(error)
        return
    if not read.terms:
        assert text.strip().lower() == "true"
        return
    assert len(read.terms) <= 2
    assert parse_condition(" AND ".join(written(term) for term in read.terms)) == read


def written(term: Term) -> str:
    if isinstance(term.value, str):
        quote = "'" if '"' in term.value else '"'
        return f"${{{term.name}}} == {quote}{term.value}{quote}"
    return f"${{{term.name}}} == {term.value!r}"


def test_a_condition_may_always_hold_or_ask_for_no_value() -> None:
    assert judge(parse_condition(" True "), {}, {}) == ConditionVerdict(True, {})
    for text in ("${a} == None", "a is null"):
        assert judge(parse_condition(text), {"a": None}, {}).holds
        assert not judge(parse_condition(text), {"a": {}}, {}).holds


def test_a_condition_holds_if_every_term_does() -> None:
    both = condition(("a", True), ("b", "x"))
    assert judge(both, {"a": True, "b": "x", "c": 1}, {}) == ConditionVerdict(
        True, {"a": True, "b": "x"}
    )


@pytest.mark.parametrize(
    ("values", "saw", "why_not"),
    [
        ({"a": False, "b": "x"}, {"a": False}, "a is False, not True"),
        ({"a": 1, "b": "x"}, {"a": 1}, "a is 1, not True"),
        ({"a": None, "b": "x"}, {"a": None}, "a is None, not True"),
        ({"a": True, "b": "X"}, {"a": True, "b": "X"}, "b is 'X', not 'x'"),
        ({"a": True}, {"a": True}, "b is absent: gone in production"),
        ({}, {}, "a is absent: not set"),
    ],
)
def test_a_condition_that_does_not_hold_says_what_it_saw_and_why(
    values: dict[str, Json], saw: dict[str, Json], why_not: str
) -> None:
    both = condition(("a", True), ("b", "x"))
    verdict = judge(both, values, {"b": "gone in production"})
    assert verdict == ConditionVerdict(False, saw, why_not)


def test_a_long_value_is_cut_in_the_reason() -> None:
    verdict = judge(condition(("a", "x")), {"a": "y" * 10_000}, {})
    assert len(verdict.why_not) < 150
