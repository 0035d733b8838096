"""Lifecycle hooks of a workflow folder in a group chat of AG2's classic line."""

import logging
from pathlib import Path
from typing import Any

import pytest
from autogen import ConversableAgent, LLMConfig
from autogen.agentchat.group import (
    AgentTarget,
    ContextVariables,
    ReplyResult,
    RevertToUserTarget,
)
from autogen.testing import ToolCall

from tests.support.chats import chat, converse, loaded, say
from turnloom.adapters.autogen import attach

MODEL = LLMConfig({"api_type": "openai", "model": "none", "api_key": "none"})
VARIABLES = """
definitions:
  known:
    type: boolean
    source:
      type: derived
      default: false
      triggers: [{type: agent_turn_count, agent: Asker, count: 1}]
  notes: {type: array, source: {type: derived, default: []}}
  tier: {type: string, source: {type: static, value: beta}}
agents:
  Asker: {variables: [notes]}
"""
HOOKS = """lifecycle_tools:
  - {trigger: before_chat, agent: null, file: h.py, function: begin}
  - {trigger: before_agent, agent: null, file: h.py, function: before}
  - {trigger: after_agent, agent: Asker, file: h.py, function: after}
  - {trigger: after_chat, agent: null, file: h.py, function: end, on: always}
"""
CODE = """
def note(context_variables, what):
    context_variables.set("notes", [*context_variables["notes"], what])

def begin(context_variables):
    note(context_variables, "begin")

async def before(context_variables):
    note(context_variables, "before")

def after(context_variables):
    note(context_variables, f"after, known: {context_variables['known']}")

def end(context_variables):
    note(context_variables, context_variables["run_status"])
"""
FILES = {
    "agents.yaml": "Asker: {}\nPlanner: {}\nReviewer: {}\n",
    "context_variables.yaml": VARIABLES,
    "tools.yaml": HOOKS,
    "h.py": CODE,
}


@pytest.mark.parametrize("is_async", [False, True])
async def test_hooks_run_around_the_chat_and_around_turns(is_async: bool, tmp_path: Path) -> None:
    pattern, agents = chat()
    agents["Asker"].handoffs.set_after_work(AgentTarget(agents["Planner"]))
    attach(pattern, loaded(tmp_path, FILES))
    with say(agents, Asker=["So."], Reviewer=["Fine."]):
        _, context = await converse(pattern, is_async)
    asker = ["before", "after, known: False"]
    planner, reviewer = ["before"], ["before"]  # the first of them hands over
    assert context["notes"] == ["begin", *asker, *planner, *reviewer, "finished"]
    assert agents["Asker"].system_message.endswith('- notes: ["begin","before"]')
    assert "run_status" not in context


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_turn_goes_on_while_its_tools_are_called(is_async: bool, tmp_path: Path) -> None:
    def look() -> str:
        """Look."""
        return "Nothing."

    def pass_on() -> ReplyResult:
        """Pass on."""
        return ReplyResult(message="Passed.", target=AgentTarget(agents["Reviewer"]))

    pattern, agents = chat(asker={"llm_config": MODEL, "functions": [look, pass_on]})
    attach(pattern, loaded(tmp_path, FILES))
    lines = [ToolCall("look").to_message(), ToolCall("pass_on").to_message()]
    with say(agents, Asker=lines, Reviewer=["Fine."]):
        _, context = await converse(pattern, is_async)
    asker = ["before", "after, known: False"]
    assert context["notes"] == ["begin", *asker, "before", "finished"]
    assert context["known"] is True


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_turn_is_over_when_the_user_is_to_speak(is_async: bool, tmp_path: Path) -> None:
    def ask() -> ReplyResult:
        """Ask the user."""
        return ReplyResult(message="Asked.", target=RevertToUserTarget())

    user = ConversableAgent("user", human_input_mode="NEVER", default_auto_reply="Yes.")
    asker = {"llm_config": MODEL, "functions": [ask]}
    pattern, agents = chat(asker=asker, user_agent=user)
    attach(pattern, loaded(tmp_path, FILES))
    with say(agents, Asker=[ToolCall("ask").to_message(), "So."]):
        result, context = await converse(pattern, is_async)
    assert [each["content"] for each in result.chat_history[-2:]] == ["Yes.", "So."]
    first, second = ["before", "after, known: False"], ["before", "after, known: True"]
    assert context["notes"] == ["begin", *first, *second, "finished"]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_turn_that_fails_has_its_hooks_too(is_async: bool, tmp_path: Path) -> None:
    def fail(*args: Any, **more: Any) -> Any:
        raise RuntimeError("It is out of order.")

    pattern, agents = chat()
    agents["Asker"].register_reply([ConversableAgent, None], fail)
    attach(pattern, loaded(tmp_path, FILES))
    with say(agents), pytest.raises(RuntimeError, match="out of order"):
        await converse(pattern, is_async)
    notes = pattern.context_variables["notes"]
    assert notes == ["begin", "before", "after, known: False", "failed"]


FAILING = """lifecycle_tools:
  - {trigger: before_chat, agent: null, file: h.py, function: fail, retries: 1}
  - {trigger: before_chat, agent: null, file: h.py, function: then, after: fail}
  - {trigger: before_chat, agent: null, file: h.py, function: sometimes, when: "${known} == True"}
  - {trigger: before_chat, agent: null, file: h.py, function: hang, timeout_s: 0.05}
  - {trigger: before_chat, agent: null, file: h.py, function: meddle}
  - {trigger: before_chat, agent: null, file: h.py, function: leave}
  - {trigger: before_chat, agent: null, file: h.py, function: alone}
  - {trigger: after_chat, agent: null, file: h.py, function: then, on: failure}
"""
BAD = """
import asyncio
import sys

def note(context_variables, what):
    context_variables.set("notes", [*context_variables["notes"], what])

def fail(context_variables):
    note(context_variables, "tried")
    raise ValueError("No.")

def then(context_variables):
    note(context_variables, "then")

def sometimes(context_variables):
    note(context_variables, "sometimes")

async def hang(context_variables):
    await asyncio.sleep(60)

def meddle(context_variables):
    context_variables["tier"] = "gold"

def leave():
    sys.exit(3)

async def alone(context_variables):
    await context_variables.once("pay", lambda: 1)
"""


async def test_no_hook_stops_the_chat(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pattern, agents = chat(context_variables=ContextVariables(data={"pool": object()}))
    attach(pattern, loaded(tmp_path, FILES | {"tools.yaml": FAILING, "h.py": BAD}))
    with say(agents, Asker=["So."]), caplog.at_level(logging.INFO, "turnloom.lifecycle"):
        _, context = await converse(pattern, True)
    assert context["notes"] == ["tried", "tried"]
    assert context["tier"] == "beta"
    failed = [record.args[0] for record in caplog.records if record.levelname == "ERROR"]
    assert failed == ["fail", "fail", "hang", "meddle", "leave", "alone"]
    assert "hook then is skipped: runs after fail, which did not succeed" in caplog.text
    assert "hook sometimes is skipped: only when" in caplog.text
    assert "A chat cannot be resumed" in caplog.text
