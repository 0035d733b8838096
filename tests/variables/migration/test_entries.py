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
    return migrated.value["context_variables"]["definitions"].get("x")


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
    ("entry", "became"),
    [
        ({"source": {"type": "derived", "default": 3}}, "integer"),
        ({"type": "string", "enum": [3], "source": {"type": "derived"}}, "string"),
        ({"type": "integer", "source": {"type": "derived", "default": "3"}}, "integer"),
        ({"type": "string", "source": {"type": "derived"}, "max_chars": 0}, "string"),
    ],
)
def test_todays_shape_that_todays_check_refuses_is_mended(entry, became):
    found = declare(entry)
    assert found.changed
    assert entry_of(found)["type"] == became
    assert note_of(found).lost or note_of(found).assumed
    assert problems(found.value) == []


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
def test_another_query_is_lost_and_a_hook_is_named(query):
    found = declare(reference(query_template=query))
    assert entry_of(found) is None
    assert tells(note_of(found).lost, ("query", "`before_chat` hook"))


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ({"fields": []}, "It names no field"),
        ({"fields": None}, "It names no field"),
        ({"fields": ["a", 3]}, "It names no field"),
        ({"search_by": "owner"}, "Its `search_by` 'owner' is not an id of the run."),
        ({"search_by": ["app_id"]}, "Its `search_by` ['app_id']"),
    ],
)
def test_what_a_database_cannot_be_asked_is_lost(said, lost):
    found = declare(reference(**said))
    assert entry_of(found) is None
    assert note_of(found).lost[0].startswith(lost)


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
        ({"type": "static", "value": 3, "default": None}, {"type": "static", "value": 3}),
        ({"type": "static"}, {"type": "static", "value": None}),
        ({"type": "declarative", "value": 3}, {"type": "static", "value": 3}),
        ({"type": "config"}, {"type": "environment"}),
        ({"type": "content", "index": 1}, {"type": "content", "index": 1}),
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
        ("boolean", "maybe", None),
        ("integer", "many", None),
        ("string", ["a"], None),
    ],
)
def test_a_default_fits_its_type(type, default, became):
    found = declare({"type": type, "source": {"type": "state", "default": default}})
    assert entry_of(found) == derived(type, became)
    assert bool(note_of(found).lost) == (became is None)
    assert bool(note_of(found).assumed) == (became is not None)


def test_a_constant_keeps_its_value_and_changes_its_type():
    found = declare({"type": "int", "source": {"type": "static", "value": "25"}})
    assert entry_of(found) == {"type": "string", "source": {"type": "static", "value": "25"}}


@pytest.mark.parametrize("enum", ["open", ["open", 3], ["shut"]])
def test_an_enum_that_does_not_hold_is_dropped(enum):
    found = declare({"type": "str", "enum": enum, "source": {"type": "state", "default": "open"}})
    assert entry_of(found) == derived("string", "open")
    assert note_of(found).lost == (f"Key 'enum' has the invalid value {enum!r}; it is dropped.",)


# ------------------------------------------------------------------------------ entries


@pytest.mark.parametrize(
    ("value", "lost"),
    [
        (None, "The file must be an object, not null; nothing was read from it."),
        ("variables", "The file must be an object, not string; nothing was read from it."),
        ({"definitions": 3}, "3 is neither an object nor an array."),
        ({"definitions": {"x": 3}}, "3 is not an object."),
        ({"definitions": ["x"]}, "'x' is not an object."),
        ({"definitions": [{"type": "string"}]}, "It has no name: {'type': 'string'}."),
        ({"definitions": {"": {}}}, "'' is not a name."),
        ({"definitions": {"\ud800": {}}}, "'\\ud800' is not a name."),
        ({"definitions": {"app_id": {}}}, "It is an id of the run and cannot be redefined."),
        ({"agents": {"A": 3}}, "3 is not an exposure."),
        ({"version": 3}, "3 is not recognised."),
        ({"default_database": "ideas"}, "'ideas' is now set in each variable without a database."),
    ],
)
def test_what_cannot_be_read_is_a_note(value, lost):
    found = migrate(value)
    assert found.value == {"context_variables": {"definitions": {}, "agents": {}}}
    assert found.changed
    (note,) = found.notes
    assert note.became == "lost"
    assert note.lost[0].startswith(lost)


def test_a_misspelt_section_stays_for_the_check_to_name():
    found = migrate({"definitions": {}, "agent": {"A": {"variables": ["x"]}}})
    assert found.value["context_variables"]["agent"] == {"A": {"variables": ["x"]}}
    (note,) = found.notes
    assert (note.became, note.lost) == ("left", ()) and note.left
    again = migrate(found.value)
    assert (again.value, again.changed) == (found.value, False)


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


def test_a_file_nested_beyond_reading_is_a_note():
    value: Json = {}
    for _ in range(5000):
        value = {"context_variables": value}
    assert tells(migrate(value).notes[0].lost, ())


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


def test_a_name_declared_twice_is_noted_and_the_later_counts():
    one = {"name": "x", "source": {"type": "static", "value": 1}}
    two = {"name": "x", "source": {"type": "static", "value": 2}}
    found = migrate({"definitions": [one, two]})
    assert entry_of(found)["source"]["value"] == 2
    assert [note.became for note in found.notes] == ["lost", "unchanged"]
    assert tells(found.notes[0].lost, ("'definitions[1]'",))


def test_a_later_one_that_is_lost_does_not_count():
    one = {"name": "x", "source": {"type": "static", "value": 1}}
    two = {"name": "x", "source": {"type": "external"}}
    found = migrate({"definitions": [one, two]})
    assert entry_of(found)["source"]["value"] == 1
    assert [note.became for note in found.notes] == ["unchanged", "lost"]


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
        ({"path": "../shared/b.json"}, "b.json", "json"),
        ({"path": "/etc/b.txt"}, "b.txt", "text"),
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


# ------------------------------------------------------------------------------ agents


def shown(view: Json, **sections: Json) -> tuple[Json, Note]:
    found = migrate({"agents": {"A": view}, **sections})
    return found.value.get("context_variables", found.value)["agents"].get("A"), found.notes[0]


@pytest.mark.parametrize(
    ("view", "became"),
    [
        (["app_id"], {"variables": ["app_id"]}),
        ("app_id", {"variables": ["app_id"]}),
        ({"variables": "app_id"}, {"variables": ["app_id"]}),
        (None, {}),
        ({"exposures": []}, {}),
        ({"exposures": {"variables": ["app_id"]}}, {"variables": ["app_id"]}),
    ],
)
def test_views(view, became):
    entry, note = shown(view)
    assert entry == became
    assert (note.became, note.lost) == ("exposure", ())


def test_several_exposures_become_one():
    one = {"header": "Now", "variables": ["app_id"], "placement": "append"}
    two = {"header": "Then", "variables": ["user_id", "app_id"], "placement": "append"}
    entry, note = shown({"variables": ["app_id", "chat_id"], "exposures": [one, two, 3]})
    assert entry == {
        "variables": ["app_id", "user_id"],
        "header": "Now",
        "placement": "append",
    }
    assert tells(note.assumed, ("2",))
    assert tells(note.lost, ("3",), ("'chat_id'",), ("'header'", "'Then'"))


def test_what_a_view_cannot_say_is_named():
    entry, note = shown({"variables": [3, "y"], "placement": "middle", "name": "B", "ui": 1})
    assert entry == {"variables": ["y"]}
    assert tells(note.lost, ("'A'",), ("3",), ("'placement'", "'middle'"), ("'ui'", "1"))


def test_a_view_keeps_undeclared_variables_and_lost_ones():
    lost = {"y": {"type": "string", "source": {"type": "external"}}}
    found = migrate({"definitions": lost, "agents": {"A": {"variables": ["y", "z"]}}})
    assert found.value["context_variables"]["agents"] == {"A": {"variables": ["y", "z"]}}
    assert tells(found.notes[0].lost, ("'external'",))


def test_exposures_beside_agents_are_joined_in_either_order():
    exposures = {"A": [{"header": "Now", "variables": ["app_id"]}]}
    agents = {"A": {"variables": ["user_id"], "header": "Then"}}
    for value in (
        {"exposures": exposures, "agents": agents},
        {"agents": agents, "exposures": exposures},
    ):
        found = migrate(value)
        assert found.value["context_variables"]["agents"] == {
            "A": {"variables": ["app_id"], "header": "Now"}
        }
        assert "It is merged with" in found.notes[1].assumed[-1]
        assert tells(found.notes[1].lost, ("'user_id'",), ("'header'", "'Then'"))
