"""The example files that context variables began with, in whole runs.

`seeds/context_variables.json` and `seeds/derived_variables.json` are examples as their authors
wrote them: the later one in today's shape, the earlier one to be migrated.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conversation.talks import examine
from tests.support.folders import write_folder
from tests.support.plays import attend, call, every, last, only, solo
from tests.support.programs import Program, make_world
from turnloom.log.spec import Event
from turnloom.testing import FakeDocuments

SEEDS = Path(__file__).with_name("seeds")

# A tool as its guide tells authors to write one: a type of another library, AG2's `set`.
TOOL = '''
    from __future__ import annotations

    from typing import TYPE_CHECKING, Any

    from turnloom import use_ui_tool

    if TYPE_CHECKING:
        from autogen.agentchat.group import ContextVariables

    async def action_plan(
        title: str, steps: list[str], context_variables: ContextVariables
    ) -> dict[str, Any]:
        """Show the plan, and wait for what the user makes of it."""
        plan = {"title": title, "steps": steps}
        resp = await use_ui_tool(
            tool_id="action_plan",
            payload=plan,
            chat_id=context_variables.get("chat_id"),
            workflow_name=context_variables.get("workflow_name"),
        )
        acceptance = resp.get("plan_acceptance")
        if acceptance is not None:
            context_variables.set("action_plan_acceptance", acceptance)
        context_variables.set("action_plan", plan)
        return {"status": "success", "plan_acceptance": acceptance}
    '''
# What the example shows to agents and does not define.
FURTHER = {
    "action_plan": {"type": "object", "source": {"type": "derived", "default": None}},
    "mermaid_sequence_diagram": {"type": "string", "source": {"type": "derived", "default": None}},
    "mermaid_diagram_ready": {
        "type": "boolean",
        "source": {
            "type": "derived",
            "default": False,
            "triggers": [
                {
                    "type": "agent_text",
                    "agent": "ProjectOverviewAgent",
                    "match": {"contains": "sequenceDiagram"},
                }
            ],
        },
    },
}
RULES = [
    {
        "source_agent": "InterviewAgent",
        "target_agent": "ActionPlanArchitect",
        "handoff_type": "condition",
        "condition": "When interview_complete is true",
    },
    {"source_agent": "InterviewAgent", "target_agent": "user", "handoff_type": "after_work"},
    {"source_agent": "user", "target_agent": "InterviewAgent", "handoff_type": "after_work"},
    {
        "source_agent": "ActionPlanArchitect",
        "target_agent": "ProjectOverviewAgent",
        "handoff_type": "condition",
        "condition": '${action_plan_acceptance} == "accepted"',
    },
    {
        "source_agent": "ActionPlanArchitect",
        "target_agent": "ActionPlanArchitect",
        "handoff_type": "after_work",
    },
    {
        "source_agent": "ProjectOverviewAgent",
        "target_agent": "terminate",
        "handoff_type": "after_work",
    },
]
PLANS = [
    {"calls": [call("action_plan", title="Draft", steps=["ask"])]},
    "I change it.",
    {"calls": [call("action_plan", title="Final", steps=["ask", "do"])]},
    "It is accepted.",
]
SCRIPT = {
    "InterviewAgent": ["What shall it do?", " next\n"],
    "ActionPlanArchitect": PLANS,
    "ProjectOverviewAgent": ["sequenceDiagram: user ->> agent"],
}


def example() -> dict[str, Any]:
    """The example with what it does not define."""
    document = json.loads((SEEDS / "context_variables.json").read_text("utf-8"))
    document["context_variables"]["definitions"] |= FURTHER
    return document


def person(question: Any) -> Any:
    if not question.tool:
        return "Invoices."
    accepted = question.payload["title"] == "Final"
    return {"plan_acceptance": "accepted" if accepted else "adjustments_requested"}


def shown(events: list[Event], agent: str) -> list[str]:
    """What the prompts of an agent said of its variables, turn by turn."""
    texts = {
        each.digest: each.text
        for frame in every(events, "frame.assembled")
        for each in frame.segments
        if each.text is not None
    }
    views = {event.seq: event.data for event in events if event.kind == "frame.assembled"}
    return [
        "".join(
            texts[segment.digest]
            for segment in views[frame.as_in or seq].segments
            if segment.kind == "variable"
        )
        for seq, frame in views.items()
        if frame.agent == agent
    ]


async def test_the_example_of_the_context_variables_system_runs_end_to_end(tmp_path: Path) -> None:
    documents = FakeDocuments()
    overview = {"enterprise_id": "local", "ConceptOverview": "An invoice service."}
    documents.add("Concepts", overview, database="autogen_ai_agents")
    files = solo(
        TOOL,
        {"agent": "ActionPlanArchitect", "function": "action_plan", "tool_type": "UI_Tool"},
        agents={name: {"system_message": f"You are {name}."} for name in SCRIPT},
        orchestrator={"workflow_name": "Generator", "initial_agent": "InterviewAgent"},
        context_variables=example(),
        handoffs=RULES,
        script={"agents": SCRIPT},
    )
    world = make_world(env={"CONTEXT_AWARE": "no"}, documents=documents)
    async with Program(world) as program:
        run = await program.start(write_folder(tmp_path, files, "Generator"))
        events = await attend(program, run, person)
    assert events[-1].kind == "run.finished"
    assert [each.agent for each in every(events, "turn.started")] == [
        "InterviewAgent",
        "InterviewAgent",
        "ActionPlanArchitect",
        "ActionPlanArchitect",
        "ProjectOverviewAgent",
    ]
    changes = [(each.name, each.value, each.writer) for each in every(events, "context.changed")]
    assert [each for each in changes if each[0] != "action_plan"] == [
        ("interview_complete", True, "trigger:interview_complete[0]"),
        ("action_plan_acceptance", "adjustments_requested", "tool:action_plan"),
        ("action_plan_acceptance", "accepted", "tool:action_plan"),
        ("mermaid_diagram_ready", True, "trigger:mermaid_diagram_ready[0]"),
    ]
    assert not every(events, "context.missed")
    assert shown(events, "InterviewAgent")[0].split("\n")[-3:] == [
        "- context_aware: false",
        '- concept_overview: "An invoice service."',
        "- monetization_enabled: false",
    ]
    first, second = shown(events, "ActionPlanArchitect")
    assert '- action_plan_acceptance: "pending"' in first
    assert '- action_plan_acceptance: "adjustments_requested"' in second
    assert '- action_plan: {"title":"Draft","steps":["ask"]}' in second
    assert '"Final"' in shown(events, "ProjectOverviewAgent")[0]


async def test_the_example_of_derived_variables_runs_after_its_migration(tmp_path: Path) -> None:
    agents = {"InterviewAgent": {}, "PlannerAgent": {}}
    rules = [
        {
            "source_agent": "InterviewAgent",
            "target_agent": "PlannerAgent",
            "handoff_type": "condition",
            "condition": "${interview_complete} == True",
        },
        {
            "source_agent": "InterviewAgent",
            "target_agent": "InterviewAgent",
            "handoff_type": "after_work",
        },
    ]
    script = {
        "InterviewAgent": ["What is it?", "terminate", " TERMINATE", "TERMINATE"],
        "PlannerAgent": ["Here is the plan."],
    }
    derived = json.loads((SEEDS / "derived_variables.json").read_text("utf-8"))
    files = solo(
        "",
        agents=agents,
        context_variables={"context_variables": derived},
        handoffs=rules,
        script={"agents": script},
    )
    folder = write_folder(tmp_path, files)
    migrated = _turnloom("migrate", folder)
    assert "interview_complete" in migrated and "→ derived" in migrated
    # AG2 would end the chat at the word; here it is a word like others.
    (warned,) = _turnloom("check", folder).splitlines()
    assert "W064" in warned
    async with Program(make_world()) as program:
        events = await attend(program, await program.start(folder), person)
    change = only(events, "context.changed")
    assert (change.name, change.value) == ("interview_complete", True)
    # No case conversion and no trimming, as its text says: only the fourth message counts.
    heard = [event.data for event in events if event.kind == "agent.text"]
    assert [each.agent for each in heard] == [*["InterviewAgent"] * 4, "PlannerAgent"]
    assert last(events, "run.finished")


def test_the_example_as_it_stands_names_variables_that_nobody_declares() -> None:
    text = (SEEDS / "context_variables.json").read_text("utf-8")
    agents = json.dumps(dict.fromkeys(SCRIPT, {}))
    tools = [{"agent": "ActionPlanArchitect", "file": "code.py", "function": "action_plan"}]
    files = {
        "agents.json": agents,
        "context_variables.json": text,
        "tools.json": json.dumps({"tools": tools}),
        "handoffs.json": json.dumps(RULES),
    }
    _, problems = examine(files)
    assert [(problem.code, problem.message.split("'")[3]) for problem in problems] == [
        ("W021", "action_plan"),
        ("W021", "action_plan"),
        ("W021", "mermaid_diagram_ready"),
        ("W021", "mermaid_sequence_diagram"),
    ]


def _turnloom(*words: str) -> str:
    """What the command line prints."""
    command = [sys.executable, "-m", "turnloom", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
