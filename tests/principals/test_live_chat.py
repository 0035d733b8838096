"""A user follows a live run: nothing but the chat reaches them."""

import json
from pathlib import Path
from typing import Any

import msgspec

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Principal, Task, ToolCall

SECRET = "canary-7f3a"

FILES = {
    "orchestrator.yaml": (
        f"{{initial_agent: Planner, initial_message: {SECRET}-opening, visual_agents: [Speaker]}}"
    ),
    "agents.yaml": json.dumps(
        {
            "Planner": {"system_message": f"{SECRET}-prompt"},
            "Speaker": {"system_message": f"{SECRET}-prompt"},
        }
    ),
    "context_variables.yaml": json.dumps(
        {
            "definitions": {
                "plan": {"type": "string", "source": {"type": "static", "value": f"{SECRET}-value"}}
            },
            "agents": {"Planner": {"variables": ["plan"]}},
        }
    ),
    "tools.json": json.dumps(
        {"tools": [{"agent": "Planner", "file": "look.py", "function": "look"}]}
    ),
    "look.py": f"def look(where: str):\n    return '{SECRET}-result'\n",
    "handoffs.yaml": json.dumps(
        {
            "handoff_rules": [
                {"source_agent": a, "target_agent": b, "handoff_type": "after_work"}
                for a, b in (("Planner", "Speaker"), ("Speaker", "user"), ("user", "Planner"))
            ]
        }
    ),
}


async def engine(task: Task) -> Answer:
    if task.agent == "Speaker":
        task.say("Hel")
        task.say("lo.")
        return Answer("Hello.")
    if [*task.transcript][-1].text == "Fail":
        raise ValueError(f"{SECRET}-error")
    if not task.exchanges:
        return Answer(calls=(ToolCall("look", {"where": f"{SECRET}-argument"}),))
    return Answer(f"{SECRET}-hidden")


async def test_a_user_sees_the_chat_and_nothing_else(tmp_path: Path) -> None:
    heard: dict[str, list[Any]] = {"ann": [], "eve": []}
    async with Loom(store="memory", engine=engine) as app:
        ann, eve, dev = (
            app.as_principal(Principal("acme", "ann")),
            app.as_principal(Principal("acme", "eve")),
            app.as_principal(Principal("acme", "dev", "developer")),
        )
        run = await ann.start(write_folder(tmp_path, FILES, "Talk"))
        other = eve.handle(run.id)
        shown: list[Any] = []
        with run.listening(heard["ann"].append), other.listening(heard["eve"].append):
            async for each in run.chat():
                shown.append(each)
                if each.status == "waiting":
                    await run.send("Fail")
        assert [each.text for each in shown if each.text] == ["Hello.", "Fail"]
        assert (shown[-1].kind, shown[-1].status) == ("run.failed", "failed")
        assert SECRET.encode() not in msgspec.json.encode([shown, heard["ann"]])
        assert {each.agent for each in heard["ann"]} <= {"Speaker"} and heard["eve"] == []
        later = [each async for each in run.chat(after=shown[3].seq)]
        assert later == shown[4:]
        assert [each async for each in dev.handle(run.id).chat()] == shown
        assert SECRET in str(await dev.history.events(run.id))
        summary = await run.summary()
        assert SECRET not in str(summary) and summary.status == "failed"
