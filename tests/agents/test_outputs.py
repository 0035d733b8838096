"""Structured outputs: what can be declared, what it accepts, and what is said of the rest."""

import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from tests.agents.outputs import declared, model_of, right, written
from turnloom.agents.logic.outputs.checking import check_outputs
from turnloom.agents.spec.outputs import OutputModel
from turnloom.kernel.models import Report

GREETING = """
    structured_outputs:
      models:
        GreetingResult:
          type: model
          fields:
            name: {type: str, description: The user's name.}
            language:
              type: union
              variants:
                - str
                - 'null'
              description: Language of the greeting, or null if unknown.
"""


def accepts(model: OutputModel, *values: Any) -> list[bool]:
    return [model.validate(value).problem is None for value in values]


def problem(model: OutputModel, value: Any) -> str:
    found, words = model.validate(value)
    assert found is None
    assert words is not None
    return words


# ------------------------------------------------------------------------------ documents


@pytest.mark.parametrize(
    "text",
    [
        "structured_outputs: {models: {M: {type: literal, values: [a]}}, registry: {Asker: M}}",
        "structured_outputs: {models: {M: {type: literal, values: [a]}}}\nregistry: {Asker: M}",
        "models: {M: {type: literal, values: [a]}}\nregistry: {Asker: M}",
        "models: [{name: M, type: literal, values: [a]}]\nregistry: {Asker: M, Planner: null}",
    ],
)
def test_models_and_registry_may_stand_in_each_of_these_places(text: str) -> None:
    outputs = right(text)
    assert list(outputs.models) == ["M"]
    assert outputs.registry == {"Asker": "M"}


@pytest.mark.parametrize(
    "text", ["{}", "structured_outputs:", "models:", "registry: {Asker: null}"]
)
def test_nothing_may_be_declared(text: str) -> None:
    assert (right(text).models, right(text).registry) == ({}, {})


def test_there_may_be_no_document() -> None:
    report = Report("Flow")
    assert check_outputs(report, None, None).models == {}
    assert report.problems == []


def test_agents_that_are_not_known_are_not_missed() -> None:
    report = Report("Flow")
    assert check_outputs(report, written("registry: {Nobody: null}"), None).registry == {}
    assert report.problems == []


# -------------------------------------------------------------------------------- schemas


def test_a_schema_says_what_was_declared() -> None:
    assert right(GREETING).models["GreetingResult"].schema == {
        "title": "GreetingResult",
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The user's name."},
            "language": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "Language of the greeting, or null if unknown.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_schema_holds_what_it_refers_to_and_begins_with_the_model() -> None:
    outputs = right("""
        models:
          Tree:
            type: model
            description: A tree of pets.
            fields:
              pet: {type: Pet, description: Who sits here.}
              below: {type: list, items: {type: Tree, description: A branch.}}
          Pet: {type: union, variants: [Cat, {type: object, fields: {wool: number}}]}
          Cat: {type: literal, values: [tom, felix], description: A cat by its name.}
        """)
    schema = outputs.models["Tree"].schema
    assert (schema["type"], schema["description"]) == ("object", "A tree of pets.")
    assert schema["properties"] == {
        "pet": {"anyOf": [{"$ref": "#/$defs/Pet"}], "description": "Who sits here."},
        "below": {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/Tree"}], "description": "A branch."},
        },
    }
    assert schema["$defs"]["Pet"]["anyOf"] == [
        {"$ref": "#/$defs/Cat"},
        {"$ref": "#/$defs/Pet_object"},
    ]
    assert schema["$defs"]["Cat"]["enum"] == ["tom", "felix"]
    assert schema["$defs"]["Cat"]["description"] == "A cat by its name."
    assert schema["$defs"]["Pet_object"]["additionalProperties"] is False


def test_a_schema_is_the_callers_own() -> None:
    model = model_of("{x: str}")
    model.schema["properties"].clear()
    assert model.schema["properties"] == {"x": {"type": "string"}}


@pytest.mark.parametrize(
    "key", ["schema", "model_config", "__class__", "json", "self", "a b", "$ref"]
)
def test_a_key_may_be_called_anything(key: str) -> None:
    model = model_of(f"{{'{key}': int}}")
    assert list(model.schema["properties"]) == [key]
    assert model.validate({key: 1}).value == {key: 1}


# --------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("field", "fit", "unfit"),
    [
        ("str", ["", "5"], [5, None, True, ["x"]]),
        ("string", ["x"], [5]),
        ("int", [5, -1, 5.0, 2**70], ["5", 5.5, True, None]),
        ("integer", [5], ["5"]),
        ("float", [5, 5.5], ["5", True, None]),
        ("number", [5], ["5"]),
        ("bool", [True], [1, "true", 0]),
        ("boolean", [False], [0]),
        ("any", [None, 1, "x", [{}], {"a": [1]}], []),
        ("'null'", [None], [0, "", False]),
        ("list", [[], [1, "x", None]], [{}, "x", None]),
        ("array", [[]], [()]),
        ("dict", [{}, {"a": None}], [[], "x"]),
        ("object", [{}], [[]]),
        ("optional_str", ["x", None], [5]),
        ("{type: list, items: int}", [[], [1]], [["1"], [None]]),
        ("{type: list, items: {type: list, items: str}}", [[["x"]]], [["x"]]),
        ("{type: optional_list, items: str}", [["x"], None], [[None]]),
        ("{type: dict, values: int}", [{"a": 1}], [{"a": "1"}]),
        ("{type: dict, additional: {type: list}}", [{"a": [1]}], [{"a": 1}]),
        ("{type: object, fields: {a: int}}", [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        ("{type: model, fields: {a: int}}", [{"a": 1}], [{}]),
        ("{type: literal, values: [a, 1]}", ["a", 1, 1.0], ["b", True, "1", None]),
        ("{type: literal, literal: [true]}", [True], [1, "true"]),
        ("{type: optional_literal, enum: [a]}", ["a", None], ["b"]),
        ("{type: union, variants: [str, int, null]}", ["a", 1, None], [1.5, []]),
        ("{type: union, variants: [{type: list, items: int}, bool]}", [[1], True], [1, ["x"]]),
        ("{type: union, variants: ['null']}", [None], [0]),
        ("{type: union, variants: [{type: union, variants: [null]}, null]}", [None], [0]),
        ("{type: str, optional: true}", ["a", None], [1]),
        ("{type: str, required: false}", ["a", None], [1]),
        ("{type: str, optional: false}", ["a"], [None]),
    ],
)
def test_a_type_takes_its_values_and_no_others(
    field: str, fit: list[Any], unfit: list[Any]
) -> None:
    model = model_of(f"{{x: {field}}}")
    assert accepts(model, *({"x": value} for value in fit)) == [True] * len(fit)
    assert accepts(model, *({"x": value} for value in unfit)) == [False] * len(unfit)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("optional_int", None),
        ("{type: union, variants: [str, 'null']}", None),
        ("{type: str, optional: true}", None),
        ("{type: bool, required: false}", None),
        ("{type: str, default: none}", "none"),
        ("{type: int, default: 5}", 5),
        ("{type: list, items: str, default: []}", []),
        ("{type: dict, default: {a: 1}}", {"a": 1}),
        ("{type: optional_str, default: x}", "x"),
    ],
)
def test_what_may_be_left_out_is_filled_in(field: str, value: Any) -> None:
    assert model_of(f"{{x: {field}}}").validate({}).value == {"x": value}


@pytest.mark.parametrize("field", ["str", "any", "{type: optional_str, required: true}"])
def test_what_may_not_be_left_out_is_missed(field: str) -> None:
    assert problem(model_of(f"{{x: {field}}}"), {}) == "`x`: Field required"


def test_a_filled_in_value_is_fresh_each_time() -> None:
    model = model_of("{x: {type: list, default: []}}")
    model.validate({}).value["x"].append(1)
    assert model.validate({}).value == {"x": []}


def test_numbers_become_what_was_declared() -> None:
    value = model_of("{i: int, f: float}").validate({"i": 5.0, "f": 5}).value
    assert repr(value) == "{'i': 5, 'f': 5.0}"


def test_models_may_name_each_other_in_any_order_and_themselves() -> None:
    outputs = right("""
        models:
          Plan: {type: model, fields: {steps: {type: list, items: Step}, kind: Kind}}
          Step: {type: model, fields: {title: str, next: optional_Step, of: optional_Plan}}
          Kind: {type: literal, values: [big, small]}
        """)
    step = {"title": "b", "next": None, "of": None}
    value = {"steps": [{"title": "a", "next": step, "of": None}], "kind": "big"}
    assert outputs.models["Plan"].validate(value).value == value


# ------------------------------------------------------------------------------- problems


def test_a_problem_is_told_where_it_is_one_line_for_each() -> None:
    model = model_of("{steps: {type: list, items: {type: object, fields: {title: str, n: int}}}}")
    value = {"steps": [{"title": "a", "n": 1}, {"title": 5, "n": "1"}, {"n": 1, "m": 2}], "x": 1}
    assert problem(model, value).split("\n") == [
        "`steps[1].title`: Input should be a valid string",
        "`steps[1].n`: Input should be a valid integer",
        "`steps[2].title`: Field required",
        "`steps[2].m`: Extra inputs are not permitted",
        "`x`: Extra inputs are not permitted",
    ]
    assert problem(model, []) == "The value: Input should be an object"


PETS = """
    models:
      Cat: {type: model, fields: {kind: {type: literal, values: [cat]}, lives: int}}
      Dog:
        type: model
        fields: {kind: {type: literal, values: [dog]}, friends: {type: list, items: Pet}}
      Pet: {type: union, variants: [Cat, Dog, str]}
"""


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (5, "The value: Input should be Cat or Dog or string"),
        ({"kind": "cow"}, "The value: Input should be Cat or Dog or string"),
        ({"kind": "cat"}, "`(Cat).lives`: Field required"),
        (
            {"kind": "dog", "friends": [{"kind": "cat", "lives": "7"}]},
            "`(Dog).friends[0](Cat).lives`: Input should be a valid integer",
        ),
    ],
)
def test_a_value_is_measured_by_the_variant_that_it_was_meant_as(value: Any, says: str) -> None:
    assert problem(right(PETS).models["Pet"], value) == says


def test_a_problem_is_bounded() -> None:
    model = model_of("{x: {type: literal, values: [a]}}")
    words = problem(model, {"key " * 10_000: 1, **{str(n): n for n in range(5000)}})
    assert len(words) < 3000
    assert "4992" in words.rpartition("…")[2]


# ------------------------------------------------------------------------- hostile values


def nested(depth: int, inside: Any = None) -> Any:
    value = inside
    for _ in range(depth):
        value = {"c": value}
    return value


DEEP = """
    models:
      A: {type: model, fields: {c: T}}
      B: {type: model, fields: {c: T}}
      T: {type: union, variants: [A, B, 'null']}
      J: {type: union, variants: [{type: list, items: J}, {type: dict, values: J}, str, 'null']}
      L: {type: model, fields: {c: optional_L}}
"""


def test_depth_is_bounded() -> None:
    for name in ("J", "L"):
        model = right(DEEP).models[name]
        assert model.validate(nested(64)).problem is None
        for depth in (65, 20_000):
            assert "64" in problem(model, nested(depth))
    assert "64" in problem(model_of("{c: any}"), nested(100_000))


def test_variants_that_cannot_be_told_apart_do_not_stall() -> None:
    begin = process_time()
    model = right(DEEP).models["T"]
    assert model.validate(nested(5)).value == nested(5)
    assert problem(model, nested(60, "x"))
    assert process_time() - begin < 5


def test_variants_that_can_be_told_apart_may_be_deep_and_wide() -> None:
    value: Any = {"kind": "cat", "lives": 1}
    for _ in range(25):
        value = {"kind": "dog", "friends": [value, *["x"] * 200]}
    begin = process_time()
    assert right(PETS).models["Pet"].validate(value).value == value
    assert process_time() - begin < 5


def test_of_variants_that_fit_the_first_is_taken() -> None:
    record = "{type: object, fields: {a: int, b: {type: int, default: 2}}}"
    for variants, value in ((f"dict, {record}", {"a": 1}), (f"{record}, dict", {"a": 1, "b": 2})):
        model = model_of(f"{{x: {{type: union, variants: [{variants}]}}}}")
        assert model.validate({"x": {"a": 1}}).value == {"x": value}


def test_models_are_built_however_variants_are_nested() -> None:
    form: Any = "str"
    for _ in range(14):
        form = {"type": "union", "variants": [{"type": "list", "items": form}, "int"]}
    begin = process_time()
    model = model_of(f"{{x: {json.dumps(form)}}}")
    assert model.validate({"x": [[[5]]]}).problem is None
    assert len(json.dumps(model.schema)) < 3000
    assert process_time() - begin < 2


CHAINS = {
    "fields": '{"type": "model", "fields": {"x": "NEXT", "y": "NEXT"}}',
    "variants": '{"type": "union", "variants": ["int", "NEXT", "NEXT"]}',
    "values": '{"type": "model", "fields": {"x": {"type": "list", "items": "NEXT"}}}',
}


@pytest.mark.repeats
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("length", [10, 31, 200, 2000])
def test_models_that_hold_each_other_are_built_or_refused(chain: str, length: int) -> None:
    links = {f"M{n}": json.loads(CHAINS[chain].replace("NEXT", f"M{n + 1}")) for n in range(length)}
    links[f"M{length}"] = {"type": "literal", "values": ["x"]}
    outputs, problems = declared(json.dumps({"models": links}))
    assert {problem.code for problem in problems} <= {"W005"}
    assert bool(problems) == (length > 31 or (length > 10 and chain == "values"))
    if not problems:
        assert outputs.models["M0"].schema["$defs"]
        assert outputs.models["M0"].validate([[]]).problem is not None


@pytest.mark.repeats
def test_many_values_may_each_be_more_than_one_variant() -> None:
    variants = "[{type: list, items: str}, {type: list, items: int}]"
    model = model_of(f"{{x: {{type: list, items: {{type: union, variants: {variants}}}}}}}")
    value = {"x": [["a"], [1]] * 20_000}
    assert model.validate(value).value == value


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, {"a"}, "\ud800", b"x", (1,), object()])
def test_what_is_no_json_is_refused(value: Any) -> None:
    assert problem(model_of("{x: any}"), {"x": value})


# ------------------------------------------------------------------------------- mistakes

MARK = "# <--"
CASES = [
    case.split("\n", 1)
    for case in Path(__file__).with_name("outputs.txt").read_text("utf-8").split("=== ")[1:]
]


@pytest.mark.parametrize(("head", "text"), CASES, ids=[head[:60] for head, _ in CASES])
def test_a_mistake_is_told_where_it_stands_and_nothing_else_is(head: str, text: str) -> None:
    code, *values = head.split(" | ")
    _, problems = declared(text)
    (found,) = problems
    line = [MARK in line for line in text.strip("\n").split("\n")].index(True) + 1
    assert (found.code, found.line, found.severity) == (code, line, "error")
    assert [value for value in values if value not in f"{found.message} {found.remedy}"] == []


def test_every_model_is_there_also_when_it_is_wrong() -> None:
    """Whoever names one does not hear of it twice."""
    outputs, problems = declared("models: {M: 5, N: {type: model, fields: {x: strr}}}")
    assert len(problems) == 2
    assert list(outputs.models) == ["M", "N"]
    assert outputs.models["N"].validate({"x": 1}).problem is None
