"""First values: ids, flags of the deployment, constants and defaults, each with its origin."""

from datetime import UTC, datetime
from typing import Any

import pytest

from turnloom.kernel.values import Json
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.variables.events import ContextLoaded, ContextSuppressed, InitialValue
from turnloom.variables.logic.resolution import (
    Gates,
    LookupResult,
    Readings,
    ResolvedContext,
    flags,
    gates,
    lookups,
    missing,
    purge,
    resolve,
)
from turnloom.variables.spec import BAKED_IN, BASE, VariableDefinition, Variables

IDS = dict.fromkeys(BASE, "id")


def variables(**sources: Any) -> Variables:
    definitions = {
        name: VariableDefinition.model_validate({"name": name, **said})
        for name, said in sources.items()
    }
    return Variables(definitions=definitions)


def flag(env_var: str, type: str = "boolean", default: Json = None) -> dict[str, Any]:
    source = {"type": "environment", "env_var": env_var, "default": default}
    return {"type": type, "source": source}


def stored(field: str = "f", type: str = "string", **said: Any) -> dict[str, Any]:
    source = {"type": "database", "collection": "C", "search_by": "user_id", "field": field}
    options = {key: said.pop(key) for key in ("secret", "required", "enum") if key in said}
    return {"type": type, **options, "source": source | said}


OPEN = Gates(production=False, no_databases=False)


def wanted(declared: Variables, closed: Gates = OPEN) -> list[str]:
    """The environment variables that are asked for."""
    return [source.env_var for _, source in flags(declared, closed)]


def read(declared: Variables, closed: Gates = OPEN, **environment: str) -> ResolvedContext:
    asked = {name: environment.get(name) for name in wanted(declared, closed)}
    return resolve(declared, IDS, Readings(closed, asked, {}))


def find(declared: Variables, **documents: Any) -> dict[str, InitialValue]:
    """The first values, given the document that each lookup found."""
    found = {name: LookupResult(document) for name, document in documents.items()}
    return by_name(resolve(declared, IDS, Readings(OPEN, {}, found)))


def by_name(resolved: ResolvedContext) -> dict[str, InitialValue]:
    assert isinstance(resolved.loaded, ContextLoaded)
    loaded = {each.name: each for each in resolved.loaded.values}
    assert len(loaded) == len(resolved.loaded.values), "a name was loaded twice"
    return loaded


def load(
    declared: Variables, production: bool = False, **environment: str
) -> tuple[dict[str, InitialValue], ContextSuppressed | None]:
    resolved = read(declared, OPEN._replace(production=production), **environment)
    (suppressed,) = resolved.suppressed or (None,)
    return by_name(resolved), suppressed


def test_every_run_has_its_ids_and_the_flags_that_are_baked_in() -> None:
    loaded, suppressed = load(Variables(), CONTEXT_AWARE="yes")
    assert {name: (each.value, each.source) for name, each in loaded.items()} == {
        **{name: ("id", "base") for name in BASE},
        "context_aware": (True, "environment"),
        "monetization_enabled": (False, "environment"),
    }
    assert loaded["context_aware"].raw == "yes" and not loaded["context_aware"].defaulted
    assert loaded["monetization_enabled"].raw is None
    assert loaded["monetization_enabled"].defaulted
    assert suppressed is None


@pytest.mark.parametrize(
    "definition",
    [
        flag("MY_FLAG", default=True),
        {"type": "boolean", "source": {"type": "static", "value": True}},
        {"type": "boolean", "source": {"type": "derived", "default": True}},
    ],
)
def test_a_definition_of_the_same_name_replaces_a_flag_that_is_baked_in(
    definition: dict[str, Any],
) -> None:
    declared = variables(context_aware=definition)
    loaded, _ = load(declared, CONTEXT_AWARE="no")
    assert loaded["context_aware"].value is True
    assert "CONTEXT_AWARE" not in wanted(declared)
    assert "monetization_enabled" in loaded


def test_only_what_is_declared_or_baked_in_is_asked_of_the_environment() -> None:
    declared = variables(a=flag("A"), b={"source": {"type": "static", "value": 1}})
    assert set(wanted(declared)) == {"A", *BAKED_IN.values()}


def test_constants_are_taken_as_they_are_and_derived_ones_begin_with_their_default() -> None:
    declared = variables(
        a={"source": {"type": "static", "value": {"x": [1]}}},
        b={"type": "string", "source": {"type": "derived", "default": "begin"}},
        c={"type": "string", "source": {"type": "derived"}},
    )
    loaded, _ = load(declared)
    assert loaded["a"] == InitialValue("a", "static", {"x": [1]})
    assert loaded["b"] == InitialValue("b", "derived", "begin", defaulted=True)
    assert loaded["c"] == InitialValue("c", "derived", None, defaulted=True)


def test_a_flag_is_coerced_or_has_its_default_and_what_was_odd_is_noted() -> None:
    declared = variables(
        good=flag("GOOD", "integer", 1),
        unset=flag("UNSET", "integer", 2),
        bad=flag("BAD", "integer", 3),
        odd=flag("ODD"),
        bytes=flag("BYTES", "string", "d"),
    )
    loaded, _ = load(declared, GOOD=" 7", BAD="many", ODD="maybe", BYTES="caf\udce9")
    assert loaded["good"] == InitialValue("good", "environment", 7, " 7", origin="env GOOD")
    assert loaded["unset"] == InitialValue(
        "unset", "environment", 2, defaulted=True, origin="env UNSET"
    )
    assert (loaded["bad"].value, loaded["bad"].raw, loaded["bad"].defaulted) == (3, "many", True)
    assert "'many' is not integer" in loaded["bad"].note
    assert (loaded["odd"].value, loaded["odd"].defaulted) == (False, False)
    assert "'maybe' is neither" in loaded["odd"].note
    assert (loaded["bytes"].value, loaded["bytes"].raw) == ("d", "caf\\udce9")


def test_a_flag_that_is_set_to_nothing_is_set() -> None:
    declared = variables(a=flag("A", "boolean", True), b=flag("B", "string", "d"))
    loaded, _ = load(declared, A="", B="")
    assert loaded["a"].value is False and loaded["b"].value == ""


def test_production_has_no_environment_variables_and_says_so() -> None:
    declared = variables(
        a=flag("A", default=True),
        b={"source": {"type": "static", "value": 1}},
        c={"type": "boolean", "source": {"type": "derived", "default": False}},
    )
    loaded, suppressed = load(declared, production=True, A="yes")
    assert set(loaded) == {*BASE, "b", "c"}
    assert suppressed is not None
    assert set(suppressed.names) == {"a", *BAKED_IN}
    assert "production" in suppressed.reason


def test_production_suppresses_nothing_if_there_is_nothing_to_suppress() -> None:
    constant = {"type": "boolean", "source": {"type": "static", "value": True}}
    declared = variables(context_aware=constant, monetization_enabled=constant)
    loaded, suppressed = load(declared, production=True)
    assert suppressed is None
    assert loaded["context_aware"].value is True


def test_whatever_the_environment_holds_its_values_can_be_stored() -> None:
    declared = variables(a=flag("A", "array"), b=flag("B", "string"), c=flag("C", "number"))
    context = read(declared, A=r'["\ud800"]', B="\udcff", C="1e999").loaded
    event = Event("context", "r", 1, datetime(2026, 1, 1, tzinfo=UTC), context.kind, "d", context)
    assert codec().decode(codec().encode(event)) == event
    assert {each.name: each.value for each in context.values if each.name in "abc"} == {
        "a": None,
        "b": None,
        "c": None,
    }


@pytest.mark.parametrize(
    ("field", "type", "document", "value"),
    [
        ("f", "string", {"f": "x"}, "x"),
        ("a.b.c", "integer", {"a": {"b": {"c": 3}}}, 3),
        ("f", "document", {"f": {"g": [1]}}, {"g": [1]}),
        ("f", "array", {"f": []}, []),
        ("f", "boolean", {"f": False}, False),
        ("f", "integer", {"f": "7"}, 7),
    ],
)
def test_a_stored_value_is_taken_from_its_field(
    field: str, type: str, document: Any, value: Json
) -> None:
    found = find(variables(x=stored(field, type, default=None)), x=document)["x"]
    origin = f"C.{field} by user_id"
    assert found == InitialValue("x", "database", value, origin=origin)


@pytest.mark.parametrize("document", [None, {}, {"a": None}, {"a": [{"b": 1}]}, {"a.b": 1}])
@pytest.mark.parametrize("default", [None, 5])
def test_what_is_not_found_has_its_default_or_null_and_the_reason(
    document: Any, default: Json
) -> None:
    found = find(variables(x=stored("a.b", "integer", default=default)), x=document)["x"]
    assert (found.value, found.defaulted, found.note) == (default, True, "not_found")


def test_a_stored_value_of_another_type_is_not_taken() -> None:
    declared = variables(x=stored(type="integer", default=1), y=stored(enum=["a"], default="a"))
    found = find(declared, x={"f": [1]}, y={"f": "b"})
    assert (found["x"].value, found["y"].value) == (1, "a")
    assert "[1] is array; the default is used" in found["x"].note
    assert "must be one of ['a'], not 'b'" in found["y"].note


def test_a_store_that_does_not_answer_is_told_apart_from_one_that_has_nothing() -> None:
    declared = variables(x=stored(default="d"))
    readings = Readings(OPEN, {}, {"x": LookupResult(None, "unavailable: locked")})
    found = by_name(resolve(declared, IDS, readings))["x"]
    assert (found.value, found.note) == ("d", "unavailable: locked")


@pytest.mark.parametrize(
    ("said", "closed"),
    [(None, False), ("1", False), ("yes", False), ("?", False), ("0", True), (" Off ", True)],
)
def test_the_schema_gate_is_open_unless_it_is_closed_in_so_many_words(
    said: str | None, closed: bool
) -> None:
    assert gates(None, said) == Gates(False, closed)


@pytest.mark.parametrize(
    ("said", "closed"),
    [(None, False), ("", False), ("prod", False), ("production", True), (" Production ", True)],
)
def test_only_production_is_production(said: str | None, closed: bool) -> None:
    assert gates(said, None).production is closed


def test_the_schema_gate_suppresses_every_stored_variable_and_nothing_else() -> None:
    declared = variables(x=stored(default="d"), y=flag("Y", default=True), z=stored())
    closed = OPEN._replace(no_databases=True)
    assert list(lookups(declared, closed)) == []
    resolved = read(declared, closed)
    assert {"x", "z"}.isdisjoint(by_name(resolved)) and "y" in by_name(resolved)
    ((names, reason),) = [(each.names, each.reason) for each in resolved.suppressed]
    assert names == ("x", "z") and "CONTEXT_INCLUDE_SCHEMA" in reason


def test_both_gates_at_once() -> None:
    declared = variables(x=stored(), y=flag("Y"), c={"source": {"type": "static", "value": 1}})
    resolved = read(declared, Gates(True, True))
    assert set(by_name(resolved)) == {*BASE, "c"}
    assert [set(each.names) for each in resolved.suppressed] == [{"y", *BAKED_IN}, {"x"}]


def test_what_is_suppressed_is_looked_for_once_more_before_it_is_handed_out() -> None:
    """The second look finds nothing unless the first one failed."""
    declared = variables(y=flag("Y"))
    clean, found = purge(read(declared, OPEN._replace(production=True)))
    assert found == []
    late = InitialValue("y", "environment", True)
    leaky = clean._replace(loaded=ContextLoaded((*clean.loaded.values, late)))
    again, found = purge(leaky)
    assert found == ["y"] and again == clean


def test_a_required_variable_without_a_value_is_missed_with_the_reason() -> None:
    needed = {"required": True}
    declared = variables(
        a={**flag("A", "integer"), **needed},
        b={**flag("B", "integer"), **needed},
        c=stored(required=True),
        d={**flag("D", "integer", 1), **needed},
        e={**flag("E", "integer"), **needed},
    )
    problems = missing(declared, read(declared, B="many", E="5"))
    assert problems == [
        "'a' is required but has no value: unset (env A)",
        "'b' is required but has no value: 'many' is not integer; the default is used (env B)",
        "'c' is required but has no value: not_found (C.f by user_id)",
    ]
    production = read(declared, OPEN._replace(production=True))
    assert "'d' is required but has no value: it is disabled in this deployment" in missing(
        declared, production
    )


@pytest.mark.parametrize("type", ["string", "integer", "boolean", "object"])
def test_a_secret_is_not_in_what_is_loaded_however_odd_it_is(type: str) -> None:
    said = "hunter2 maybe"
    declared = variables(
        x={**flag("X", type), "secret": True},
        y=stored(type=type, secret=True),
        z={**flag("Z", type), "secret": True, "enum": ["other"]},
    )
    readings = Readings(OPEN, {"X": said, "Z": said}, {"y": LookupResult({"f": [said]})})
    resolved = resolve(declared, IDS, readings)
    assert said not in repr(resolved.loaded)
    assert said not in repr(missing(declared, resolved))
    loaded = by_name(resolved)
    assert loaded["x"].raw is None
    taken = resolved.secrets["x"] is not None
    assert loaded["x"].value == ("⟨secret:x⟩" if taken else None)
    assert taken == (type in ("string", "boolean"))


def test_ids_come_first_then_flags_then_definitions_in_their_order() -> None:
    declared = variables(z={"source": {"type": "static", "value": 1}}, a=flag("A"), m=stored())
    assert list(by_name(read(declared))) == [*BASE, *BAKED_IN, "z", "a", "m"]
