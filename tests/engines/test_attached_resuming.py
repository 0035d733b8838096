"""Group chats of AG2's classic line that are resumed: nothing of their past counts twice."""

from pathlib import Path
from typing import Any

import pytest
from autogen.agentchat.group import AgentTarget, ContextVariables

from tests.support.chats import chat, converse, loaded, say, speakers
from turnloom.adapters.autogen import attach

FILES = {
    "agents.yaml": "Asker: {}\nPlanner: {}\nReviewer: {}\n",
    "context_variables.yaml": """
        definitions:
          stage:
            type: string
            source:
              type: derived
              default: asking
              triggers:
                - {type: agent_text, agent: Asker, match: {equals: NEXT}, value: planning}
          greeted:
            type: boolean
            source:
              type: derived
              default: false
              triggers:
                - {type: agent_text, agent: Asker, match: {equals: Hello}, once: true}
          is_third:
            type: boolean
            source:
              type: derived
              default: false
              triggers: [{type: agent_turn_count, agent: Asker, count: 3}]
        """,
}
PAST = [
    {"role": "user", "name": "Asker", "content": "Hello"},
    {"role": "user", "name": "Asker", "content": "NEXT"},
]


async def resumed(
    folder: Path, is_async: bool, said: str, values: dict[str, Any]
) -> tuple[Any, ContextVariables]:
    """A chat with a past, in which the asker says something again."""
    pattern, agents = chat(context_variables=ContextVariables(data=values))
    agents["Asker"].handoffs.set_after_work(AgentTarget(agents["Reviewer"]))
    attach(pattern, loaded(folder, FILES))
    with say(agents, Asker=[said], Reviewer=["Fine."]):
        return await converse(pattern, is_async, PAST)


@pytest.mark.parametrize("is_async", [False, True])
async def test_turns_are_counted_once(is_async: bool, tmp_path: Path) -> None:
    result, context = await resumed(tmp_path, is_async, "So.", {})
    assert speakers(result)[-2:] == ["Asker", "Reviewer"]
    assert context["is_third"] is True


@pytest.mark.parametrize("is_async", [False, True])
async def test_values_that_nobody_kept_follow_from_what_was_said(
    is_async: bool, tmp_path: Path
) -> None:
    _, context = await resumed(tmp_path, is_async, "So.", {})
    assert (context["stage"], context["greeted"]) == ("planning", True)


@pytest.mark.parametrize("is_async", [False, True])
async def test_values_that_were_kept_stay(is_async: bool, tmp_path: Path) -> None:
    kept = {"stage": "reviewing", "greeted": False, "is_third": False}
    _, context = await resumed(tmp_path, is_async, "Hello", kept)
    assert context["stage"] == "reviewing"
    assert context["greeted"] is False  # it was to fire once, and did
    assert context["is_third"] is True
