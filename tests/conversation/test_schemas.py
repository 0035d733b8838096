"""Schemas say what the check says, as far as a schema can."""

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from tests.conversation.mistakes import RIGHT, Mistake, mistakes
from tests.conversation.talks import examine
from tests.conversation.test_fuzz import folders
from tests.support.folders import GARDEN, INTERVIEW
from turnloom.adapters.files import parse, read_folder
from turnloom.conversation.logic.schemas import FILES, schema_of
from turnloom.errors import UsageError
from turnloom.variables.logic.triggers import TRIGGER_LOADERS, Listener, register
from turnloom.variables.spec.triggers import Setting

ROOT = Path(__file__).parents[2]
PLACES = ("workflows", "examples", "docs/snippets")
MISTAKEN = {"Mistakes"}
WORKFLOWS = [
    path.parent
    for place in PLACES
    for path in sorted((ROOT / place).glob("*/agents.*"))
    if path.parent.name not in MISTAKEN
]
AGENT = {"A": {"engine": "scripted"}}
STATIC = {"type": "static", "value": 1}

# Mistakes in how things go together, which only the check sees.
UNSEEN = (
    "only static variables may omit it.",
    "has both `system_message` and `prompt_sections`",
    "has both `engine` and `engines`",
    "label 'x' twice",
    "Context needs exactly one of `provider`",
    "A source needs exactly one of `state`",
    "has no effect",
    "`budget` and `format` need `sources`.",
    "`sources` cannot be combined",
    "is blank.",
    "from_literal() needs a text",
    "Invalid state path 'tier..name'",
    "Pass at least one name, without duplicates.",
    "from_history() shows all messages",
    "unknown placeholder 'source'.",
    "`config` applies to a `provider`",
    "Invalid time",
    "Invalid path 'a..b'.",
    "'lt' at 'a' needs",
    "'match' is empty.",
    "has another name, 'y'",
    "Invalid document key 'a..b'.",
    "Invalid document key 'a.$gt'.",
    "Key 'search_by' is missing. Add it, or a `filter`.",
    "Filter 'owner' is '${email}'.",
    "is in `search_by` and in `filter`.",
    "It has both `field` and `fields`.",
    "Key 'field' is missing. Add it, or a list of `fields`.",
    "Invalid path '../plans.json'.",
    "'capture' needs `match.regex`",
    "exclude each other.",
    "need `path`.",
    "is not a duration.",
    "'exact' and 'trim'",
    "has unprintable characters",
    "Invalid environment variable name",
    "is listed twice.",
    "needs either `command` or `url`.",
    "but 'before_chat' belongs to the chat.",
    "'on' is for `after_chat`",
    "Write `run_start`, `agent:NAME` or `variable:NAME`.",
    "which is not a candidate.",
    "Every candidate is excluded.",
    "but no model has a price.",
    "too few for one call",
    "The weights add up to",
)
SHAPES = [
    each
    for each in mistakes()
    if each.code in ("W010", "W011", "W012") and not any(words in each.says for words in UNSEEN)
]


VALIDATORS = {name: Draft202012Validator(schema_of(name)) for name in FILES}


def allows(name: str, value: Any) -> bool:
    return VALIDATORS[name].is_valid(value)


def is_checked(name: str, value: Any) -> bool:
    """Whether a workflow with this file passes its check."""
    documents = {"agents": AGENT, name: value}
    files = {f"{part}.json": json.dumps(each) for part, each in documents.items()}
    return examine(files)[0] is not None


def refused(files: Mapping[str, str]) -> list[str]:
    """The files that their schemas refuse."""
    found: list[str] = []
    for file, text in files.items():
        document, _ = parse(file, dedent(text))
        name = file.rpartition(".")[0]
        if document and name in FILES and not allows(name, document.value):
            found.append(file)
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_one(name: str) -> None:
    schema = schema_of(name)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", FILES)
def test_an_agent_may_answer_with_the_form_of_a_file(name: str) -> None:
    outputs = {"models": {"File": {"type": "schema", "schema": name}}, "registry": {"A": "File"}}
    files = {"agents.json": json.dumps(AGENT), "structured_outputs.json": json.dumps(outputs)}
    conversation, problems = examine(files)
    assert conversation is not None and not problems
    model = conversation.outputs["A"]
    assert (model.name, model.schema) == ("File", schema_of(name))
    assert allows("structured_outputs", outputs)
    assert model.validate("neither").problem


@pytest.mark.parametrize("folder", WORKFLOWS, ids=lambda folder: folder.name)
def test_workflows_that_pass_their_check_are_allowed(folder: Path) -> None:
    found, _ = read_folder(folder)
    assert found.documents
    for name, document in found.documents.items():
        assert allows(name, document.value), document.file


@pytest.mark.parametrize("files", [INTERVIEW, GARDEN, RIGHT])
def test_folders_of_other_tests_are_allowed(files: Mapping[str, str]) -> None:
    assert refused(files) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agents", AGENT),
        ("agents", {"agents": AGENT}),
        ("agents", [{"name": "A", "engine": "scripted"}]),
        ("agents", {"agents": [{"name": "A", "engine": {"type": "scripted"}}]}),
        ("agents", {"A": {"name": "A", "engine": "scripted"}}),
        ("agents", {"A": {"context": "transcript"}}),
        ("agents", {"A": {"context": {"filter": {"types": ["T"], "limit": 1}, "fallback": "f"}}}),
        ("agents", {"A": {"context": ["wins", {"provider": "p", "config": {"most": 3}}]}}),
        ("agents", {"A": {"context": {"sources": [{"history": {}}, {"filter": {}}]}}}),
        ("agents", {"A": {"context": [{"sources": [{"literal": "x"}], "format": {}}]}}),
        ("context_variables", {}),
        ("context_variables", {"definitions": None, "agents": None}),
        ("context_variables", {"definitions": {"x": {"source": STATIC}}}),
        ("context_variables", {"definitions": [{"name": "x", "source": STATIC}]}),
        ("context_variables", {"context_variables": {"definitions": {}, "agents": []}}),
        ("context_variables", {"agents": [{"name": "A", "variables": ["user_id"]}]}),
        ("handoffs", None),
        ("handoffs", {}),
        ("handoffs", {"handoff_rules": None}),
        (
            "handoffs",
            [{"source_agent": "A", "target_agent": "user", "handoff_type": "after_work"}],
        ),
        ("orchestrator", {"orchestrator": {"max_turns": None}}),
        ("orchestrator", {"initial_agent": "A"}),
        ("script", {"agents": {"A": ["Hello."]}, "user": []}),
        ("script", {"script": {"user": []}}),
        ("agents", {"agents": {"agents": AGENT}}),
        ("handoffs", {"handoffs": []}),
        ("handoffs", {"handoffs": {"handoff_rules": []}}),
        ("tools", {"tools": {"tools": [], "lifecycle_tools": []}}),
        ("context_variables", {"agents": [{"agent_name": "A", "variables": ["user_id"]}]}),
    ],
)
def test_every_form_of_a_file_is_allowed(name: str, value: Any) -> None:
    assert is_checked(name, value) and allows(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agents", {}),
        ("agents", []),
        ("agents", {"agents": {}}),
        ("agents", {"agents": AGENT, "agent": {}}),
        ("agents", {"": {}}),
        ("agents", [AGENT["A"]]),
        ("agents", [{"name": "A", "engin": "scripted"}]),
        ("agents", {"A": None}),
        ("context_variables", []),
        ("context_variables", {"context_variables": None}),
        ("context_variables", {"context_variables": {}, "definitions": {}}),
        ("context_variables", {"definitions": [{"source": STATIC}]}),
        ("context_variables", {"definitions": [{"name": "x", "source": {"type": "static"}}]}),
        ("handoffs", {"handoff_rules": {"A": "B"}}),
        ("handoffs", {"handoffs": {"handoff_rules": {"A": "B"}}}),
        ("orchestrator", {"orchestrator": {}, "max_turns": 1}),
        ("orchestrator", None),
        ("script", {"script": {"user": []}, "agents": {}}),
        ("tools", {"tools": {"f": {"file": "a.py"}}}),
    ],
)
def test_what_has_no_form_is_refused(name: str, value: Any) -> None:
    assert not is_checked(name, value) and not allows(name, value)


@pytest.mark.parametrize("mistake", SHAPES, ids=lambda each: f"{each.code} {each.says}"[:60])
def test_mistakes_of_words_and_shapes_are_refused_where_they_are(mistake: Mistake) -> None:
    assert refused(mistake.files) == [mistake.file]


@pytest.mark.doors
@settings(max_examples=120)
@given(folders())
def test_what_a_schema_refuses_the_check_refuses(files: dict[str, str]) -> None:
    problems = examine(files)[1]
    wrong = {each.file.removeprefix("Flow/") for each in problems if each.severity == "error"}
    assert set(refused(files)) <= wrong


def test_durations_may_be_texts_and_added_triggers_are_in_it() -> None:
    class Sung(Setting):
        type: Literal["sung"]

    def allowed(**trigger: Any) -> bool:
        source = {"type": "derived", "triggers": [trigger]}
        declared = {"definitions": {"x": {"type": "boolean", "source": source}}}
        return Draft202012Validator(schema_of("context_variables")).is_valid(declared)

    assert allowed(type="timer_expired", after="PT5M")
    assert allowed(type="timer_expired", after=5)
    assert not allowed(type="timer_expired", after=0)
    assert not allowed(type="sung")
    register(Sung, lambda trigger, writer: Listener((), lambda fact, seen: trigger.value))
    try:
        assert allowed(type="sung")
    finally:
        del TRIGGER_LOADERS["sung"]


def test_a_file_that_there_is_not_has_no_schema() -> None:
    with pytest.raises(UsageError, match="'agent'.* 'agents'"):
        schema_of("agent")
    with pytest.raises(UsageError, match="'xyz'.* context_variables, "):
        schema_of("xyz")
