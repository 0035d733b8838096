"""An agent of AG2's classic line takes a turn with its own tool."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from autogen import ConversableAgent, LLMConfig
from autogen.agentchat.group import ContextVariables

from turnloom import Answer, Loom, ToolCall
from turnloom.adapters.autogen import ConversableAgentEngine
from turnloom.testing import LoopbackModel

VARIABLES = """
definitions:
  room: {type: integer, source: {type: derived, default: 0}}
agents:
  Porter: {variables: [room]}
"""
HANDOFFS = """
handoff_rules:
  - {source_agent: Desk, target_agent: Porter, handoff_type: after_work}
  - {source_agent: Porter, target_agent: terminate, handoff_type: after_work}
"""


def book(name: str, context_variables: ContextVariables) -> str:
    """Book a room."""
    context_variables["room"] = 7
    return f"Room 7 is booked for {name}."


async def converse(folder: str) -> None:
    booking = Answer(calls=(ToolCall("book", {"name": "Ann"}),))
    async with LoopbackModel([booking, "Welcome, Ann.", "This way to room 7."]) as model:
        entry = {"api_type": "openai", "model": "any", "api_key": "none", "base_url": model.url}

        def make() -> ConversableAgent:
            return ConversableAgent(
                "Clerk",
                system_message="You are polite.",
                llm_config=LLMConfig(entry),
                functions=[book],
                human_input_mode="NEVER",
            )

        async with Loom(store="memory", engine=ConversableAgentEngine(make)) as app:
            run = await app.start(folder)
            await run.finished()
            for event in await app.history.events(run.id):
                if event.kind == "agent.text":
                    print(f"{event.data.agent}: {event.data.text}")
                elif event.kind == "context.changed":
                    print(f"  {event.data.name} = {event.data.value}, by {event.data.writer}")
        print(model.requests[-1].messages[0]["content"])


with TemporaryDirectory() as folder:
    Path(folder, "orchestrator.yaml").write_text("initial_message: I am Ann.\n", "utf-8")
    agents = "Desk: {system_message: Receive guests.}\nPorter: {system_message: Show the way.}\n"
    Path(folder, "agents.yaml").write_text(agents, "utf-8")
    Path(folder, "context_variables.yaml").write_text(VARIABLES, "utf-8")
    Path(folder, "handoffs.yaml").write_text(HANDOFFS, "utf-8")
    asyncio.run(converse(folder))
