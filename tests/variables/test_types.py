"""Texts from outside become values of their declared type, and no value is of another one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.strategies import json_values
from tests.variables.declared import environment
from turnloom.kernel.values import Json, kind_of
from turnloom.variables.logic.types import coerce, misfit, same
from turnloom.variables.spec import VariableDefinition

# A text, and what it becomes as each type; `...` is "the default, with a warning".
TABLE: list[tuple[str, str, Json]] = [
    *[("boolean", text, True) for text in ("1", "true", "yes", "on", "TRUE", " Yes\n", "oN")],
    *[("boolean", text, False) for text in ("0", "false", "no", "off", "", "  ", "OFF", " No ")],
    ("string", "text", "text"),
    ("string", "", ""),
    ("string", "  kept  ", "  kept  "),
    ("string", "NaN", "NaN"),
    ("string", "\u2028é", "\u2028é"),
    ("integer", "5", 5),
    ("integer", "-7", -7),
    ("integer", " 12\n", 12),
    ("integer", "1" * 40, int("1" * 40)),
    *[("integer", text, ...) for text in ("", " ", "5.0", "1e3", "abc", "0x10", "٣", "1 2")],
    *[("integer", text, ...) for text in ("true", "[1]", '"5"', "9" * 5000)],
    ("number", "5", 5),
    ("number", "-1.5", -1.5),
    ("number", "1e3", 1000.0),
    *[("number", text, ...) for text in ("", "NaN", "Infinity", "-Infinity", "nan", "inf")],
    *[("number", text, ...) for text in ("1e999", "-1e999", "1,5", ".5", "false")],
    ("object", '{"a": [1, null]}', {"a": [1, None]}),
    ("document", "{}", {}),
    *[("object", text, ...) for text in ("", "[]", "{", '{"a": NaN}', "{'a': 1}", "5")],
    ("array", "[1, [true]]", [1, [True]]),
    *[("array", text, ...) for text in ("", "{}", "[1,]", "[Infinity]", "[" * 100_000)],
    ("array", r'["\ud800"]', ...),
]


@pytest.mark.parametrize(("type", "text", "value"), TABLE, ids=lambda part: repr(part)[:24])
def test_a_text_becomes_a_value_of_its_type_or_is_refused_with_a_note(
    type: str, text: str, value: Json
) -> None:
    coerced = coerce(environment(type, enum=None), text)
    if value is ...:
        assert coerced.failed
        assert "the default is used" in coerced.note
        assert len(coerced.note) < 300
    else:
        assert same(coerced.value, value) and kind_of(coerced.value) == kind_of(value)
        assert (coerced.note, coerced.failed) == ("", False)


@pytest.mark.parametrize("text", ["y", "t", "enabled", "2", "tru e", "ja"])
def test_a_word_that_is_neither_true_nor_false_is_false_with_a_warning(text: str) -> None:
    coerced = coerce(environment("boolean"), text)
    assert coerced.value is False and not coerced.failed
    assert "neither true nor false" in coerced.note and repr(text) in coerced.note


def test_null_in_the_environment_is_null() -> None:
    assert coerce(environment("object"), "null") == (None, "", False)


@pytest.mark.parametrize("type", ["string", "boolean", "integer", "object"])
def test_bytes_that_are_no_text_are_not_taken(type: str) -> None:
    assert coerce(environment(type), "caf\udce9").failed


@pytest.mark.parametrize(
    ("type", "enum", "text"),
    [("string", ["a", "b"], "c"), ("integer", [1, 2], "3"), ("boolean", [True], "off")],
)
def test_a_text_outside_of_the_enum_is_not_taken(type: str, enum: list[Json], text: str) -> None:
    assert coerce(environment(type, enum=enum), text).failed


@given(
    st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "document"]),
    st.text(st.characters(exclude_categories=()), max_size=20) | st.sampled_from(list('1[{t"')),
)
def test_whatever_the_environment_says_the_value_fits(type: str, text: str) -> None:
    definition = environment(type)
    coerced = coerce(definition, text)
    assert misfit(definition, coerced.value) is None
    assert not isinstance(coerced.value, float) or math.isfinite(coerced.value)


EXAMPLES: dict[str, list[Json]] = {
    "string": ["", "a"],
    "integer": [0, 1, -(2**80)],
    "number": [0.0, 1.5],
    "boolean": [True, False],
    "object": [{}, {"a": 1}],
    "array": [[], [1]],
}


@pytest.mark.parametrize("declared", [*EXAMPLES, "document"])
def test_a_value_fits_its_type_and_no_other(declared: str) -> None:
    own = {"document": "object"}.get(declared, declared)
    fitting = {own, *(["integer"] if own == "number" else [])}
    for type, values in EXAMPLES.items():
        for value in values:
            problem = misfit(environment(declared), value)
            assert (problem is None) == (type in fitting), value
            assert problem is None or declared in problem


@pytest.mark.parametrize("declared", [*EXAMPLES, "document"])
def test_null_fits_every_type(declared: str) -> None:
    assert misfit(environment(declared, enum=["a"]), None) is None


def test_an_enum_allows_what_it_lists_and_true_is_not_one() -> None:
    definition = environment("integer", enum=[1, 2])
    assert misfit(definition, 1) is None
    assert "[1, 2]" in str(misfit(definition, 3))
    untyped = {"name": "x", "enum": [1, [0]], "source": {"type": "static", "value": 1}}
    assert misfit(VariableDefinition.model_validate(untyped), True) is not None
    assert misfit(VariableDefinition.model_validate(untyped), [False]) is not None
    assert misfit(VariableDefinition.model_validate(untyped), [0]) is None


@given(json_values, json_values)
def test_values_are_the_same_exactly_if_their_json_is(a: Json, b: Json) -> None:
    assert same(a, a)
    assert same(a, b) == same(b, a)
    assert same([a], [b]) == same(a, b) == same({"k": a}, {"k": b})


@pytest.mark.parametrize(
    ("a", "b"),
    [(True, 1), (False, 0), ([True], [1]), ({"a": [0]}, {"a": [False]}), ({"a": 1}, {"b": 1})],
)
def test_true_is_not_one_however_deep(a: Json, b: Json) -> None:
    assert not same(a, b)


def test_whole_numbers_are_equal_however_they_are_written() -> None:
    assert same(1, 1.0)
    assert not same(1, "1")
    assert not same([1], [1, 2])
