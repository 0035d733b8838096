"""A recorded group chat of AG2's classic line, and the history of one of its variables."""

import asyncio
import io
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from autogen import ConversableAgent
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.group.patterns import RoundRobinPattern
from autogen.testing import TestAgent

from turnloom import Loom
from turnloom.adapters.autogen import attach
from turnloom.wiring import ChatRecords, Folders

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


def converse(folder: str, store: str) -> str:
    """Record a chat, and return its id."""
    desk, duty = (ConversableAgent(name, human_input_mode="NEVER") for name in ("Desk", "Duty"))
    pattern = RoundRobinPattern(initial_agent=desk, agents=[desk, duty])
    workflow, problems = Folders().examine(folder)
    assert workflow is not None, problems
    with ChatRecords(store) as records:
        attach(pattern, workflow, records)
        with TestAgent(desk, ["It burns: urgent."]), TestAgent(duty, ["I am on my way."]):
            with redirect_stdout(io.StringIO()):
                initiate_group_chat(pattern, "Fire!", max_rounds=3)
        return records.runs[-1]


async def explain(store: str, run: str) -> None:
    async with Loom(store=store) as app:
        (summary,) = await app.runs()
        print(f"{summary.workflow}, {summary.status}")
        explained = str(await app.explain.variable(run, "is_urgent"))
        print("\n".join(explained.splitlines()[1:8]))


with TemporaryDirectory() as folder:
    Path(folder, "Alarm").mkdir()
    Path(folder, "Alarm", "agents.yaml").write_text("Desk: {}\nDuty: {}\n", "utf-8")
    Path(folder, "Alarm", "context_variables.yaml").write_text(VARIABLES, "utf-8")
    store = str(Path(folder, "turnloom.db"))
    asyncio.run(explain(store, converse(str(Path(folder, "Alarm")), store)))
