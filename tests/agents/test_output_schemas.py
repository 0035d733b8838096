"""JSON Schemas: those that models give say what the models do; those that are given are kept to."""

import subprocess
import sys
from time import process_time
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.agents.outputs import right, written
from tests.support.raising import raising
from turnloom.agents.logic.outputs.checking import check_outputs, check_response
from turnloom.agents.logic.outputs.schemas import SchemaModel, schema_model
from turnloom.agents.spec.outputs import OutputModel, Outputs
from turnloom.errors import Diagnostic
from turnloom.kernel.documents import DeclarationFile
from turnloom.kernel.models import DocumentEntry, Report
from turnloom.variables.logic.types import same

# ------------------------------------------------------------------ what the models give

NAMES = ("A", "B", "C")
WORDS = ("a", "b", 1, 2.5, True, None)
TYPES = ("str", "int", "float", "bool", "any", "null", "list", "dict")
KEYS = st.sampled_from(["a", "b", "schema"])
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, 2.0**60])
    | st.sampled_from(["a", "b", ""]),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(KEYS, inside, max_size=3),
    max_leaves=6,
)


def words() -> st.SearchStrategy[dict[str, Any]]:
    chosen = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique_by=repr)
    return st.builds(lambda words: {"type": "literal", "values": words}, chosen)


def larger(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inside | st.none(), min_size=1, max_size=3)
    fields = st.dictionaries(KEYS, inside.flatmap(field), min_size=1, max_size=3)
    return st.one_of(
        st.builds(lambda item: {"type": "list", "items": item}, inside),
        st.builds(lambda value: {"type": "optional_dict", "values": value}, inside),
        st.builds(lambda variants: {"type": "union", "variants": variants}, several),
        st.builds(lambda fields: {"type": "object", "fields": fields}, fields),
    )


def field(form: Any) -> st.SearchStrategy[Any]:
    form = {"type": form} if isinstance(form, str) else form
    more = ({}, {"optional": True}, {"required": True}, {"default": None}, {"default": 1})
    return st.sampled_from(more).map(lambda said: {**form, **said})


forms = st.recursive(
    st.sampled_from([*TYPES, *NAMES, *(f"optional_{name}" for name in NAMES)]) | words(),
    larger,
    max_leaves=5,
)


@st.composite
def models(draw: st.DrawFn) -> dict[str, OutputModel]:
    """Models that are right and may name each other."""
    fields = st.dictionaries(KEYS, forms.flatmap(field), min_size=1, max_size=3)
    model = st.one_of(
        st.builds(lambda keys: {"type": "model", "fields": keys}, fields),
        st.builds(
            lambda variants: {"type": "union", "variants": variants},
            st.lists(forms, min_size=1, max_size=3),
        ),
        words(),
    )
    report = Report("Flow")
    value = {"models": {name: draw(model) for name in NAMES}}
    outputs = check_outputs(report, DeclarationFile("outputs.json", value, ""), frozenset())
    assume(not report.problems)
    return dict(outputs.models)


def values_of(schema: Any, root: Any, depth: int = 4) -> st.SearchStrategy[Any]:
    """Values that mostly fit a schema."""
    inner = depth - 1
    if depth == 0:
        return JUNK
    match schema:
        case {"$ref": str(reference)}:
            found = values_of(root["$defs"][reference.removeprefix("#/$defs/")], root, inner)
        case {"anyOf": list(variants)}:
            found = st.one_of([values_of(each, root, inner) for each in variants])
        case {"enum": list(allowed)}:
            found = st.sampled_from(allowed)
        case {"properties": dict(properties), **rest}:
            parts = {key: values_of(part, root, inner) for key, part in properties.items()}
            needed = {key: parts.pop(key) for key in rest.get("required", ())}
            found = st.fixed_dictionaries(needed, optional=parts)
        case {"type": "array", **rest}:
            found = st.lists(values_of(rest.get("items", {}), root, inner), max_size=3)
        case {"type": "object", **rest}:
            value = values_of(rest.get("additionalProperties", {}), root, inner)
            found = st.dictionaries(KEYS, value, max_size=3)
        case _:
            found = JUNK
    return st.one_of(found, found, found, JUNK)


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_schema_accepts_exactly_what_its_model_accepts(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(sorted(data.draw(models()).items())))[1]
    Draft202012Validator.check_schema(model.schema)
    validator = Draft202012Validator(model.schema)
    for value in data.draw(st.lists(values_of(model.schema, model.schema), max_size=8)):
        found, problem = model.validate(value)
        assert validator.is_valid(value) == (problem is None), problem
        if problem is None:
            assert validator.is_valid(found), "what comes out fits"
            assert same(model.validate(found).value, found), "and comes out the same again"


# ------------------------------------------------------------------ schemas that are given

ANSWER = {
    "type": "object",
    "properties": {
        "agree": {"type": "boolean"},
        "age": {"type": "integer", "minimum": 18},
        "mail": {"type": "string", "format": "email"},
        "code": {"type": "string", "pattern": "^[a-z]+$"},
        "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/t"}]}},
    },
    "required": ["agree"],
    "$defs": {"t": {"type": "object", "required": ["x"], "x-widget": "chip"}},
}


def test_a_schema_that_is_given_is_kept_to() -> None:
    model = schema_model("Answer", ANSWER)
    assert (model.name, model.schema) == ("Answer", ANSWER)
    value = {"agree": True, "age": 20, "mail": "a@b.c", "code": "abc", "tags": ["x", {"x": 1}]}
    assert model.validate(value) == (value, None)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({}, "The value: 'agree' is a required property"),
        ([], "The value: [] is not of type 'object'"),
        ({"agree": "yes"}, "`agree`: 'yes' is not of type 'boolean'"),
        ({"agree": True, "age": 3}, "`age`: 3 is less than the minimum of 18"),
        ({"agree": True, "mail": "x"}, "`mail`: 'x' is not a 'email'"),
        ({"agree": True, "code": "A"}, "`code`: 'A' does not match '^[a-z]+$'"),
        ({"agree": True, "tags": [{}]}, "`tags[0]`: 'x' is a required property"),
    ],
)
def test_what_does_not_fit_is_said_in_words(value: Any, says: str) -> None:
    assert schema_model("Answer", ANSWER).validate(value) == (None, says)


def test_a_schema_may_refer_to_any_schema_in_it() -> None:
    parts = {"a/b": {"type": "string"}, "c~%": {"$ref": "#/$defs/a~1b"}, "d": {"$ref": "#"}}
    keys = {"x": {"$ref": "#/$defs/c~0%25"}, "y": {"$ref": "#/$defs/d"}}
    model = schema_model("S", {"type": "object", "$defs": parts, "properties": keys})
    assert model.validate({"x": "a", "y": {"y": {}}}).problem is None
    assert model.validate({"y": {"x": 1}}).problem == "`y.x`: 1 is not of type 'string'"


def test_a_long_value_does_not_hide_what_is_wrong() -> None:
    found = schema_model("Answer", ANSWER).validate({"agree": "y" * 100_000, "age": ["x"] * 10_000})
    agree, age = (found.problem or "").split("\n")
    assert agree.endswith("is not of type 'boolean'") and age.endswith("is not of type 'integer'")
    assert len(agree) < 240


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "strng"}, "'strng'"),
        ({"properties": {"x": {"minLength": -1}}}, "-1"),
        ({"requird": []}, "'required'"),
        ({"properties": {"x": {"patternProperties": {}}}}, "'patternProperties'"),
        ({"pattern": "(?=x)"}, "RE2"),
        ({"$ref": "#/$defs/x"}, "'#/$defs/x'"),
        ({"$ref": "https://example.org/x"}, "'https://example.org/x'"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "2020-12/schema'"),
        ({"$ref": "#/default", "default": {"type": 5}}, "'#/default'"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "2020-12"),
    ],
)
def test_a_bad_schema_is_refused(schema: dict[str, Any], value: str) -> None:
    with raising(ValueError, value):
        schema_model("Answer", schema)


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"$ref": "#"}, 1, False),
        ({"pattern": "^(a+)+$"}, "a" * 100_000 + "b", False),
        ({"multipleOf": 0.1}, 10**400, False),
        ({}, [[[[]]]] * 10_000, True),
        ({}, float("inf"), False),
    ],
)
def test_nothing_stalls_or_breaks_a_schema(schema: Any, value: Any, fits: bool) -> None:
    begin = process_time()
    problem = schema_model("S", schema).validate(value).problem
    assert (problem is None) == fits
    assert process_time() - begin < 5


# -------------------------------------------------------------------------- responses


def responds(text: str, outputs: Outputs) -> tuple[OutputModel | None, list[Diagnostic]]:
    report, document = Report("Flow"), written(text)
    entry = DocumentEntry(("response",), document.value["response"])
    return check_response(report, document, entry, outputs), report.problems


def test_a_response_is_a_model_by_name_or_a_schema() -> None:
    outputs = right("models: {Plan: {type: literal, values: [a]}}")
    assert responds("response: Plan", outputs) == (outputs.models["Plan"], [])
    model, problems = responds("response: {type: string}", outputs)
    assert isinstance(model, SchemaModel) and problems == []


@pytest.mark.parametrize(
    ("text", "line", "code", "says"),
    [
        ("\nresponse: Plam", 1, "W039", "'Plan'"),
        ("response: 5", 1, "W012", "5"),
        ("response:\n  type: object\n  requird: [x]", 3, "W010", "'required'"),
        ("response:\n  properties:\n    x:\n      type: strng", 4, "W012", "'strng'"),
        ("response:\n  items:\n    pattern: '(?=x)'", 3, "W025", "RE2"),
        ("response:\n  anyOf:\n  - {}\n  - $ref: '#/x'", 4, "W039", "'#/x'"),
    ],
)
def test_a_bad_response_is_told_where_it_stands(text: str, line: int, code: str, says: str) -> None:
    outputs = right("models: {Plan: {type: literal, values: [a]}}")
    model, (problem,) = responds(text, outputs)
    assert model is None
    assert (problem.line, problem.code) == (line, code)
    assert says in f"{problem.message} {problem.remedy}"


def test_who_writes_no_schema_does_not_pay_for_it() -> None:
    program = (
        "import sys, turnloom.agents.logic.outputs.checking; sys.exit('jsonschema' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
