"""The context of real runs: documents, gates, cascades, and what a changed world may not change."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from tests.support.programs import Program, begin, drive, make_world
from tests.support.world import World
from turnloom.log.spec import Event
from turnloom.testing import FakeDocuments, FakeEnvironment, ScriptedEngine
from turnloom.variables.service import ContextSource
from turnloom.variables.spec import Variables

AGENT = "A: {system_message: Hi.}"
STORED = """
    definitions:
      word: {type: string, source:
        {type: database, collection: users, search_by: user_id, field: deep.word, default: none}}
      other: {type: string, source:
        {type: database, database_name: far, collection: users, search_by: user_id, field: word}}
      flag: {type: boolean, source: {type: environment, env_var: FLAG, default: false}}
      paid: {type: boolean, gate: true, source:
        {type: database, collection: users, search_by: app_id, field: paid}}
    agents: {A: {variables: [word, other, flag]}}
    """
FILES = {
    "agents.yaml": AGENT,
    "orchestrator.yaml": "max_turns: 2\ndatabase_name: near",
    "context_variables.yaml": STORED,
    "handoffs.yaml": """
        - {source_agent: A, target_agent: A, handoff_type: condition, condition: paid is true}
        """,
}


def documents() -> FakeDocuments:
    found = FakeDocuments()
    found.add(
        "users",
        {"user_id": "u1", "app_id": "local", "deep": {"word": "ours"}, "paid": True},
        {"user_id": "u1", "app_id": "globex", "deep": {"word": "theirs"}},
        {"user_id": "u1", "enterprise_id": "globex", "deep": {"word": "theirs"}},
        {"user_id": "u2", "app_id": "local", "deep": {"word": "somebody"}, "paid": True},
        database="near",
    )
    found.add("users", {"user_id": "u1", "word": "far away"}, database="far")
    return found


async def run_of(world: World, where: Path, files: dict[str, str] = FILES) -> list[Event]:
    run = await begin(world, write_folder(where, files))
    await drive(world, run)
    return await world.read(run)


def loaded(events: list[Event]) -> dict[str, Any]:
    (fact,) = [event.data for event in events if event.kind == "context.loaded"]
    return {each.name: each for each in fact.values}


async def test_documents_are_of_the_user_the_tenant_and_the_database(tmp_path: Path) -> None:
    engine = ScriptedEngine({"A": ["One.", "Two."]})
    events = await run_of(make_world(engine, documents=documents()), tmp_path)
    values = loaded(events)
    assert (values["word"].value, values["other"].value) == ("ours", "far away")
    assert values["other"].origin == "far.users.word by user_id"
    assert '- word: "ours"\n- other: "far away"\n- flag: false' in engine.calls[0].system
    assert len(engine.calls) == 2, "a gate decides a route"


async def test_without_a_document_the_default_is_used_and_the_reason_recorded(
    tmp_path: Path,
) -> None:
    events = await run_of(make_world(ScriptedEngine({"A": ["One."]})), tmp_path)
    values = loaded(events)
    assert (values["word"].value, values["word"].note) == ("none", "not_found")
    assert (values["other"].value, values["other"].note) == (None, "not_found")
    (route,) = [e.data for e in events if e.kind == "route.decided" and e.data.considered]
    assert not route.considered[0].fired and "paid" in route.considered[0].why_not


async def test_gates_suppress_and_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    closed = {"CONTEXT_INCLUDE_SCHEMA": "no", "ENVIRONMENT": "production", "FLAG": "1"}
    engine = ScriptedEngine({"A": ["One."]})
    events = await run_of(make_world(engine, env=closed, documents=documents()), tmp_path)
    assert {"word", "other", "paid", "flag"}.isdisjoint(loaded(events))
    suppressed = [event.data for event in events if event.kind == "context.suppressed"]
    assert {name for each in suppressed for name in each.names} >= {"word", "paid", "flag"}
    assert [record.levelname for record in caplog.records if "flag" in record.message] == ["INFO"]
    (route,) = [e.data for e in events if e.kind == "route.decided" and e.data.considered]
    assert "CONTEXT_INCLUDE_SCHEMA" in route.considered[0].why_not
    frame = next(event.data for event in events if event.kind == "frame.assembled")
    assert {each.origin.removeprefix("context_variables.") for each in frame.withheld} == {
        "word",
        "other",
        "flag",
    }


async def test_what_a_run_began_with_stays_although_the_world_changes(tmp_path: Path) -> None:
    """Documents and environment are read once; production is asked when the run begins."""
    engine = ScriptedEngine({"A": ["One.", "Two."]})
    kept = documents()
    world = make_world(engine, env={"FLAG": "1"}, documents=kept)
    run = await begin(world, write_folder(tmp_path, FILES))
    kept.add("users", {"user_id": "u1", "deep": {"word": "newer"}}, database="near")
    world.environment.values |= {"ENVIRONMENT": "production", "FLAG": "0"}
    world.environment.values["CONTEXT_INCLUDE_SCHEMA"] = "0"
    await drive(world, run)
    assert '- word: "ours"' in engine.calls[0].system
    assert "- flag: true" in engine.calls[0].system


async def test_a_variable_that_slips_through_is_caught_and_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The second look: whatever way a suppressed name came in, it is not handed out."""
    source = ContextSource(FakeEnvironment({"ENVIRONMENT": "production"}), FakeDocuments())
    base = {"app_id": "local", "context_aware": True}
    resolved = await source.load(Variables(), base, None)
    assert [each.name for each in resolved.loaded.values] == ["app_id"]
    (record,) = [each for each in caplog.records if each.levelname == "WARNING"]
    assert "context_aware" in record.message


TOLD = {
    "agents.yaml": AGENT,
    "context_variables.yaml": """
        definitions:
          a: {type: string, source: {type: derived, default: none, triggers: [
            {type: agent_text, agent: A, match: {regex: '(?s)(.*)'}, capture: 1}]}}
          b: {type: string, max_chars: 9, source: {type: derived, triggers: [
            {type: agent_text, agent: A, match: {regex: '(?s)(.*)'}, capture: 1}]}}
        """,
}


@pytest.mark.parametrize(("said", "told"), [("1", True), ("0", False), (None, False)])
async def test_every_change_is_told_if_that_is_asked_for(
    said: str | None, told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Previews only: on one line, and cut where the definition or the usual limit says."""
    caplog.set_level(logging.INFO, "turnloom.context")
    world = make_world(
        ScriptedEngine({"A": [f"one\n{'x' * 100}"]}),
        env={"CONTEXT_VERBOSE_DEBUG": said} if said else {},
    )
    events = await run_of(world, tmp_path, TOLD)
    run, x = events[0].run, "x" * 73
    lines = [record.message for record in caplog.records if record.name == "turnloom.context"]
    assert len(lines) == 2 * told
    for line, shown in zip(
        lines, [(run, "'none'", f"'one\\n{x}…"), (run, "None", "'one\\nxx…")], strict=told
    ):
        assert all(each in line for each in shown) and "\n" not in line


CHAIN = 200


def chain() -> dict[str, str]:
    """Variables that follow each other, one after the other."""
    lines = [
        "definitions:",
        "  x0: {type: boolean, source: {type: derived, triggers: ["
        "{type: agent_text, agent: A, match: {equals: go}}]}}",
    ]
    for n in range(1, CHAIN):
        lines.append(
            f"  x{n}: {{type: boolean, source: {{type: derived, triggers: ["
            f"{{type: context_changed, variable: x{n - 1}, equals: true}}]}}}}"
        )
    return {"agents.yaml": AGENT, "context_variables.yaml": "\n".join(lines)}


async def test_a_long_cascade_is_followed_to_its_end(tmp_path: Path) -> None:
    events = await run_of(make_world(ScriptedEngine({"A": ["go"]})), tmp_path, chain())
    changed = [event for event in events if event.kind == "context.changed"]
    assert [event.data.name for event in changed] == [f"x{n}" for n in range(CHAIN)]
    causes = [event.cause for event in changed[1:]]
    assert causes == [event.seq for event in changed[:-1]]


DIAMOND = {
    "agents.yaml": AGENT,
    "context_variables.yaml": """
        definitions:
          a: {type: boolean, source: {type: derived, triggers: [
            {type: agent_text, agent: A, match: {equals: go}}]}}
          b: {type: boolean, source: {type: derived, triggers: [
            {type: agent_text, agent: A, match: {equals: go}},
            {type: context_changed, variable: a, equals: true}]}}
          c: {type: string, source: {type: derived, default: no, triggers: [
            {type: context_changed, variable: a, equals: true, value: by a},
            {type: context_changed, variable: b, equals: true, value: by b}]}}
        """,
}


async def test_a_value_is_set_once_however_many_ways_lead_to_it(tmp_path: Path) -> None:
    """What an event changes itself comes before what follows from that, each with its cause."""
    events = await run_of(make_world(ScriptedEngine({"A": ["go"]})), tmp_path, DIAMOND)
    changes = [event.data for event in events if event.kind == "context.changed"]
    assert [(each.name, each.previous, each.value, each.writer) for each in changes] == [
        ("a", None, True, "trigger:a[0]"),
        ("b", None, True, "trigger:b[0]"),
        ("c", "no", "by a", "trigger:c[0]"),
        ("c", "by a", "by b", "trigger:c[1]"),
    ]


async def test_the_log_alone_tells_all_values(tmp_path: Path) -> None:
    world = make_world(ScriptedEngine({"A": ["go"]}))
    events = await run_of(world, tmp_path, DIAMOND)
    async with Program(replace(world, engine=None)) as later:
        told = [await later.app.explain.variable(events[0].run, name) for name in "abc"]
    assert [each.value for each in told] == [True, True, "by b"]
