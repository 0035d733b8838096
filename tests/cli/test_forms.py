"""What a JSON Schema demands of a person, and what they may type."""

from typing import Any

import pytest

from turnloom.agents.spec import Question
from turnloom.cli.forms import AnswerForm, GivenValue

NAMED = {"$defs": {"Verdict": {"enum": ["yes", "no"]}, "Note": {"type": "string"}}}
VERDICT = {"type": "object", "properties": {"verdict": {"$ref": "#/$defs/Verdict"}}} | NAMED
NOTED = {
    "type": "object",
    "properties": {
        "note": {"anyOf": [{"$ref": "#/$defs/Note"}, {"type": "null"}]},
        "again": {"$ref": "#/properties/note"},
        "count": {"type": "integer", "maximum": 3},
    },
    "required": ["count"],
} | NAMED


def form(schema: Any) -> AnswerForm:
    return AnswerForm(Question("q", tool="ask", schema=schema))


@pytest.mark.parametrize(
    ("schema", "demand", "example"),
    [
        (None, "JSON or a text", "your answer"),
        ({"enum": ["a", 1, None]}, "a | 1 | null", "a"),
        ({"const": "a"}, "a", "a"),
        ({"type": "integer"}, "an integer", "0"),
        ({"type": ["boolean", "null"]}, "true or false", "true"),
        ({"type": ["integer", "string"]}, "JSON", "your answer"),
        ({"type": "object"}, "an object", "{}"),
        (VERDICT, "{verdict?: yes | no}", "yes"),
        (NOTED, "{count: an integer, note?: a string, again?: a string}", '{"count":0}'),
        ({"$ref": "#/$defs/Verdict", **NAMED}, "yes | no", "yes"),
        ({"$ref": "#"}, "JSON", "your answer"),  # it refers to itself and to nothing else
        ({"type": "object", "properties": {"a": {}}, "required": ["b"]}, "an object", "{}"),
    ],
)
def test_a_schema_is_told_on_one_line(schema: Any, demand: str, example: str) -> None:
    assert (form(schema).demand, form(schema).example) == (demand, example)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (None, "a text", "a text"),
        (None, '{"a": 1}', {"a": 1}),
        (None, "null", None),
        ({"type": "string"}, "12", "12"),
        ({"type": "string"}, '"12"', "12"),
        ({"enum": ["12", "a"]}, "12", "12"),
        ({"type": "boolean"}, "yes", True),
        (VERDICT, "no", {"verdict": "no"}),
        (VERDICT, "NO", {"verdict": "no"}),
        (VERDICT, '{"verdict": "no"}', {"verdict": "no"}),
        (NOTED, '{"count": 3}', {"count": 3}),
    ],
)
def test_a_text_is_read_as_the_schema_takes_it(schema: Any, text: str, value: Any) -> None:
    assert form(schema).read(text) == GivenValue(value)


@pytest.mark.parametrize(
    ("schema", "text", "problem"),
    [
        (VERDICT, "maybe", "is none of these: yes, no"),
        (VERDICT, "1", "is not of type 'object'"),  # choices are numbered on the screen alone
        (VERDICT, '{"verdict": 1}', "`verdict`: 1 is not one of"),
        (NOTED, '{"count": 4}', "`count`: 4 is greater than the maximum of 3"),
        ({"type": "array"}, "[" * 5000, "is not JSON"),
    ],
)
def test_a_text_that_does_not_fit_says_why(schema: Any, text: str, problem: str) -> None:
    read = form(schema).read(text)
    assert isinstance(read, str) and problem in read


@pytest.mark.parametrize(
    ("name", "typed", "expected"),
    [
        ("count", "2", GivenValue(2)),
        ("count", "4", "`count`: 4 is greater than the maximum of 3"),
        ("count", "two", '"two" is not an integer.'),
        ("note", "12", GivenValue("12")),
        ("again", "null", GivenValue("null")),
    ],
)
def test_a_field_is_judged_alone(name: str, typed: str, expected: Any) -> None:
    fields = {field.name: field for field in form(NOTED).fields}
    assert list(fields) == ["count", "note", "again"]  # what is required comes first
    assert form(NOTED).typed(fields[name], typed) == expected


def test_choices_are_typed_by_word_or_number() -> None:
    numbers = form({"enum": [3, 2, 1, "three"]})
    (field,) = numbers.fields
    for typed, value in (("3", 3), ("4", "three"), ("Three", "three"), ("1", 1)):
        assert numbers.typed(field, typed) == GivenValue(value)  # a value comes before a number
    assert numbers.typed(field, "five") == '"five" is none of these: 3, 2, 1, three.'
