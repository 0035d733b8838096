"""What the check says before a migration and after it: the same, but for the shape."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.variables.migration.generations import GENERATIONS
from tests.variables.migration.test_properties import files
from turnloom.adapters.files import parse
from turnloom.conversation.logic.checking import check
from turnloom.conversation.logic.migrating import DERIVATIONS, migrate_documents
from turnloom.errors import Diagnostic
from turnloom.kernel.documents import DeclarationFile, Folder
from turnloom.kernel.values import Json

OTHERS: dict[str, Json] = {
    "orchestrator": {"initial_agent": "A", "human_in_the_loop": True},
    "agents": {"A": {"system_message": "Ask."}, "B": {"system_message": "Tell."}},
    "tools": {"tools": []},
}


def parsed(part: str, value: Json) -> DeclarationFile:
    found, problems = parse(f"Talk/{part}.json", json.dumps(value, indent=1))
    assert found is not None and not problems, problems
    return found


def folder(parts: dict[str, Any], code: dict[str, str]) -> Folder:
    documents = {part: parsed(part, value) for part, value in parts.items()}
    return Folder("Talk", "/Talk", documents, code)


def said(problems: list[Diagnostic]) -> set[tuple[str, ...]]:
    """Problems without their lines, and without the shape; the same at one line is said once."""
    return {
        (each.file, each.code, each.severity, re.sub(r"lines? \d+(, \d+)*", "line", each.message))
        for each in problems
        if each.code != "W014"
    }


def checks(parts: dict[str, Any]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """The problems of a folder, and those after its migration."""
    raw = folder(parts, {})
    before = check(raw, frozenset())[1]
    done = migrate_documents(raw.documents)
    after = {file.file.removeprefix("Talk/").removesuffix(".json"): file.value for file in done}
    code = {DERIVATIONS: ""} if any(file.stubs for file in done) else {}
    return before, check(folder(after, code), frozenset())[1]


def agree(parts: dict[str, Any]) -> list[Diagnostic]:
    before, after = checks(parts)
    assert said(before) == said(after)
    assert not any(each.code == "W014" for each in after)
    shapes = [each.file for each in before if each.code == "W014"]
    assert len(shapes) == len({*shapes})
    return before


NAMES = st.sampled_from(["a", "b", "app_id", "context_aware", "A", "gone"])
RULES = st.lists(
    st.fixed_dictionaries(
        {
            "from": st.sampled_from(["A", "B", "user", "Z"]),
            "to": st.sampled_from(["A", "B", "end"]),
        },
        optional={"condition": NAMES.map(lambda name: f"${{{name}}} == True")},
    ),
    max_size=3,
)


@settings(max_examples=60, derandomize=True)
@given(files, RULES)
def test_the_first_check_says_what_the_check_after_a_migration_says(
    variables: Json, rules: Json
) -> None:
    try:
        json.dumps(variables).encode()
        parsed("context_variables", variables)
    except (UnicodeEncodeError, AssertionError):
        return  # no file that can be read
    agree({**OTHERS, "context_variables": variables, "handoffs": {"handoffs": rules}})


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.title)
def test_every_generation(generation: Any) -> None:
    agree({**OTHERS, "context_variables": generation.before})


STATE = {"type": "state", "default": False}


def heard(**said: Json) -> dict[str, Any]:
    return {"type": "agent_text", "agent": "A", "match": {"equals": "NEXT"}, **said}


# A variables file of each older format, with a place for a trigger, a view and a name.
SHAPES: dict[str, Any] = {
    "flat list": lambda trigger, name, shown: {
        "variables": [{"name": name, "type": "boolean", "default": False, "triggers": [trigger]}],
        "agents": {"A": {"variables": [shown]}},
    },
    "derived_variables": lambda trigger, name, shown: {
        "derived_variables": [{"name": name, "default": False, "triggers": [trigger]}],
        "exposures": {"A": {"variables": [shown], "header": "Now"}},
    },
    "six types": lambda trigger, name, shown: {
        "definitions": {
            name: {
                "type": "boolean",
                "source": {
                    **STATE,
                    "transitions": [{"from": False, "to": True, "trigger": trigger}],
                },
            }
        },
        "agents": [{"agent_name": "A", "variables": [shown]}],
    },
    "seven types": lambda trigger, name, shown: {
        "definitions": [{"name": name, "type": "bool", "source": {**STATE, "triggers": [trigger]}}],
        "agents": {"A": {"variables": [shown]}},
    },
    "four types with exposures": lambda trigger, name, shown: {
        "definitions": {
            name: {
                "type": "bool",
                "source": {"type": "derived", "default": False, "triggers": [trigger]},
            }
        },
        "agents": {"A": {"exposures": [{"variables": [shown]}]}},
    },
}
RULE = {
    "source_agent": "A",
    "target_agent": "B",
    "handoff_type": "condition",
    "condition": "${done} == True",
}
DEFECTS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "an unknown agent": ({"agent": "Ann"}, "done", "W020", '"agent": "Ann"'),
    "no agent": ({"agent": None}, "done", "W011", ""),
    "a bad expression": ({"match": {"regex": "(?=x)"}}, "done", "W025", "(?=x)"),
    "an unknown tool": (
        {"type": "ui_response", "tool": "form", "response_key": "ok", "agent": None, "match": None},
        "done",
        "W045",
        '"tool": "form"',
    ),
    "a misspelt key": ({"matc": {"equals": "x"}, "match": None}, "done", "W010", '"matc"'),
    "a variable that a view lacks": ({}, "gone", "W021", '"gone"'),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_named_before_and_after_at_its_line(shape: str, defect: str) -> None:
    change, shown, code, text = DEFECTS[defect]
    trigger = {key: each for key, each in heard(**change).items() if each is not None}
    value = SHAPES[shape](trigger, "done", shown)
    parts = {**OTHERS, "context_variables": value, "handoffs": [RULE]}
    before = agree(parts)
    assert "W014" in {each.code for each in before}
    (found,) = [each for each in before if each.code == code]
    lines = json.dumps(value, indent=1).splitlines()
    assert text in lines[found.line - 1]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_condition_with_an_undeclared_variable_is_named_in_the_first_check(shape: str) -> None:
    rules = [{**RULE, "condition": "${dnoe} == True"}, {**RULE, "target_agent": "C"}]
    variables = SHAPES[shape](heard(), "done", "done")
    before = agree({**OTHERS, "context_variables": variables, "handoffs": rules})
    assert {each.code for each in before} >= {"W014", "W021", "W020"}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_of_turns_is_judged_before_the_migration(shape: str) -> None:
    """B hears of it only after A, and only B sets it."""
    variables = SHAPES[shape](heard(agent="B"), "done", "done")
    before = agree({**OTHERS, "context_variables": variables, "handoffs": [RULE]})
    codes = {each.code for each in before}
    assert codes == {"W014", "W065"}


REFUSED: list[dict[str, Any]] = [
    {"type": "external", "service": "rates"},
    {"type": "data_entity", "collection": "Notes"},
    {
        "type": "data_reference",
        "collection": "N",
        "query_template": {"n": {"$gt": 3}},
        "fields": ["t"],
    },
]


@pytest.mark.parametrize("source", REFUSED, ids=lambda each: each["type"])
@pytest.mark.parametrize("older", [True, False])
def test_what_cannot_move_in_is_one_error_however_often_it_is_used(
    source: dict[str, Any], older: bool
) -> None:
    entry = {"name": "rate", "type": "boolean", "source": source}
    other = {"name": "done", "type": "boolean", "source": STATE if older else {"type": "derived"}}
    views = {"A": {"variables": ["rate"]}, "B": {"variables": ["rate", "done"]}}
    rules = [{**RULE, "condition": "${rate} == True"}, {**RULE, "condition": "${done} == True"}]
    variables = {"definitions": [other, entry], "agents": views}
    before = agree({**OTHERS, "context_variables": variables, "handoffs": rules})
    errors = [each.code for each in before if each.severity == "error"]
    assert sorted(errors) == (["W014", "W016"] if older else ["W016"])
    (refused,) = [each for each in before if each.code == "W016"]
    assert '"rate":{"type":"boolean","source":{"type":"derived"}}' in refused.remedy


def test_a_variable_without_a_name_hides_no_name_that_is_not_declared() -> None:
    entry = {"type": "boolean", "source": {"type": "derived", "default": False}}
    variables = {"definitions": [entry], "agents": {"A": {"variables": ["seen"]}}}
    rules = [{**RULE, "condition": "${done} == True"}]
    before, after = checks({**OTHERS, "context_variables": variables, "handoffs": rules})
    assert [each.code for each in before] == [each.code for each in after] == ["W011"]
    assert "'done', 'seen'" in before[0].remedy
    more = {**variables, "agents": {"A": {"variables": ["seen", "told"]}}}
    found, _ = checks({**OTHERS, "context_variables": more, "handoffs": rules})
    assert sorted(each.code for each in found) == ["W011", "W021", "W021", "W021"]


def test_a_function_to_write_is_code_that_may_read_every_variable() -> None:
    computed = {"type": "integer", "source": {"type": "computed", "default": 0}}
    idle = {"type": "boolean", "source": STATE}
    variables = {"definitions": {"sum": computed, "idle": idle}, "agents": {"A": ["sum"]}}
    before = agree({**OTHERS, "context_variables": variables})
    assert {each.code for each in before} == {"W014", "W030"}
