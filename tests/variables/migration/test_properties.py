"""Whatever a file holds: no traceback, a file of today's, nothing dropped in silence."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.variables.migration.checked import declarable, problems
from turnloom.kernel.values import Json
from turnloom.variables.logic.migration import migrate

scalar = (str, int, float)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)  # as JSON has them
scalars = st.none() | st.booleans() | numbers | st.text()
anything: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)
words = st.sampled_from(["a", "b", "app_id", "context_aware", "A", "true", "", "x+", "(?=x)"])
types = st.sampled_from(
    ["string", "str", "bool", "boolean", "int", "json", "dict", "list[str]", "wat", "state", None]
)
kinds = st.sampled_from(
    [
        *("static", "environment", "database", "derived", "declarative", "config", "runtime"),
        *("data_reference", "data_entity", "computed", "state", "external", "file", "wat"),
    ]
)


def maybe(likely: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Mostly what is meant, sometimes anything."""
    return st.integers(0, 9).flatmap(lambda n: likely if n else anything)


def some(**keys: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with some of these keys, sometimes with one more."""
    known = st.fixed_dictionaries({}, optional={key: maybe(said) for key, said in keys.items()})
    return known | st.builds(lambda one, more: {**more, **one}, known, st.just({"zebra": 1}))


values = st.booleans() | words | st.integers(-3, 3) | st.none() | st.just([]) | st.just({})
matches = some(equals=words, contains=words, regex=words)
triggers = some(
    type=st.sampled_from(["agent_text", "ui_response", "agent_turn_count"]),
    agent=words,
    match=matches,
    equals=words,
    contains=words,
    tool=words,
    response_key=words,
    ui_hidden=st.booleans(),
    value=values,
    once=st.booleans(),
)
queries = st.dictionaries(
    st.sampled_from(["app_id", "user_id", "kind"]),
    st.sampled_from(["{{runtime.app_id}}", "{{runtime.user_id}}", "frontend"]),
    max_size=2,
)
origins: dict[str, st.SearchStrategy[Json]] = {
    "default": values,
    "value": values,
    "env_var": words,
    "database_name": words,
    "collection": words,
    "search_by": words,
    "field": words,
    "fields": st.lists(words, max_size=2),
    "query_template": queries,
    "required": st.booleans(),
    "persist": st.booleans(),
    "triggers": st.lists(triggers, max_size=2),
    "transitions": st.lists(some(**{"from": values, "to": values}, trigger=triggers), max_size=2),
}
sources = some(type=kinds, **origins)
entries = some(
    name=words,
    type=types,
    description=words,
    enum=st.lists(values, max_size=3),
    source=sources,
    database=sources,
    default_value=values,
    **origins,
)
exposures = some(
    variables=st.lists(words, max_size=3),
    header=words,
    template=words,
    placement=st.sampled_from(["append", "replace", "middle"]),
    null_label=words,
)
views = st.builds(
    lambda view, more: {**view, **more},
    exposures,
    some(exposures=st.lists(exposures, max_size=2), agent_name=words, name=words),
)


def section(entry: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.dictionaries(words, maybe(entry), max_size=3) | st.lists(maybe(entry), max_size=3)


older = some(
    definitions=section(entries),
    variables=section(entries),
    database_variables=section(entries),
    environment_variables=section(entries),
    declarative_variables=section(entries),
    derived_variables=section(entries),
    defined_variables=section(entries),
    runtime_variables=section(entries),
    agents=section(views),
    exposures=section(views),
    schema_overview=some(database_name=words),
    a=entries,
)
files = older | older.map(lambda inner: {"context_variables": inner}) | section(entries)


TWO_NAMES = {
    "definitions": {"b": {"name": "app_id", "source": {"type": "external"}}},
    "variables": {"": {}},
}


def holds(value: Json) -> None:
    first = migrate(value)
    second = migrate(first.value)
    assert (second.value, second.changed) == (first.value, False)
    assert first.changed or first.value is value
    assert (first.shape is not None) == first.changed
    for note in first.notes:
        assert note.lost or note.became != "lost"
        assert not (note.lost or note.assumed or note.left) or note.became != "unchanged"


@given(anything)
@example({"definitions": {"x": {"type": ["string"], "source": {"type": ["static"]}}}})
def test_any_json_becomes_a_file_of_today_for_good(value):
    holds(value)


@settings(max_examples=50)
@given(files)
@example({"agents": {"": {"exposures": [], "agent_name": "A"}, "a": {"exposures": []}}})
@example({"definitions": {"": {"name": "A", "transitions": []}, "app_id": {"value": []}}})
@example({"database_variables": {"": {"transitions": [], "name": "(?=x)"}}})
@example(TWO_NAMES)
def test_any_older_file_becomes_one_of_today_for_good(value):
    holds(value)


@settings(max_examples=50)
@given(files)
def test_what_comes_out_passes_todays_check(value):
    found = migrate(value)
    left = (note.left or note.became == "unchanged" for note in found.notes)
    if found.changed and not any(left):
        assert problems(declarable(found.value)) == []


def names_in(part: Json) -> list[str]:
    """The names of entries, in order."""
    if isinstance(part, dict):
        return [*part]
    said = [each.get("name") if isinstance(each, dict) else None for each in part or ()]
    return [name if isinstance(name, str) else "" for name in said]


@settings(max_examples=50)
@given(files)
@example(TWO_NAMES)
@example({"agents": {"b": {"agent": "a"}, "": {}}, "variables": []})
def test_every_name_is_declared_or_noted_as_lost(value):
    found = migrate(value)
    if not found.changed:
        return
    parts = found.value["context_variables"]
    if isinstance(parts["definitions"], scalar) or isinstance(parts["agents"], scalar):
        return
    declared = {*names_in(parts["definitions"]), *names_in(parts["agents"])}
    for note in found.notes:
        assert note.name in declared | {*parts} or note.became == "lost"
    assert declared - {""} <= {note.name for note in found.notes if note.became != "lost"}


@given(entries)
def test_a_key_that_nothing_knows_is_named(entry):
    found = migrate({"variables": [{**entry, "name": "a", "quagga": "stripes"}]})
    (note,) = found.notes
    is_named = any("'quagga'" in sentence for sentence in (*note.lost, *note.left))
    assert note.became in ("lost", "left") or is_named


@given(st.dictionaries(words.filter(bool), entries, max_size=4))
def test_names_keep_their_order(wanted):
    found = migrate({"variables": [{**entry, "name": name} for name, entry in wanted.items()]})
    definitions = found.value["context_variables"]["definitions"]
    assert [note.name for note in found.notes] == [*wanted]
    assert names_in(definitions) == [name for name in wanted if name in names_in(definitions)]
