"""Tools of a group chat of AG2's classic line, and the variables that change by them."""

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from autogen import LLMConfig
from autogen.agentchat.group import (
    AgentTarget,
    ContextVariables,
    OnContextCondition,
    ReplyResult,
    StringContextCondition,
)
from autogen.testing import ToolCall, tools_message

from tests.support.chats import chat, converse, loaded, say, speakers
from turnloom.adapters.autogen import attach

MODEL = LLMConfig({"api_type": "openai", "model": "none", "api_key": "none"})
FILES = {
    "agents.yaml": "Asker: {}\nPlanner: {}\nReviewer: {}\n",
    "tools.yaml": "tools: [{agent: Asker, file: t.py, function: save}]",
    "t.py": "def save(): ...",
    "context_variables.yaml": """
        definitions:
          known:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: tool_response, tool: save, path: status, equals: done}]
          number:
            type: integer
            source:
              type: derived
              default: null
              triggers: [{type: tool_response, tool: save, from: id}]
          is_broken:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: tool_response, tool: save, status: error}]
          choice:
            type: string
            source:
              type: derived
              default: null
              triggers: [{type: ui_response, tool: save, response_key: choice}]
          stage:
            type: string
            source:
              type: derived
              default: asking
              triggers: [{type: context_changed, variable: choice, equals: tea, value: brewing}]
        agents:
          Planner: {variables: [choice]}
        """,
}

Made = tuple[Any, dict[str, Any]]


def equipped(tool: Callable[..., Any], folder: Path, **values: Any) -> Made:
    """A chat whose asker has a tool, and plans nothing once something is known."""
    tool.__name__ = "save"
    context = ContextVariables(data={"who": "Ann", **values})
    asker = {"llm_config": MODEL, "functions": [tool]}
    pattern, agents = chat(asker=asker, context_variables=context)
    known = StringContextCondition(variable_name="known")
    to_reviewer = OnContextCondition(target=AgentTarget(agents["Reviewer"]), condition=known)
    agents["Asker"].handoffs.add_context_condition(to_reviewer)
    agents["Asker"].handoffs.set_after_work(AgentTarget(agents["Planner"]))
    attach(pattern, loaded(folder, FILES))
    return pattern, agents


def calling(*after: str, calls: int = 1, **arguments: Any) -> list[Any]:
    return [tools_message(*(ToolCall("save", **arguments) for _ in range(calls))), *after]


@pytest.mark.repeats
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_tool_gives_is_known_before_anything_is_decided(
    is_async: bool, tmp_path: Path
) -> None:
    def save(text: str) -> dict[str, Any]:
        """Save it."""
        return {"status": "done", "id": len(text)}

    async def save_later(text: str) -> dict[str, Any]:
        """Save it."""
        return save(text)

    for tool in (save, save_later) * 2:
        pattern, agents = equipped(tool, tmp_path)
        lines = calling("Too late.", text="four")
        with say(agents, Asker=lines, Reviewer=["In time."], Planner=["No."]):
            result, context = await converse(pattern, is_async)
        assert speakers(result)[-2:] == ["Asker", "Reviewer"]
        assert result.chat_history[-2]["content"] == "[Handing off to Reviewer]"
        assert (context["known"], context["number"]) == (True, 4)
        assert context["is_broken"] is False


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_fails(is_async: bool, tmp_path: Path) -> None:
    def save() -> str:
        """Save it."""
        raise ValueError("The disk is full.")

    pattern, agents = equipped(save, tmp_path)
    with say(agents, Asker=calling("Oh."), Planner=["Well."]):
        result, context = await converse(pattern, is_async)
    assert context["is_broken"] is True and context["known"] is False
    told = [message["content"] for message in result.chat_history]
    assert "Error: The disk is full." in told


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_tool_sets_is_set(is_async: bool, tmp_path: Path) -> None:
    seen: list[Any] = []

    def save(choice: str, context_variables: ContextVariables) -> str:
        """Save it."""
        seen.append((context_variables["who"], context_variables.get("choice")))
        context_variables.set("choice", choice)
        return "Saved."

    async def save_later(choice: str, context_variables: ContextVariables) -> str:
        """Save it."""
        return save(choice, context_variables)

    for tool in (save, save_later):
        pattern, agents = equipped(tool, tmp_path, lock=Lock())
        lines = calling("So.", calls=2, choice="tea")
        with say(agents, Asker=lines, Planner=["Fine."]):
            _, context = await converse(pattern, is_async)
        assert (context["choice"], context["stage"]) == ("tea", "brewing")
        assert agents["Planner"].system_message.endswith('- choice: "tea"')
        (schema,) = [each.tool_schema["function"]["parameters"] for each in agents["Asker"].tools]
        assert [*schema["properties"]] == ["choice"]
    assert seen == [("Ann", None), ("Ann", "tea")] * 2


async def test_what_a_reply_result_brings_is_followed(tmp_path: Path) -> None:
    def save() -> ReplyResult:
        """Save it."""
        brought = ContextVariables(data={"choice": "tea"})
        return ReplyResult(message="Saved.", context_variables=brought)

    pattern, agents = equipped(save, tmp_path)
    with say(agents, Asker=calling("So."), Planner=["Fine."]):
        _, context = await converse(pattern, True)
    assert (context["choice"], context["stage"]) == ("tea", "brewing")
