"""What single entries become, what is lost of them and what is said about it."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.variables.migration.checked import problems
from tests.variables.migration.generations import answers, concepts, derived, says
from turnloom.kernel.values import Json
from turnloom.variables.logic.migration import Migrated, Note, migrate
from turnloom.variables.spec import FileSource


def tells(lines: Sequence[str], *named: Sequence[str]) -> bool:
    """Whether there is a line for each of these, which names the values of it."""
    return len(lines) == len(named) and all(
        all(value in line for value in values) for line, values in zip(lines, named, strict=True)
    )


def declare(entry: Json) -> Migrated:
    return migrate({"definitions": {"x": entry}})


def entry_of(migrated: Migrated) -> Json:
    return parts_of(migrated.value)["definitions"].get("x")


def parts_of(value: Json) -> Json:
    return value.get("context_variables", value)


def note_of(migrated: Migrated) -> Note:
    (note,) = migrated.notes
    return note


def state(**said: Any) -> dict[str, Any]:
    return {"type": "boolean", "source": {"type": "state", "default": False, **said}}


def reference(**said: Any) -> dict[str, Any]:
    source = {"type": "data_reference", "collection": "Concepts", "fields": ["Overview"], **said}
    return {"type": "string", "source": source}


# ------------------------------------------------------------------------------ today's shape

TODAY = [
    {},
    {"definitions": {}, "agents": {}},
    {"definitions": None, "agents": None},
    {"context_variables": {"definitions": []}},
    {"definitions": {"x": derived("boolean", False, says("A", "NEXT", hide=True, once=True))}},
    {"definitions": {"x": derived("string", "open", answers("plan", "verdict"))}},
    {"definitions": [{"name": "x", "source": {"type": "static", "value": [1]}}]},
    {"definitions": {"x": {"name": "x", "source": {"type": "static", "value": None}}}},
    {"definitions": {"x": {"type": "string", "source": concepts(default=None)}}},
    {"definitions": {"x": derived("object", None)}, "agents": {"A": {"variables": ["x"]}}},
    {"agents": [{"name": "A", "variables": ["app_id", "context_aware"]}]},
    {"agents": {"A": {"variables": ["app_id"], "template": "{app_id}", "placement": "replace"}}},
    {"definitions": {"x": {"type": "string", "secret": True, "source": concepts()}}},
]


@pytest.mark.parametrize("value", TODAY)
def test_todays_shape_is_the_same_afterwards(value):
    found = migrate(value)
    assert found.value is value
    assert not found.changed
    assert {note.became for note in found.notes} <= {"unchanged"}
    assert all(not note.lost and not note.assumed for note in found.notes)


@pytest.mark.parametrize(
    "entry",
    [
        {"source": {"type": "derived", "default": 3}},
        {"type": "string", "enum": [3], "source": {"type": "derived"}},
        {"type": "integer", "source": {"type": "derived", "default": "3"}},
        {"type": "int", "source": {"type": "static", "value": "25"}},
        {"type": "string", "source": {"type": "derived"}, "max_chars": 0},
        {"type": "strng", "source": {"type": "derived"}},
        {"type": "string", "source": {"type": "static"}},
        {"type": "string", "source": {"type": "file", "path": "../b.json"}},
        {"type": "string", "source": {"type": "content", "index": 1}},
        {"type": "string", "sorce": {"type": "derived"}},
    ],
)
def test_todays_shape_that_the_check_refuses_is_left_to_it(entry):
    found = declare(entry)
    assert (found.changed, entry_of(found)) == (False, entry)
    assert problems(found.value)


# ------------------------------------------------------------------------------ databases


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ({"app_id": "{{runtime.app_id}}"}, {"search_by": "app_id"}),
        ({"user_id": "{{ runtime.user_id }}"}, {"search_by": "user_id"}),
        ({"chat_id": "{{chat_id}}"}, {"search_by": "chat_id"}),
        ({"user_id": "${user_id}"}, {"search_by": "user_id"}),
        ({"enterprise_id": "{{runtime.app_id}}"}, {"search_by": "enterprise_id"}),
        ({}, {"search_by": "app_id"}),
        (None, {"search_by": "app_id"}),
        ({"owner": "{{runtime.user_id}}"}, {"filter": {"owner": "${user_id}"}}),
        ({"user_id": "{{runtime.chat_id}}"}, {"filter": {"user_id": "${chat_id}"}}),
        (
            {"app_id": "{{runtime.app_id}}", "kind": "frontend", "n": 3, "on": True},
            {"search_by": "app_id", "filter": {"kind": "frontend", "n": 3, "on": True}},
        ),
        (
            {"app_id": "{{runtime.app_id}}", "user_id": "{{runtime.user_id}}"},
            {"search_by": "app_id", "filter": {"user_id": "${user_id}"}},
        ),
        ({"kind": "frontend"}, {"filter": {"kind": "frontend"}}),
    ],
)
def test_a_query_of_ids_and_constants_is_kept(query, keys):
    found = declare(reference(query_template=query))
    source = {"type": "database", "collection": "Concepts", **keys, "field": "Overview"}
    assert entry_of(found)["source"] == source


@pytest.mark.parametrize(
    "query",
    [
        {"user_id": "u-{{runtime.user_id}}"},
        {"plan": "{{plan.id}}"},
        {"app_id": {"$ne": None}},
        {"app_id": None},
        {"$where": "1"},
        {"tags": ["a"]},
        "app_id",
    ],
)
def test_another_query_stays_and_a_hook_is_named(query):
    entry = reference(query_template=query)
    found = declare(entry)
    assert (found.changed, entry_of(found)) == (False, entry)
    assert tells(note_of(found).left, ("query", "`before_chat` hook"))
    (problem,) = problems(found.value)
    assert "query" in problem


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"fields": []}, "It names no field"),
        ({"fields": None}, "It names no field"),
        ({"fields": ["a", 3]}, "It names no field"),
        ({"search_by": "owner"}, "Its `search_by` 'owner' is not an id of the run."),
        ({"search_by": ["app_id"]}, "Its `search_by` ['app_id']"),
    ],
)
def test_what_a_database_cannot_be_asked_stays(said, why):
    found = declare(reference(**said))
    assert entry_of(found) == reference(**said)
    assert tells(note_of(found).left, (why,))
    (problem,) = problems(found.value)
    assert why in problem


def test_a_lookup_of_the_first_format_that_cannot_be_converted_stays():
    stored = {"collection": "Notes", "query": {"n": {"$gt": 3}}, "field": "text"}
    found = migrate({"variables": [{"name": "x", "database": stored}]})
    assert entry_of(found) == {"source": {"type": "data_reference", **stored}}
    assert len(problems(found.value)) == 1


def test_what_is_missing_in_a_source_stays_missing():
    found = declare(reference(collection="", query_template={"kind": "memo"}, fields=["a"]))
    assert entry_of(found)["source"] == {
        "type": "database",
        "filter": {"kind": "memo"},
        "field": "a",
    }
    assert note_of(found).left and not note_of(found).lost
    again = migrate(found.value)
    assert (again.value, again.changed) == (found.value, False)


@pytest.mark.parametrize("type", ["object", "string", None])
def test_several_fields_are_an_object(type):
    found = declare({**reference(fields=["a", "b.c", "a"], search_by="app_id"), "type": type})
    entry = entry_of(found)
    assert (entry["type"], entry["source"]["fields"]) == ("object", ["a", "b.c"])
    assert (note_of(found).assumed == ()) == (type == "object")


def test_what_a_source_says_beyond_today_is_named():
    found = declare(reference(db_type="mongodb", refresh_strategy="per_phase", indexes=[]))
    assert tells(
        note_of(found).lost, ("'db_type'", "'mongodb'"), ("'refresh_strategy'", "'per_phase'")
    )


# ------------------------------------------------------------------------------ constants


@pytest.mark.parametrize(
    ("source", "became"),
    [
        ({"type": "config", "default": 3}, {"type": "static", "value": 3}),
        ({"type": "declarative", "value": 3}, {"type": "static", "value": 3}),
        ({"type": "config"}, {"type": "environment"}),
    ],
)
def test_constants(source, became):
    found = entry_of(declare({"type": "integer", "source": source}))
    assert found == (became and {"type": "integer", "source": became})


def test_an_object_that_starts_as_a_list_is_an_array():
    found = declare({"type": "object", "source": {"type": "state", "default": []}})
    entry = entry_of(found)
    assert (entry["type"], entry["source"]["default"]) == ("array", [])
    assert note_of(found).assumed and not note_of(found).lost


def test_a_required_setting_is_a_required_variable():
    source = {"type": "config", "env_var": "KEY", "required": True}
    found = entry_of(declare({"type": "string", "source": source}))
    assert found == {
        "type": "string",
        "required": True,
        "source": {"type": "environment", "env_var": "KEY"},
    }


# ------------------------------------------------------------------------------ triggers


@pytest.mark.parametrize(
    ("trigger", "became"),
    [
        (says("A", "NEXT"), [says("A", "NEXT")]),
        (says("A", "NEXT", ui_hidden=True), [says("A", "NEXT", hide=True)]),
        ({"type": "agent_text", "agent": "A", "equals": "NEXT"}, [says("A", "NEXT")]),
        (
            {"type": "agent_text", "agent": "A", "match": None, "contains": "x", "equals": None},
            [{"type": "agent_text", "agent": "A", "match": {"contains": "x"}}],
        ),
        (
            {"type": "agent_text", "agent": "A", "match": {"equals": "a", "regex": "b+"}},
            [says("A", "a"), {"type": "agent_text", "agent": "A", "match": {"regex": "b+"}}],
        ),
        (answers("plan", "verdict"), [answers("plan", "verdict", apply="auto")]),
        (
            {**answers("plan", "verdict"), "apply": "auto", "ui_hidden": None},
            [{**answers("plan", "verdict"), "apply": "auto"}],
        ),
    ],
)
def test_triggers(trigger, became):
    found = declare(state(triggers=[trigger]))
    assert entry_of(found)["source"]["triggers"] == became
    assert note_of(found).lost == ()


@pytest.mark.parametrize(
    ("trigger", "why"),
    [
        ({"type": "agent_text", "match": {"equals": "NEXT"}}, "it has no `agent`"),
        ({"type": "agent_text", "agent": "A"}, "it has no `equals`, `contains` or `regex`"),
        (
            {"type": "agent_text", "agent": "A", "match": {"regex": "(?=x)"}},
            "RE2 does not support the regular expression '(?=x)'",
        ),
        (says("A", "NEXT", value="open"), "'x' must be boolean, but 'open' is string"),
        ({"type": "ui_response", "response_key": "verdict"}, "it has no `tool`"),
        ({"type": "ui_response", "tool": "plan"}, "it has no `response_key`"),
        ({"type": "full_moon"}, "type 'full_moon' is unknown"),
    ],
)
def test_a_trigger_that_cannot_be_stays_and_the_check_names_it(trigger, why):
    found = declare(state(triggers=[trigger]))
    assert entry_of(found) == derived("boolean", False, trigger)
    (sentence,) = note_of(found).left
    assert why in sentence and note_of(found).lost == ()
    assert len(problems(found.value)) == 1
    assert not migrate(found.value).changed


def test_a_trigger_that_is_none_is_dropped_with_the_reason():
    found = declare(state(triggers=["NEXT"]))
    assert entry_of(found) == derived("boolean", False)
    assert tells(note_of(found).lost, ("'NEXT' is not an object",))


def test_misspelt_keys_stay_and_the_check_names_them():
    said = {"defualt": True, "trigers": [says("A", "NEXT", ui_hiden=True)], "db_type": "mongodb"}
    found = declare({"type": "boolean", "descripton": "x", "source": {"type": "state", **said}})
    assert tells(note_of(found).left, ("'defualt'",), ("'trigers'",), ("'descripton'",))
    assert tells(note_of(found).lost, ("'db_type'",))
    assert len(problems(found.value)) == 3
    trigger = says("A", "NEXT", ui_hiden=True)
    found = declare(state(triggers=[trigger]))
    assert entry_of(found)["source"]["triggers"] == [trigger]
    assert tells(note_of(found).left, ("'ui_hiden'", "'ui_hidden'"))


def test_what_a_trigger_says_beyond_today_is_named():
    trigger = says("A", "NEXT", ui_hidden="yes", priority=3)
    found = declare(state(triggers=[trigger, {**answers("plan", "verdict"), "ui_hidden": True}]))
    assert entry_of(found)["source"]["triggers"] == [
        says("A", "NEXT"),
        answers("plan", "verdict", apply="auto"),
    ]
    assert tells(
        note_of(found).lost, ("'priority'", "3"), ("'hide'", "'yes'"), ("'ui_hidden'", "True")
    )


def test_a_trigger_that_set_true_where_a_text_belongs_stays():
    source = {"type": "state", "default": "pending", "triggers": [says("A", "NEXT")]}
    found = declare({"type": "string", "source": source})
    assert entry_of(found)["source"]["triggers"] == [says("A", "NEXT")]
    assert "'x' must be string, but True is boolean" in note_of(found).left[0]


def test_a_transition_loses_where_it_comes_from():
    found = declare(state(transitions=[{"from": "a", "to": False, "trigger": says("A", "X")}]))
    assert entry_of(found)["source"]["triggers"] == [says("A", "X", value=False)]
    assert "fired only from 'a'" in note_of(found).lost[0]


def test_a_transition_on_an_answer_takes_the_answer():
    found = declare(state(transitions=[{"to": False, "trigger": answers("plan", "verdict")}]))
    assert entry_of(found)["source"]["triggers"] == [answers("plan", "verdict", apply="auto")]
    assert "set False" in note_of(found).lost[0]


# ------------------------------------------------------------------------------ types


@pytest.mark.parametrize(
    ("word", "default", "type"),
    [
        ("str", None, "string"),
        ("Boolean", False, "boolean"),
        ("bool", None, "boolean"),
        ("int", 1, "integer"),
        ("int", 1.5, "number"),
        ("float", 1, "number"),
        ("dict", None, "object"),
        ("Dict[str, Any]", None, "object"),
        ("list", [], "array"),
        ("list[str]", None, "array"),
        ("Optional[int]", None, "integer"),
        (["string", "null"], None, "string"),
        ("json", {}, "object"),
        ("json", [], "array"),
        ("json", None, "object"),
        ("document", None, "document"),
        ("wat", 3, "integer"),
        ("wat", None, "string"),
        (7, None, "string"),
        (None, "open", "string"),
        (None, None, "string"),
    ],
)
def test_free_text_types(word, default, type):
    found = declare({"type": word, "source": {"type": "runtime", "default": default}})
    assert entry_of(found) == derived(type, default)
    said = (*note_of(found).lost, *note_of(found).assumed)
    assert bool(said) == (word != type)


@pytest.mark.parametrize(
    ("type", "default", "became"),
    [
        ("boolean", "true", True),
        ("boolean", 0, False),
        ("integer", "12", 12),
        ("string", 12, "12"),
        ("array", "[1]", [1]),
    ],
)
def test_a_default_fits_its_type(type, default, became):
    found = declare({"type": type, "source": {"type": "state", "default": default}})
    assert entry_of(found) == derived(type, became)
    assert note_of(found).assumed and not note_of(found).left


@pytest.mark.parametrize(
    ("type", "default"), [("boolean", "maybe"), ("integer", "many"), ("string", ["a"])]
)
def test_a_default_that_cannot_fit_stays_for_the_check_to_name(type, default):
    found = declare({"type": type, "source": {"type": "state", "default": default}})
    assert entry_of(found) == derived(type, default)
    assert note_of(found).left and len(problems(found.value)) == 1


def test_a_constant_keeps_its_value_and_changes_its_type():
    found = declare({"type": "int", "source": {"type": "declarative", "value": "25"}})
    assert entry_of(found) == {"type": "string", "source": {"type": "static", "value": "25"}}


@pytest.mark.parametrize("enum", ["open", ["open", 3], ["shut"]])
def test_an_enum_that_does_not_hold_stays_for_the_check_to_name(enum):
    found = declare({"type": "str", "enum": enum, "source": {"type": "state", "default": "open"}})
    assert entry_of(found) == derived("string", "open", enum=enum)
    assert note_of(found).left and problems(found.value)


def test_a_misspelt_type_stays_for_the_check_to_name():
    found = declare({"type": "boolan", "source": {"type": "state", "default": False}})
    assert entry_of(found) == derived("boolan", False)
    assert note_of(found).left and problems(found.value)


# ------------------------------------------------------------------------------ entries


@pytest.mark.parametrize(
    "value",
    [
        None,
        "variables",
        {"definitions": 3},
        {"definitions": {"x": 3}},
        {"definitions": ["x"]},
        {"definitions": [{"type": "string", "source": {"type": "static", "value": "y"}}]},
        {"definitions": {"": {}}},
        {"definitions": {"\ud800": {}}},
        {"definitions": {"app_id": {"type": "string", "source": {"type": "derived"}}}},
        {"agents": {"A": 3}},
        {"agents": {"A": None}},
        {"version": 3},
        {"definitions": {}, "agent": {"A": {"variables": ["x"]}}},
    ],
)
def test_what_cannot_be_read_stays_as_it_is(value):
    found = migrate(value)
    assert (found.value, found.changed) == (value, False)
    assert all(note.became in ("left", "unchanged") for note in found.notes)


OLDER = {"name": "y", "type": "boolean", "source": {"type": "state", "default": False}}
BROKEN = [
    3,
    {"type": "string"},
    {"name": "x", "source": 3},
    {"name": "y", "source": {"type": "static", "value": 1}},
]


@pytest.mark.parametrize("entry", BROKEN)
def test_what_cannot_be_read_stays_beside_what_is_rewritten(entry):
    found = migrate({"definitions": [OLDER, entry], "agent": {}})
    parts = parts_of(found.value)
    rest = parts["definitions"]
    todays = {"name": "y", **derived("boolean", False)}
    assert found.changed and parts["agent"] == {}
    assert rest == [todays, entry] or rest == {"y": derived("boolean", False), "x": {"source": 3}}
    again = migrate(found.value)
    assert (again.value, again.changed) == (found.value, False)
    assert problems(found.value)


def test_an_id_of_the_run_needs_no_declaration():
    found = migrate({"definitions": [{**OLDER, "name": "app_id"}]})
    assert parts_of(found.value)["definitions"] == {}
    assert note_of(found).became == "lost" and note_of(found).lost


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("workflows/_pack/x.json", "_pack/x.json"),
        ("./workflows/_shared/a/x.json", "_shared/a/x.json"),
        ("workflows/Sales/x.json", "x.json"),
    ],
)
def test_a_path_from_the_root_keeps_what_workflows_share(said, path):
    found = declare({"type": "object", "source": {"type": "file", "path": said}})
    assert entry_of(found)["source"]["path"] == path


def test_a_file_nested_beyond_reading_stays():
    value: Json = {}
    for _ in range(5000):
        value = {"context_variables": value}
    assert migrate(value).value is value
    assert migrate(value).notes[0].left


@pytest.mark.parametrize(
    "value",
    [
        [{"name": "x", "type": "state", "description": "y"}],
        {"context_variables": [{"name": "x", "type": "state", "description": "y"}]},
        {"variables": {"derived_variables": [], "x": {"type": "state", "description": "y"}}},
        {"definitions": [{"key": "x", "source": "state", "description": "y"}]},
        {"defined_variables": [{"name": "x", "type": "state", "description": "y"}]},
        {"runtime_variables": [{"name": "x", "type": "string", "description": "y"}]},
    ],
)
def test_other_ways_to_say_the_same(value):
    source = {"type": "derived", "triggers": []}
    expected = {"type": "string", "description": "y", "source": source}
    assert entry_of(migrate(value)) == expected


def test_a_name_declared_twice_stays_so():
    one = {"name": "x", "source": {"type": "static", "value": 1}}
    two = {"name": "x", "default": False}
    found = migrate({"variables": [one], "derived_variables": [two]})
    assert parts_of(found.value)["definitions"] == [one, {"name": "x", **derived("boolean", False)}]
    assert len(problems(found.value)) == 1


def test_an_entry_under_an_empty_key_has_the_name_inside():
    entry = {"name": "a", "type": "boolean", "source": {"type": "state", "default": False}}
    found = migrate({"definitions": {"": entry}, "agents": {"": {"agent_name": "A"}}})
    parts = found.value["context_variables"]
    assert [[*parts["definitions"]], [*parts["agents"]]] == [["a"], ["A"]]


def test_a_list_calls_an_entry_by_its_key_and_notes_its_other_name():
    entry = {"name": "a", "source": {"type": "external"}}
    found = migrate({"definitions": {"b": entry}, "variables": [{"type": "string"}]})
    first, _ = found.value["context_variables"]["definitions"]
    assert first["name"] == "b"
    assert any("'a'" in sentence for sentence in found.notes[0].lost)


def test_keys_without_counterpart_are_named():
    found = declare({**state(persist=True), "ui": {"label": "X"}, "icon": None, "name": "y"})
    assert tells(
        note_of(found).lost, ("'y'", "'x'"), ("'persist'", "True"), ("'ui'", "'label'", "'X'")
    )


def test_what_is_computed_becomes_a_function_to_write():
    source = {"type": "computed", "computation": "a + b", "inputs": ["a", "b"], "persist_to": "x"}
    found = migrate({"definitions": {"the sum": {"source": {**source, "output_type": "integer"}}}})
    trigger = {"type": "function", "function": "derive_the_sum"}
    assert found.value["context_variables"]["definitions"]["the sum"] == {
        "type": "integer",
        "source": {"type": "derived", "triggers": [trigger]},
    }
    [stub] = found.stubs
    assert (stub.function, stub.variable) == ("derive_the_sum", "the sum")
    assert len(stub.about) == 2 and "a + b" in stub.about[0]
    assert tells(note_of(found).lost, ("'persist_to'",))


@pytest.mark.parametrize(
    ("said", "path", "format"),
    [
        ({"path": "a/b.json"}, "a/b.json", "json"),
        ({"path": "b.md"}, "b.md", "text"),
        ({"path": "b.json", "format": "text"}, "b.json", "text"),
        ({"path": "./b.txt", "encoding": "UTF-8"}, "b.txt", "text"),
        ({"path": "workflows/Flow/data/b.json", "format": "json"}, "data/b.json", "json"),
        ({"path": "./b.yaml", "format": "yaml"}, "b.yaml", "yaml"),
        ({"path": "./b.yml"}, "b.yml", "yaml"),
    ],
)
def test_a_file_stays_a_file_inside_the_folder(said, path, format):
    found = declare({"type": "string", "source": {"type": "file", **said}})
    parts = found.value.get("context_variables", found.value)
    source = FileSource.model_validate(parts["definitions"]["x"]["source"])
    assert (source.path, source.syntax) == (path, format)
    assert note_of(found).lost == ()
    assert bool(note_of(found).assumed) == (path != said["path"])
