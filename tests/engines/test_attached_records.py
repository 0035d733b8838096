"""Group chats of AG2's classic line on record: as runs that are listed and explained."""

from pathlib import Path
from typing import Any

import pytest
from autogen import ConversableAgent, LLMConfig
from autogen.agentchat.group import AgentTarget, ContextVariables
from autogen.testing import ToolCall

from tests.support.chats import chat, converse, loaded, say
from tests.support.raising import raising
from turnloom import Loom
from turnloom.adapters.autogen import attach
from turnloom.errors import UsageError, WorkflowGone
from turnloom.log.spec import Event
from turnloom.wiring import ChatRecords

MODEL = LLMConfig({"api_type": "openai", "model": "none", "api_key": "none"})
FILES = {
    "agents.yaml": "Asker: {}\nPlanner: {}\nReviewer: {}\n",
    "tools.yaml": """
        tools: [{agent: Asker, file: t.py, function: save}]
        lifecycle_tools:
          - {trigger: before_chat, agent: null, file: t.py, function: greet}
          - {trigger: after_agent, agent: Asker, file: t.py, function: fail}
        """,
    "t.py": """
        def save(): ...
        def greet(context_variables): context_variables.set("stage", "greeted")
        def fail(): raise OSError("no disk")
        """,
    "context_variables.yaml": """
        definitions:
          token: {type: string, secret: true, source: {type: environment, env_var: TOKEN}}
          known:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_text, agent: Asker, match: {contains: NEXT}}]
          stage:
            type: string
            source:
              type: derived
              default: asking
              triggers: [{type: context_changed, variable: known, equals: true, value: planning}]
          number:
            type: integer
            source:
              type: derived
              default: null
              triggers: [{type: tool_response, tool: save, from: id}]
        agents: {Reviewer: {variables: [stage, known, number]}}
        """,
}


def save(id: int, context_variables: ContextVariables) -> dict[str, int]:
    """Save it."""
    return {"id": id}


def lines(said: str = "NEXT, by canary-1.") -> dict[str, list[Any]]:
    return {"Asker": [ToolCall("save", id=7).to_message(), said], "Reviewer": ["Fine."]}


async def log_of(store: Path, run: str, app_id: str = "local") -> list[Event]:
    async with Loom(store=str(store)) as app:
        return [*await app.history.events(run, app_id=app_id)]


def attached(folder: Path, records: ChatRecords, **more: Any) -> tuple[Any, dict[str, Any]]:
    context = ContextVariables(data={"token": "canary-1", "who": "Ann"})
    asker = {"llm_config": MODEL, "functions": [save], **more}
    pattern, agents = chat(asker=asker, context_variables=context)
    agents["Asker"].handoffs.set_after_work(AgentTarget(agents["Planner"]))
    attach(pattern, loaded(folder, FILES), records)
    return pattern, agents


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_chat_is_a_run_that_is_listed_and_explained(tmp_path: Path, is_async: bool) -> None:
    store = tmp_path / "turnloom.db"
    with ChatRecords(str(store)) as records:
        pattern, agents = attached(tmp_path, records)
        with say(agents, **lines()):
            await converse(pattern, is_async)
        (run,) = records.runs
    events = await log_of(store, run)
    assert [event.kind for event in events] == [
        *("run.started", "context.loaded", "user.text"),
        *("lifecycle.tool_call", "context.changed", "lifecycle.tool_result"),
        *("route.decided", "turn.started", "tool.called", "tool.returned", "context.changed"),
        *("agent.text", "context.changed", "context.changed"),
        *("lifecycle.tool_call", "lifecycle.tool_error", "turn.finished"),
        *("route.decided", "turn.started", "agent.text", "turn.finished"),
        *("route.decided", "turn.started", "agent.text", "turn.finished", "run.finished"),
    ]
    said = [event.data for event in events if event.kind == "agent.text"]
    assert "canary-1" not in str(events) and said[0].text.startswith("NEXT, by ")
    async with Loom(store=str(store)) as app:
        (summary,) = await app.runs()
        assert (summary.run, summary.status, summary.workflow) == (run, "finished", "Flow")
        explained = await app.explain.variable(run, "stage")
        assert [(each.value, each.writer.partition(":")[0]) for each in explained.changes] == [
            ("greeted", "hook"),
            ("planning", "trigger"),
        ]
        timeline = await app.explain.timeline(run)
        assert [(row.what, row.who, row.depth) for row in timeline.rows] == [
            ("hook", "greet", 0),
            ("route", "user → Asker", 0),
            ("turn 1", "Asker", 0),
            ("tool", "save", 1),
            ("hook", "fail", 1),
            ("route", "Asker → Planner", 0),
            ("turn 2", "Planner", 0),
            ("route", "Planner → Reviewer", 0),
            ("turn 3", "Reviewer", 0),
            ("finished", "driver", 0),
        ]
        turn = await app.explain.turn(run, 1)
        assert (turn.status, turn.segments, turn.error) == ("done", (), "")
        assert "tool save" in str(turn)
        (first, *_) = [event.seq for event in events if event.kind == "route.decided"]
        route = await app.explain.route(run, first)
        assert (route.source, route.target, route.rules) == ("user", "Asker", ())


async def test_what_happened_so_far_is_on_record_while_the_chat_goes_on(tmp_path: Path) -> None:
    store, seen = tmp_path / "turnloom.db", list[str]()

    async def save(id: int) -> dict[str, int]:
        """Save it."""
        seen.extend(event.kind for event in await log_of(store, records.runs[0]))
        return {"id": id}

    with ChatRecords(str(store)) as records:
        pattern, agents = attached(tmp_path, records, functions=[save])
        with say(agents, **lines()):
            await converse(pattern, True)
    assert seen[-2:] == ["route.decided", "turn.started"]


async def test_what_a_tool_writes_belongs_to_the_turn(tmp_path: Path) -> None:
    store = tmp_path / "turnloom.db"

    def save(id: int, context_variables: ContextVariables) -> str:
        """Save it."""
        context_variables["stage"] = "saved"
        return "done"

    with ChatRecords(str(store)) as records:
        pattern, agents = attached(tmp_path, records, functions=[save])
        with say(agents, **lines()):
            await converse(pattern, False)
    async with Loom(store=str(store)) as app:
        turn = await app.explain.turn(records.runs[0], 1)
    changes = [each for each in turn.steps if getattr(each, "name", "") == "stage"]
    assert [(each.previous, each.value, each.writer.partition(":")[0]) for each in changes] == [
        ("greeted", "saved", "chat"),
        ("saved", "planning", "trigger"),
    ]


async def test_a_chat_that_fails_is_a_run_that_failed(tmp_path: Path) -> None:
    store = tmp_path / "turnloom.db"

    def fail(*args: Any, **more: Any) -> Any:
        raise OSError("no model, said canary-1")

    with ChatRecords(str(store), user_id="Ann", app_id="shop") as records:
        pattern, agents = attached(tmp_path, records)
        agents["Reviewer"].register_reply([ConversableAgent, None], fail)
        with pytest.raises(OSError, match="no model"), say(agents, **lines()):
            await converse(pattern, True)
        (run,) = records.runs
    *_, turn, end = [event.data for event in await log_of(store, run, "shop")]
    assert (turn.agent, turn.status) == ("Reviewer", "failed")
    assert (end.kind, end.error) == ("run.failed", "OSError") and "canary" not in end.message
    async with Loom(store=str(store)) as app:
        (summary,) = await app.runs(app_id="shop")
    assert (summary.status, summary.user, summary.tenant) == ("failed", "Ann", "shop")


async def test_a_chat_that_another_program_left_is_not_gone_on_with(tmp_path: Path) -> None:
    store = tmp_path / "turnloom.db"
    with ChatRecords(str(store)) as records:
        run = records.begin(loaded(tmp_path, FILES)).run
    async with Loom(store=str(store)) as app:
        (summary,) = await app.runs()
        assert summary.status == "unfinished"
        with pytest.raises(WorkflowGone):
            await (await app.resume(run)).finished()
        assert await app.handle(run).cancel(by="Ann")
        (summary,) = await app.runs()
    assert summary.status == "cancelled"


def test_nothing_is_recorded_where_nothing_is_open(tmp_path: Path) -> None:
    with raising(UsageError, "with ChatRecords"):
        ChatRecords(str(tmp_path / "turnloom.db")).begin(loaded(tmp_path, FILES))
