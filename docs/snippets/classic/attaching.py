"""A group chat of AG2's classic line with the variables of a workflow folder."""

import asyncio
import io
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from autogen import ConversableAgent
from autogen.agentchat import a_initiate_group_chat
from autogen.agentchat.group import AgentTarget, OnContextCondition, StringContextCondition
from autogen.agentchat.group.patterns import DefaultPattern
from autogen.testing import TestAgent

from turnloom.adapters.autogen import attach
from turnloom.wiring import Folders

VARIABLES = """
definitions:
  is_urgent:
    type: boolean
    source:
      type: derived
      default: false
      triggers: [{type: agent_text, agent: Desk, match: {contains: URGENT}}]
agents:
  Duty: {variables: [is_urgent]}
"""


async def converse(folder: str) -> None:
    desk, queue, duty = (
        ConversableAgent(name, system_message=f"You are {name}.", human_input_mode="NEVER")
        for name in ("Desk", "Queue", "Duty")
    )
    desk.handoffs.set_after_work(AgentTarget(queue))
    urgent = StringContextCondition(variable_name="is_urgent")
    to_duty = OnContextCondition(target=AgentTarget(duty), condition=urgent)
    queue.handoffs.add_context_condition(to_duty)
    pattern = DefaultPattern(initial_agent=desk, agents=[desk, queue, duty])
    workflow, problems = Folders().examine(folder)
    assert workflow is not None, problems
    attach(pattern, workflow)
    with TestAgent(desk, ["It burns: urgent."]), TestAgent(duty, ["I am on my way."]):
        with redirect_stdout(io.StringIO()):
            result, _, _ = await a_initiate_group_chat(pattern, "Fire!", max_rounds=5)
    for message in result.chat_history[1:]:
        print(f"{message['name']}: {message['content']}")
    print(duty.system_message)


with TemporaryDirectory() as folder:
    Path(folder, "agents.yaml").write_text("Desk: {}\nQueue: {}\nDuty: {}\n", "utf-8")
    Path(folder, "context_variables.yaml").write_text(VARIABLES, "utf-8")
    asyncio.run(converse(folder))
