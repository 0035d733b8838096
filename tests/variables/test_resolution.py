"""First values: ids, flags of the deployment, constants and defaults, each with its origin."""

from datetime import UTC, datetime
from typing import Any

import pytest

from weft.kernel.values import Json
from weft.log.spec import Event
from weft.runtime.logic import codec
from weft.variables.events import ContextLoaded, ContextSuppressed, Loaded
from weft.variables.logic.resolution import Readings, resolve, wanted
from weft.variables.spec import BAKED_IN, BASE, Definition, Variables

IDS = dict.fromkeys(BASE, "id")


def variables(**sources: Any) -> Variables:
    definitions = {
        name: Definition.model_validate({"name": name, **said}) for name, said in sources.items()
    }
    return Variables(definitions=definitions)


def flag(env_var: str, type: str = "boolean", default: Json = None) -> dict[str, Any]:
    source = {"type": "environment", "env_var": env_var, "default": default}
    return {"type": type, "source": source}


def load(
    declared: Variables, production: bool = False, **environment: str
) -> tuple[dict[str, Loaded], ContextSuppressed | None]:
    readings = Readings(production, {name: environment.get(name) for name in wanted(declared)})
    context, suppressed = resolve(declared, IDS, readings)
    assert isinstance(context, ContextLoaded)
    loaded = {each.name: each for each in context.values}
    assert len(loaded) == len(context.values), "a name was loaded twice"
    return loaded, suppressed


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
    assert loaded["a"] == Loaded("a", "static", {"x": [1]})
    assert loaded["b"] == Loaded("b", "derived", "begin", defaulted=True)
    assert loaded["c"] == Loaded("c", "derived", None, defaulted=True)


def test_a_flag_is_coerced_or_has_its_default_and_what_was_odd_is_noted() -> None:
    declared = variables(
        good=flag("GOOD", "integer", 1),
        unset=flag("UNSET", "integer", 2),
        bad=flag("BAD", "integer", 3),
        odd=flag("ODD"),
        bytes=flag("BYTES", "string", "d"),
    )
    loaded, _ = load(declared, GOOD=" 7", BAD="many", ODD="maybe", BYTES="caf\udce9")
    assert loaded["good"] == Loaded("good", "environment", 7, " 7")
    assert loaded["unset"] == Loaded("unset", "environment", 2, defaulted=True)
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
    context, _ = resolve(
        declared, IDS, Readings(False, {"A": r'["\ud800"]', "B": "\udcff", "C": "1e999"})
    )
    event = Event("context", "r", 1, datetime(2026, 1, 1, tzinfo=UTC), context.kind, "d", context)
    assert codec().decode(codec().encode(event)) == event
    assert {each.name: each.value for each in context.values if each.name in "abc"} == {
        "a": None,
        "b": None,
        "c": None,
    }
