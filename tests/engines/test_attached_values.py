"""First values and secrets of a workflow folder in a group chat of AG2's classic line."""

import logging
from pathlib import Path
from typing import Any

import pytest
from autogen import LLMConfig
from autogen.agentchat.group import ContextVariables
from autogen.testing import ToolCall

from tests.support.chats import chat, converse, loaded, say
from tests.support.documents import into_sqlite
from tests.support.raising import raising
from turnloom import Event, Loom
from turnloom.adapters.autogen import attach
from turnloom.errors import MissingContext, UsageError
from turnloom.wiring import ChatRecords

MODEL = LLMConfig({"api_type": "openai", "model": "none", "api_key": "none"})
SECRET, LATER = "canary-of-ours", "another-canary"
FILES = {
    "agents.yaml": "Asker: {}\nPlanner: {}\nReviewer: {}\n",
    "context_variables.yaml": """
        definitions:
          token: {type: string, secret: true, source: {type: environment, env_var: CHAT_TOKEN}}
          level: {type: integer, source: {type: environment, env_var: CHAT_LEVEL, default: 1}}
          region:
            type: string
            required: true
            source: {type: database, collection: apps, search_by: app_id, field: region}
          name:
            type: string
            source: {type: database, collection: people, search_by: user_id, field: name}
        agents: {Asker: {variables: [level, region, name]}}
        """,
}
HOOKED = FILES | {
    "tools.yaml": """
        lifecycle_tools:
          - {trigger: before_chat, agent: null, file: h.py, function: fail}
        """,
    "h.py": """
        def fail(context_variables):
            raise OSError(f"no login with {context_variables['token']}")
        """,
}


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CHAT_TOKEN", SECRET)
    monkeypatch.setenv("CHAT_LEVEL", "7")
    folder = tmp_path / "documents"
    folder.mkdir()
    apps = [{"app_id": "globex", "region": "north"}, {"app_id": "acme", "region": "south"}]
    into_sqlite(folder, "documents", "apps", apps)
    into_sqlite(folder, "documents", "people", [{"user_id": "ann", "name": "Ann Lee"}])
    return f"sqlite:{folder}"


def opened(where: Path, documents: str, app: str = "acme") -> ChatRecords:
    return ChatRecords(str(where / "turnloom.db"), documents=documents, user_id="ann", app_id=app)


async def log_of(where: Path, run: str, app_id: str = "acme") -> list[Event]:
    async with Loom(store=str(where / "turnloom.db")) as app:
        return [*await app.history.events(run, app_id=app_id)]


def every(events: list[Event], kind: str) -> list[Any]:
    return [event.data for event in events if event.kind == kind]


@pytest.mark.parametrize("is_async", [False, True])
async def test_values_of_the_environment_and_of_databases_are_there_as_in_a_run(
    is_async: bool, tmp_path: Path, documents: str
) -> None:
    pattern, agents = chat()
    with opened(tmp_path, documents) as records:
        attach(pattern, loaded(tmp_path, FILES), records)
        with say(agents, Asker=["So."]):
            _, context = await converse(pattern, is_async)
        (run,) = records.runs
    assert context.to_dict() == {
        "token": SECRET,
        "level": 7,
        "region": "south",
        "name": "Ann Lee",
    }
    assert agents["Asker"].system_message.endswith('- region: "south"\n- name: "Ann Lee"')
    events = await log_of(tmp_path, run)
    (first,) = every(events, "context.loaded")
    assert [(each.name, each.source, each.value) for each in first.values] == [
        ("token", "environment", "⟨secret:token⟩"),
        ("level", "environment", 7),
        ("region", "database", "south"),
        ("name", "database", "Ann Lee"),
    ]
    assert SECRET not in repr(events)


async def test_what_the_chat_was_given_stays(tmp_path: Path, documents: str) -> None:
    pattern, agents = chat(context_variables=ContextVariables(data={"region": "west"}))
    with opened(tmp_path, documents, app="nobody") as records:
        attach(pattern, loaded(tmp_path, FILES), records)
        with say(agents, Asker=["So."]):
            _, context = await converse(pattern, True)
        (run,) = records.runs
    assert (context["region"], context["name"]) == ("west", "Ann Lee")
    (first,) = every(await log_of(tmp_path, run, "nobody"), "context.loaded")
    assert {each.name: each.source for each in first.values}["region"] == "chat"


def test_a_variable_that_is_required_and_has_no_value_is_refused(
    tmp_path: Path, documents: str
) -> None:
    pattern, _ = chat()
    workflow = loaded(tmp_path, FILES)
    with opened(tmp_path, documents, app="nobody") as records:
        with raising(MissingContext, "'region'"):
            attach(pattern, workflow, records)
        assert records.runs == []
    assert "region" not in pattern.context_variables


def test_what_nobody_could_look_up_is_refused(tmp_path: Path, documents: str) -> None:
    with raising(UsageError, "'token'", "'level'", "'region'", "'name'", "`Records`"):
        attach(chat()[0], loaded(tmp_path, FILES))
    by_chat = "{type: database, collection: c, search_by: chat_id, field: f}"
    variables = f"definitions: {{past: {{type: string, source: {by_chat}}}}}"
    workflow = loaded(tmp_path, FILES | {"context_variables.yaml": variables})
    with opened(tmp_path, documents) as records, raising(UsageError, "'past'", "'chat_id'"):
        attach(chat()[0], workflow, records)


async def test_what_this_deployment_leaves_out_is_not_there(
    tmp_path: Path, documents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVIRONMENT", "production")
    pattern, agents = chat()
    with opened(tmp_path, documents) as records:
        attach(pattern, loaded(tmp_path, FILES), records)
        with say(agents, Asker=["So."]):
            _, context = await converse(pattern, True)
        (run,) = records.runs
    assert context.to_dict() == {"region": "south", "name": "Ann Lee"}
    (suppressed,) = every(await log_of(tmp_path, run), "context.suppressed")
    assert {"token", "level"} <= {*suppressed.names}


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_a_hook_that_fails_tells_no_secret(
    is_recorded: bool,
    tmp_path: Path,
    documents: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {} if is_recorded else {"token": SECRET, "level": 1, "region": "n", "name": "A"}
    pattern, agents = chat(context_variables=ContextVariables(data=given))
    with opened(tmp_path, documents) as records, caplog.at_level(logging.DEBUG):
        attach(pattern, loaded(tmp_path, HOOKED), records if is_recorded else None)
        with say(agents, Asker=[f"It is {SECRET}."]):
            await converse(pattern, True)
        runs = records.runs
    assert SECRET not in caplog.text and "no login with ⟨secret:token⟩" in caplog.text
    for run in runs:
        events = await log_of(tmp_path, run)
        (error,) = every(events, "lifecycle.tool_error")
        assert error.message == "no login with ⟨secret:token⟩"
        assert SECRET not in repr(events)
    assert len(runs) == is_recorded


async def test_a_secret_that_is_set_later_is_one_too(tmp_path: Path, documents: str) -> None:
    def renew(context_variables: ContextVariables) -> str:
        """Get another token."""
        context_variables["token"] = LATER
        return f"It is {LATER} now."

    pattern, agents = chat(asker={"llm_config": MODEL, "functions": [renew]})
    with opened(tmp_path, documents) as records:
        attach(pattern, loaded(tmp_path, FILES), records)
        with say(agents, Asker=[ToolCall("renew").to_message(), f"{SECRET}, {LATER}."]):
            _, context = await converse(pattern, True)
        (run,) = records.runs
    assert context["token"] == LATER
    events = await log_of(tmp_path, run)
    assert SECRET not in repr(events) and LATER not in repr(events)
    (changed,) = every(events, "context.changed")
    assert (changed.name, changed.value) == ("token", "⟨secret:token⟩")


HOOKS = {
    "process_all_messages_before_reply": "messages",
    "process_last_received_message": "content",
    "process_message_before_send": "sender, message, recipient, silent",
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", HOOKS)
async def test_a_message_hook_that_returns_nothing_fails_the_chat(
    kind: str, is_async: bool, tmp_path: Path
) -> None:
    """AutoGen would go on with all that was said, as it was said."""
    hook = f"{{hook_type: {kind}, hook_agent: all, filename: h.py, function: redact}}"
    files = {
        "agents.yaml": FILES["agents.yaml"],
        "hooks.yaml": f"hooks: [{hook}]",
        "h.py": f"def redact({HOOKS[kind]}):\n    pass\n",
    }
    pattern, agents = chat()
    attach(pattern, loaded(tmp_path, files))
    with say(agents, Asker=["So."]), pytest.raises(TypeError, match="'redact'"):
        await converse(pattern, is_async)
