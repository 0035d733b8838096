"""More folders of MozaiksAI, as their authors write them: the first list of variables in JSON, the
transitions of late 2025, and a folder of 2026 with the defects that such folders have."""

import json
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.cli.conftest import Call
from tests.support.folders import contents, write_folder

FIRST: dict[str, Any] = {
    "orchestrator": {
        "workflow_name": "Concierge",
        "max_turns": 12,
        "human_in_the_loop": True,
        "startup_mode": "UserDriven",
        "initial_message_to_user": "How can I help?",
        "initial_message": None,
        "initial_agent": "DeskAgent",
        "visual_agents": ["DeskAgent", "BookingAgent", "user"],
        "runtime_extensions": [],
    },
    "agents": {
        "agents": {
            "DeskAgent": {"system_message": "Desk.", "image_generation_enabled": False},
            "BookingAgent": {"system_message": "Book.", "structured_output": "Booking"},
        }
    },
    "context_variables": {
        "context_variables": {
            "variables": [
                {"name": "tier", "type": "string", "value": "beta"},
                {"name": "ready", "type": "boolean", "default": False},
            ],
            "derived_variables": [
                {
                    "name": "desk_done",
                    "default": False,
                    "triggers": [
                        {"type": "agent_text", "agent": "DeskAgent", "match": {"equals": "NEXT"}}
                    ],
                }
            ],
        }
    },
    "handoffs": {
        "handoff_rules": [
            {"source_agent": "user", "target_agent": "DeskAgent", "handoff_type": "after_work"},
            {
                "source_agent": "DeskAgent",
                "target_agent": "BookingAgent",
                "handoff_type": "condition",
                "condition_type": "context",
                "condition": "${desk_done} == True",
                "transition_target": "AgentNameTarget",
            },
            {"source_agent": "DeskAgent", "target_agent": "User", "handoff_type": "after_work"},
            {
                "source_agent": "BookingAgent",
                "target_agent": "TERMINATE",
                "handoff_type": "after_work",
                "condition": None,
            },
        ]
    },
    "tools": {
        "tools": [
            {
                "agent": "BookingAgent",
                "file": "book.py",
                "function": "book",
                "tool_type": "UI_Tool",
                "auto_invoke": True,
                "ui": {"component": "BookingCard", "mode": "artifact"},
            },
            {
                "agent": "DeskAgent",
                "file": "book.py",
                "function": "bell",
                "description": None,
                "auto_invoke": True,
            },
        ]
    },
    "structured_outputs": {
        "structured_outputs": {
            "models": {
                "Booking": {
                    "type": "model",
                    "fields": {"room": {"type": "str"}, "note": {"type": "optional_str"}},
                }
            },
            "registry": {"BookingAgent": "Booking", "DeskAgent": None},
        }
    },
    "hooks": {"hooks": []},
    "script": {
        "agents": {
            "DeskAgent": ["Which room?", {"calls": [{"tool": "bell"}]}, "NEXT"],
            "BookingAgent": [{"output": {"room": "12", "note": None}}],
        },
        "user": ["A room", "Number 12", {"ok": True}],
    },
}
BOOK = """
from typing import Annotated, Any, Optional

from turnloom import use_ui_tool

Variables = Annotated[Optional[Any], "Context variables provided by AG2"]


async def book(room: str, note: Optional[str] = None, context_variables: Variables = None) -> Any:
    answer = await use_ui_tool("BookingCard", {"room": room})
    context_variables.set("ready", True)
    return {"status": "success", **answer}


def bell() -> str:
    return "ding"
"""


def codes(checked: str) -> list[str]:
    """The codes in a check's output, in order."""
    return re.findall(r"(?m)^\S+:\d+: (W\d+) ", checked)


def test_the_first_list_of_variables_in_json_with_a_mark(turnloom: Call, tmp_path: Path) -> None:
    files = {f"{part}.json": f"\ufeff{json.dumps(said)}" for part, said in FIRST.items()}
    write_folder(tmp_path, {**files, "tools/book.py": BOOK}, "Concierge")
    # An output is not required of the desk, so its model calls the tool.
    assert codes(turnloom("check", "Concierge", code=2).out) == ["W014", "W015"]
    assert "0 lost" in turnloom("migrate", "Concierge").out
    assert codes(turnloom("check", "Concierge").out) == ["W015"]
    out = turnloom("run", "Concierge").out
    assert "desk_done: false → true" in out and "ding" in out
    assert "ready: false → true (tool:book)" in out and '"ok":true' in out
    assert "finished: BookingAgent, after_work rule 4" in out


TRANSITIONS = {
    "orchestrator.yaml": """
        max_turns: 10
        human_in_the_loop: null
        startup_mode: BackendOnly
        orchestration_pattern: DefaultPattern
        initial_agent: OutlineAgent
        """,
    "agents.yaml": """
        agents:
        - {name: OutlineAgent, prompt_sections: [{id: role, heading: Role, content: Outline.}]}
        - {name: WriterAgent, prompt_sections: [{id: role, heading: Role, content: Write.}]}
        """,
    "context_variables.yaml": """
        context_variables:
          definitions:
          - key: stage
            type: string
            source:
              type: state
              default: outline
              transitions:
              - from: outline
                to: writing
                trigger: {type: agent_text, agent: OutlineAgent, match: {equals: NEXT}}
              - from: writing
                to: done
                trigger: {type: agent_text, agent: WriterAgent, match: {regex: '^DONE'}}
          - name: ready
            type: bool
            source: {type: config, env_var: READY, default: 'true'}
          agents:
          - {agent: OutlineAgent, variables: [stage, ready]}
          - {agent_name: WriterAgent, variables: [stage]}
        """,
    "handoffs.yaml": """
        handoffs:
          handoff_rules:
          - source_agent: OutlineAgent
            target_agent: WriterAgent
            handoff_type: condition
            condition_type: context_expression
            condition: ${stage} == "writing"
          - source_agent: WriterAgent
            target_agent: terminate
            handoff_type: condition
            condition: ${stage} == 'done'
          - {source_agent: OutlineAgent, target_agent: OutlineAgent, handoff_type: after_work}
          - {source_agent: WriterAgent, target_agent: WriterAgent, handoff_type: after_work}
        """,
    "tools.yaml": """
        tools: []
        lifecycle_tools: [{trigger: before_agent, agent: WriterAgent, file: n.py, function: note}]
        """,
    "tools/n.py": "def note(context_variables=None): return 'noted'",
    "_pack/workflow_graph.json": '{"version": 3, "mid_flight_journeys": []}',
    "script.yaml": "agents: {OutlineAgent: [Hm., NEXT], WriterAgent: [Well., DONE it is]}",
}


def test_transitions_in_lists_by_key(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, TRANSITIONS, "DesignDocs")
    assert codes(turnloom("check", "DesignDocs", code=2).out) == ["W014"]
    turnloom("migrate", "DesignDocs")
    assert turnloom("check", "DesignDocs").out == ""
    out = turnloom("run", "DesignDocs").out
    assert '"outline" → "writing"' in out and '"writing" → "done"' in out
    assert out.count("hook note") == 2 and "finished: WriterAgent, condition rule 2" in out


LATER = {
    "orchestrator.yaml": """
        schema_version: mozaiks.orchestrator.v1
        workflow_name: Review
        max_turns: 20
        human_in_the_loop: true
        workflow_startup_mode: AgentDriven
        orchestration_pattern: ag2_network
        initial_agent: HostAgent
        """,
    "agents.yaml": """
        agents:
        - name: HostAgent
          prompt_sections:
          - {id: role, heading: '[ROLE]', content: Present the plan.}
          - {id: guidance, heading: '[GUIDANCE]', content: null}
        - name: BuildAgent
          prompt_sections:
          - {id: role, heading: '[ROLE]', content: Build it.}
        """,
    "structured_outputs.yaml": "registry: {HostAgent: null, BuildAgent: null}\nmodels: {}\n",
    "context_variables.yaml": """
        definitions:
          approved:
            type: boolean
            source:
              type: state
              default: false
              triggers:
              - {type: user_text, match: {regex: '\\b(approved|looks good)\\b'}, ui_hidden: true}
        agents:
          BuildAgent: {variables: [approved]}
        """,
    "transition_graph.yaml": """
        transition_rules:
        - source_agent: HostAgent
          target_agent: user
          transition_type: after_turn
          transition_target: RevertToUserTarget
        - source_agent: user
          target_agent: BuildAgent
          transition_type: condition
          condition_type: context_equals
          condition_key: approved
          condition_value: true
          transition_target: AgentTarget
        - source_agent: user
          target_agent: HostAgent
          transition_type: after_turn
        - source_agent: BuildAgent
          target_agent: terminate
          transition_type: after_turn
        """,
    "middleware.yaml": """
        prompt_middleware:
        - agent: HostAgent
          filename: tools/guidance.py
          function: guide
        - agent: all
          filename: guidance.py
          function: greet
        """,
    "tools.yaml": """
        tools:
        - agent: HostAgent
          file: look.py
          function: look
          description: Look before you ask.
          tool_type: Agent_Tool
          auto_tool_call: false
        - agent: BuildAgent
          file: look.py
          function: look
          description: Look before you build.
          tool_type: Agent_Tool
          auto_tool_call: false
        """,
    "tools/look.py": "def look() -> str:\n    return 'seen'\n",
    "tools/guidance.py": (
        "def guide(agent, messages):\n    agent.update_system_message('Guided.')\n\n\n"
        "def greet(agent, messages):\n"
        "    agent.update_system_message(agent.system_message + ' Be kind.')\n"
    ),
    "script.yaml": """
        agents: {HostAgent: [The plan.], BuildAgent: [Built.]}
        user: [It looks good to me.]
        """,
}


def test_files_and_words_of_2026(turnloom: Call, tmp_path: Path) -> None:
    """The user's words, middleware of prompts, sections without content, and a function that each
    of its agents is told of in other words."""
    folder = Path(write_folder(tmp_path, LATER, "Review"))
    graph = folder / "transition_graph.yaml"
    graph.write_bytes(graph.read_bytes().replace(b"\n", b"\r\n"))
    before = contents(folder)
    raw = turnloom("check", "Review", code=2).out
    assert sorted(codes(raw)) == ["W014", "W014", "W014", "W015"]  # a version of another system
    turnloom("migrate", "Review")
    assert not graph.exists() and not (folder / "middleware.yaml").exists()
    assert b"\r\n" in (folder / "handoffs.yaml").read_bytes()
    assert codes(turnloom("check", "Review").out) == ["W015"]
    out = turnloom("run", "Review").out
    assert "approved: false → true" in out and "Built." in out
    host, build = (turnloom("explain", "last", "--turn", str(turn)).out for turn in (1, 2))
    assert "Guided. Be kind." in host and "Look before you ask." in host
    assert "Build it. Be kind." in build and "Look before you build." in build
    assert "[GUIDANCE]" not in host
    turnloom("migrate", "Review", "--undo")
    assert contents(folder) == before


# Each defect is marked with its code; all others of the file are right.
DEFECTS = {
    "orchestrator.yaml": """
        max_turns: 50
        human_in_the_loop: true
        startup_mode: AgentDriven
        orchestration_pattern: DefaultPattern
        initial_message: Begin the interview.
        initial_agent: InterviewAgent
        """,
    "agents.yaml": """
        agents:
        - {name: InterviewAgent, system_message: Ask., max_consecutive_auto_reply: 20}
        - {name: PatternAgent, system_message: Choose., auto_tool_mode: true}
        - {name: DownloadAgent, system_message: Download.}
        """,
    "context_variables.yaml": """
        definitions:
          interview_complete:
            type: boolean
            source:
              type: state  # W014
              default: false
              transitions: []
              triggers:
              - {type: agent_text, agent: InterviewAgent, match: {equals: NEXT}, ui_hidden: true}
          acceptance:
            type: string
            source:
              type: state
              default: pending
              triggers:
              - {type: ui_response, tool: ActionPlan, response_key: acceptance}
              - {type: ui_response, tool: ApiKeys, response_key: acceptance}
              - {type: ui_response, tool: mermaid, response_key: acceptance}  # W045
        agents:
          PatternAgent: {variables: [interview_complete, action_plan]}  # W021
          StrategyAgent: {variables: [interview_complete]}  # W020
          DownloadAgent: {variables: [acceptance]}
        """,
    "handoffs.yaml": """
        handoff_rules:
        - source_agent: user
          target_agent: PatternAgent
          handoff_type: condition
          condition_type: expression
          condition: ${interview_complete} == True
        - source_agent: user  # W031
          target_agent: PatternAgent
          handoff_type: condition
          condition_type: expression
          condition: ${interview_complete} == True
        - {source_agent: InterviewAgent, target_agent: user, handoff_type: after_work}
        - {source_agent: PatternAgent, target_agent: DownloadAgent, handoff_type: after_work}
        - source_agent: DownloadAgent
          target_agent: user
          handoff_type: condition
          condition_type: expresion  # W012
          condition: ${undeclared} == True  # W021
        - source_agent: DownloadAgent
          target_agent: DownloadAgnt  # W020
          handoff_type: condtion  # W012
          condition: The user is not content.
        - source_agent: DownloadAgent
          target_agent: user
          handoff_type: condition
          condition_scope: prre  # W012
          condition: ${interview_complete} == True
        - {source_agent: DownloadAgent, target_agent: terminate, handoff_type: after_work}
        """,
    "tools.yaml": """
        tools:
        - {agent: PatternAgent, file: pattern.py, function: pattern, ui: {component: ActionPlan},
           tool_type: UI_Tool}
        - {agent: GreeterAgent, file: pattern.py, function: greet}  # W020
        - {agent: DownloadAgent, file: gone.py, function: gone, auto_invoke: false}  # W040
        lifecycle_tools:
        - trigger: before_agent
          agent: PatternAgent
          file: keys.py  # W040
          function: collect_keys
          tool_type: UI_Tool  # W015
          ui: {component: ApiKeys, mode: inline}
        """,
    "structured_outputs.yaml": """
        models:
          Pattern: {type: model, fields: {kind: {type: literal, values: [One, Two]}}}
        registry: {PatternAgent: Pattern, InterviewAgent: null}
        """,
    "hooks.yaml": "hooks: []",
    "ui_config.yaml": "visual_agents: [InterviewAgent, GhostAgent]  # W020",
    "tools/pattern.py": """\
async def pattern(kind: str) -> str: return kind
def greet() -> str: return ''
""",
}


def test_every_defect_is_in_the_first_check_and_nothing_else(
    turnloom: Call, tmp_path: Path
) -> None:
    written = {name: dedent(text).strip("\n") for name, text in DEFECTS.items()}
    expected = {
        (f"AgentGenerator/{name}", number, code)
        for name, text in written.items()
        for number, line in enumerate(text.split("\n"), 1)
        for code in re.findall(r"W\d+", line.partition("#")[2])
    }
    write_folder(tmp_path, written, "AgentGenerator")
    told = json.loads(turnloom("check", "AgentGenerator", "--json", code=2).out)
    assert {(each["file"], each["line"], each["code"]) for each in told} == expected
    turnloom("migrate", "AgentGenerator")
    later = json.loads(turnloom("check", "AgentGenerator", "--json", code=2).out)
    left = {(file, code) for file, _, code in expected if code != "W014"}
    assert {(each["file"], each["code"]) for each in later} == left
