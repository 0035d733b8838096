"""Schemas that no value fulfils are found; no other schema is."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnloom.agents.logic.outputs.schemas import SchemaModel, schema_model

EMPTY: list[dict[str, Any]] = [
    {"not": {}},
    {"enum": []},
    {"type": "string", "enum": [1, None]},
    {"type": "integer", "const": "a"},
    {"enum": ["a", "bb"], "minLength": 3},
    {"type": "integer", "minimum": 3, "maximum": 2},
    {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    {"type": "integer", "minimum": 0.1, "maximum": 0.9},
    {"type": "number", "minimum": 1, "exclusiveMaximum": 1},
    {"type": "string", "minLength": 2, "maxLength": 1},
    {"type": "array", "minItems": 2, "maxItems": 1},
    {"type": "array", "minItems": 1, "items": {"not": {}}},
    {"type": "array", "minItems": 2, "prefixItems": [{}, False]},
    {"type": "array", "contains": {"type": "null", "const": 1}},
    {"type": "object", "required": ["a"], "additionalProperties": False},
    {"type": "object", "required": ["a"], "properties": {"a": {"enum": []}}},
    {"type": "object", "required": ["a", "b"], "maxProperties": 1},
    {"allOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object", "allOf": [{"type": "array"}]},
    {"anyOf": [{"not": {}}, {"type": "string", "enum": [1]}]},
    {"$ref": "#/$defs/no", "$defs": {"no": {"not": {}}}},
    {"type": ["string", "array"], "minLength": 2, "maxLength": 1, "minItems": 1, "items": False},
]

SOME: list[dict[str, Any]] = [
    {},
    {"type": "object", "properties": {"old": {"not": {}}}},
    {"type": "object", "properties": {"old": False}, "additionalProperties": False},
    {"type": "array", "items": False},
    {"type": "array", "contains": {"not": {}}, "minContains": 0},
    {"minLength": 2, "maxLength": 1},
    {"minimum": 3, "maximum": 2},
    {"type": ["string", "null"], "minLength": 2, "maxLength": 1},
    {"type": "integer", "minimum": 2, "maximum": 2},
    {"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
    {"type": "number", "allOf": [{"type": "integer"}]},
    {"enum": [1, "a"], "type": "string"},
    {"not": {"type": "string"}},
    {"anyOf": [{"not": {}}, {"type": "string"}]},
    {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": []},
    {"$ref": "#/$defs/any", "$defs": {"any": True}},
    {"const": {"a": 1}, "$ref": "#/$defs/any", "$defs": {"any": {}}},
]


@pytest.mark.parametrize("schema", EMPTY, ids=str)
def test_a_schema_that_contradicts_itself_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="No value matches this schema: "):
        schema_model("answer", schema)


@pytest.mark.parametrize("schema", SOME, ids=str)
def test_a_schema_that_something_fulfils_is_not(schema: dict[str, Any]) -> None:
    assert schema_model("answer", schema).schema == schema


def test_schemas_that_share_parts_are_looked_into_once() -> None:
    pair = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    schema_model("answer", {"$ref": "#/$defs/d0", "$defs": {**pair, "d60": {"type": "null"}}})


def test_what_is_too_deep_or_too_large_to_tell_is_not_refused() -> None:
    chain = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(600)}
    schema_model("answer", {"$ref": "#/$defs/d0", "$defs": {**chain, "d600": {"type": "null"}}})
    schema_model("answer", {"const": 10**400, "multipleOf": 0.5})


NUMBERS = st.integers(-2, 3)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "ab"]) | st.just(0.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
KINDS = st.sampled_from("array boolean integer null number object string".split())
SIZES = st.integers(0, 2)


def _words(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = st.lists(inner, min_size=1, max_size=2)
    bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    sizes = ("minLength", "maxLength", "minItems", "maxItems", "maxProperties", "minContains")
    words: dict[str, st.SearchStrategy[Any]] = {
        "type": KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True),
        **dict.fromkeys(bounds, NUMBERS),
        **dict.fromkeys(sizes, SIZES),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), parts),
        **dict.fromkeys(("items", "contains", "not", "additionalProperties"), inner),
        "required": st.lists(st.sampled_from("ab"), unique=True),
        "properties": st.dictionaries(st.sampled_from("ab"), inner),
        "enum": st.lists(VALUES, max_size=2),
        "const": VALUES,
    }
    return st.fixed_dictionaries({}, optional=words)


SCHEMAS = st.recursive(st.booleans() | st.just({}), _words, max_leaves=6)


@settings(max_examples=150, deadline=None)
@given(schema=SCHEMAS.filter(lambda each: isinstance(each, dict)), values=st.lists(VALUES))
def test_what_a_value_fulfils_is_never_refused(schema: dict[str, Any], values: list[Any]) -> None:
    if any(SchemaModel("answer", schema).validate(each).problem is None for each in values):
        schema_model("answer", schema)
