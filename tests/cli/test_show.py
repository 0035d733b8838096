"""`weft show`: schemas that say what the check says, settings that keep their secrets."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.cli.conftest import CHAT, INTERVIEW, Call
from weft.adapters.files import parse, read_folder
from weft.cli.masking import masked
from weft.conversation.logic.schemas import schema_of
from weft.variables.logic.triggers import TRIGGER_LOADERS, Listener, register
from weft.variables.spec.triggers import Setting

PARTS = ("context_variables", "orchestrator", "agents", "handoffs", "script")
OUTER = {"handoffs": "handoff_rules"}
TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}


def fits(value: Any, schema: Any, whole: Any) -> bool:
    """Whether a value is what a schema says, by the words that our schemas use."""
    if "$ref" in schema:
        return fits(value, whole["$defs"][schema["$ref"].removeprefix("#/$defs/")], whole)
    if "anyOf" in schema:
        return any(fits(value, each, whole) for each in schema["anyOf"])
    if "oneOf" in schema:
        return sum(fits(value, each, whole) for each in schema["oneOf"]) == 1
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        return False
    if value not in schema.get("enum", [value]) or schema.get("const", value) != value:
        return False
    if isinstance(value, list):
        return all(fits(each, schema.get("items", {}), whole) for each in value)
    return not isinstance(value, dict) or _fits_keys(value, schema, whole)


def _fits_keys(value: dict[str, Any], schema: Any, whole: Any) -> bool:
    keys, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    if not {*schema.get("required", ())} <= {*value}:
        return False
    return all(
        fits(said, keys[key], whole) if key in keys else others and fits(said, others, whole)
        for key, said in value.items()
    )


def inner(part: str, value: Any) -> Any:
    return value.get(OUTER.get(part, part), value) if part != "script" else value


def test_documents_that_pass_the_check_fit_their_schema(weft: Call) -> None:
    interview, _ = read_folder(INTERVIEW)
    for part in PARTS:
        schema = schema_of(part)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert fits(inner(part, interview.documents[part].value), schema, schema)
        chat, _ = parse(f"{part}.yaml", CHAT[f"{part}.yaml"])
        assert chat and fits(inner(part, chat.value), schema, schema)
    printed = json.loads(weft("show", "schema", "context_variables").out)
    assert printed == schema_of("context_variables")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("context_variables", {"definitons": {}}),
        ("context_variables", {"definitions": {"x": {"source": {"type": "static", "valu": 1}}}}),
        ("context_variables", {"definitions": {"x": {"type": "string"}}}),
        ("context_variables", {"agents": {"A": {"variable": []}}}),
        ("orchestrator", {"max_turn": 1}),
        ("agents", {"A": {"system_mesage": "x"}}),
        ("agents", {"A": {"engine": {"type": "functions", "fil": "x"}}}),
        ("handoffs", [{"source_agent": "A", "target_agent": "B"}]),
        ("handoffs", [{"source_agent": "A", "target_agent": "B", "handoff_type": "x"}]),
        ("script", {"users": []}),
    ],
)
def test_what_the_check_refuses_the_schema_refuses(part: str, value: Any) -> None:
    assert not fits(value, schema_of(part), schema_of(part))


def test_durations_may_be_texts_and_added_triggers_are_in_it() -> None:
    class Sung(Setting):
        type: Literal["sung"]

    def declared(**trigger: Any) -> dict[str, Any]:
        source = {"type": "derived", "triggers": [trigger]}
        return {"definitions": {"x": {"type": "boolean", "source": source}}}

    def allowed(value: Any) -> bool:
        schema = schema_of("context_variables")
        return fits(value, schema, schema)

    assert allowed(declared(type="timer_expired", after="PT5M"))
    assert allowed(declared(type="timer_expired", after=5))
    assert not allowed(declared(type="sung"))
    register(Sung, lambda trigger, writer: Listener((), lambda fact, seen: trigger.value))
    try:
        assert allowed(declared(type="sung"))
    finally:
        del TRIGGER_LOADERS["sung"]


def test_settings_are_shown_with_where_they_came_from(weft: Call, tmp_path: Path) -> None:
    (tmp_path / "weft.toml").write_text('store = "mine.db"\nslots = 5\n', "utf-8")
    secret = "postgresql://ada:s3cr3t/@word@db:5432/x?sslpassword=s3cr3t"
    done = weft("show", "config", "--store", "other.db", WEFT_DOCUMENTS=secret)
    assert done.out.splitlines() == [
        'store = "other.db"  # argument',
        "slots = 5  # weft.toml",
        'documents = "postgresql://ada:***@db:5432/x?sslpassword=***"  # environment',
        "documents_timeout = 5.0  # default",
        "strict = true  # default",
    ]
    (tmp_path / "weft.toml").write_text("slot = 5", "utf-8")
    assert "Did you mean 'slots'?" in weft("show", "config", code=2).err


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("mongodb://a:b@h1,h2:27017/x", "mongodb://a:***@h1,h2:27017/x"),
        ("mongodb+srv://:b@h/?retryWrites=true", "mongodb+srv://:***@h/?retryWrites=true"),
        ("postgresql://ada@db:5432/x", "postgresql://ada@db:5432/x"),
        (
            "postgresql://db:5432/x?user=a&Password=b&c=d",
            "postgresql://db:5432/x?user=a&Password=***&c=d",
        ),
        ("sqlite:.weft/documents", "sqlite:.weft/documents"),
        (5, 5),
    ],
)
def test_what_opens_a_door_is_masked(given: Any, shown: Any) -> None:
    assert masked(given) == shown


def test_wrong_use_is_refused(weft: Call) -> None:
    assert "Names: context_variables, orchestrator" in weft("show", "schema", code=2).err
    assert "'tools' is not one of" in weft("show", "schema", "tools", code=2).err
    assert "takes no name" in weft("show", "config", "script", code=2).err
    assert "no store" in weft("show", "schema", "script", "--store", "x", code=2).err
