"""Keys that workflows of MozaiksAI use: accepted by the check, with an effect in the run."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.support.folders import write_folder

END = "{source_agent: A, target_agent: terminate, handoff_type: after_work}"
BASE = {
    "orchestrator.yaml": "{startup_mode: BackendOnly, initial_agent: A}",
    "agents.yaml": "{A: {system_message: First.}, B: {system_message: Second.}}",
    "handoffs.yaml": """
        - {source_agent: A, target_agent: B, handoff_type: after_work, description: To the second}
        - {source_agent: B, target_agent: terminate, handoff_type: after_work}
        """,
    "script.yaml": "agents: {A: [Hello.], B: [Bye.]}",
}


def ran(turnloom: Call, tmp_path: Path, files: dict[str, str]) -> str:
    """What a run prints, of a folder that passes its check without a word."""
    write_folder(tmp_path, {**BASE, **files}, "Talk")
    assert turnloom("check", "Talk").out == ""
    return turnloom("run", "Talk").out


def test_a_handoff_has_a_description_in_graphs_and_explanations(
    turnloom: Call, tmp_path: Path
) -> None:
    assert "B: Bye." in ran(turnloom, tmp_path, {})
    assert "To the second" in turnloom("show", "graph", "Talk").out
    routes = turnloom("log", "last", "--json").out.splitlines()
    found = [json.loads(line) for line in routes]
    seq = next(
        e["seq"] for e in found if e["kind"] == "route.decided" and e["data"]["source"] == "A"
    )
    assert "To the second" in turnloom("explain", "last", "--route", str(seq)).out


def test_every_file_may_have_its_own_name_as_its_only_key(turnloom: Call, tmp_path: Path) -> None:
    files = {
        "orchestrator.yaml": "orchestrator: {startup_mode: BackendOnly, initial_agent: A}",
        "agents.yaml": "agents: {agents: [{name: A}, {name: B}]}",
        "handoffs.yaml": f"handoffs: {{handoff_rules: [{END.replace('terminate', 'B')}]}}",
        "script.yaml": "script: {agents: {A: [{calls: [{tool: f}]}, Hello.], B: [Bye.]}}",
        "tools.yaml": """
            tools:
              tools: [{agent: [A], file: t.py, function: f}]
              lifecycle_tools: [{trigger: before_chat, agent: null, file: t.py, function: g}]
            """,
        "hooks.yaml": "hooks: {hooks: []}",
        "ui_config.yaml": "ui_config: {visual_agents: [A, B]}",
        "structured_outputs.yaml": "structured_outputs: {structured_outputs: {models: {}}}",
        "context_variables.yaml": """
            context_variables:
              context_variables:
                definitions: {x: {source: {type: static, value: 1}}}
                agents: [{agent_name: A, variables: [x]}]
            """,
        "t.py": "def f() -> str: return 'called'\ndef g() -> None: ...",
    }
    out = ran(turnloom, tmp_path, files)
    assert "with x" in out and "B: Bye." in out and "called" in out
    wrong = {
        **BASE,
        **files,
        "handoffs.yaml": f"handoffs:\n  handoff_rules:\n  - {END}\n  - {{x: 1}}",
    }
    write_folder(tmp_path, wrong, "Wrong")
    told = turnloom("check", "Wrong", code=2).out.splitlines()
    assert any(line.startswith("Wrong/handoffs.yaml:4: W010") for line in told)


def test_one_function_may_be_the_tool_of_several_agents(turnloom: Call, tmp_path: Path) -> None:
    nothing = "tool_type: Agent_Tool, ui: {component: null, mode: null}"
    files = {
        "tools.yaml": f"""
            tools:
            - {{agent: A, file: t.py, function: note, {nothing}}}
            - {{agent: B, file: t.py, function: note, {nothing}}}
            - {{agent: [A, B], file: t.py, function: both}}
            """,
        "t.py": "def note() -> str: return 'noted'\ndef both() -> str: return 'shared'",
        "script.yaml": """
            agents:
              A: [{calls: [{tool: note}, {tool: both}]}, Hello.]
              B: [{calls: [{tool: note}, {tool: both}]}, Bye.]
            """,
    }
    out = ran(turnloom, tmp_path, files)
    assert out.count("noted") == out.count("shared") == 2
    twice = (
        "tools: [{agent: A, file: t.py, function: note}, {agent: A, file: t.py, function: note}]"
    )
    write_folder(tmp_path, {**BASE, **files, "tools.yaml": twice}, "Twice")
    assert "W013" in turnloom("check", "Twice", code=2).out


def test_the_required_fields_of_a_model_are_enforced(turnloom: Call, tmp_path: Path) -> None:
    files = {
        "structured_outputs.yaml": """
            models:
              Plan:
                type: model
                required: [title]
                fields:
                  title: {type: str}
                  note: {type: str}
            registry: {A: Plan}
            """,
        "script.yaml": """
            agents:
              A: [{output: {note: no title}}, {output: {title: Move in}}]
              B: [Bye.]
            """,
    }
    out = ran(turnloom, tmp_path, files)
    assert "Move in" in out and "title" in out.partition("Move in")[0]
    write_folder(
        tmp_path,
        {"structured_outputs.yaml": files["structured_outputs.yaml"].replace("[title]", "[titel]")},
        "Talk",
    )
    assert "Did you mean 'title'?" in turnloom("check", "Talk", code=2).out


def test_a_trigger_hides_its_word_and_may_have_no_transitions(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {
        "context_variables.yaml": """
            definitions:
              done:
                type: boolean
                source:
                  type: derived
                  default: false
                  transitions: []
                  triggers:
                  - {type: agent_text, agent: A, match: {equals: NEXT}, ui_hidden: true}
            agents: {B: {variables: [done]}}
            """,
        "script.yaml": "agents: {A: [NEXT], B: [Bye.]}",
    }
    out = ran(turnloom, tmp_path, files)
    assert "A: NEXT" not in out and "done: false → true" in out


USER = {
    "orchestrator.yaml": "{startup_mode: UserDriven, initial_agent: A, human_in_the_loop: true}",
    "handoffs.yaml": """
        - source_agent: user
          target_agent: B
          handoff_type: condition
          condition_type: string_llm
          condition: The user wants to leave.
        - {source_agent: A, target_agent: user, handoff_type: after_work}
        - {source_agent: B, target_agent: terminate, handoff_type: after_work}
        """,
}


def test_a_model_judges_the_message_of_the_user(turnloom: Call, tmp_path: Path) -> None:
    script = """
        agents:
          A: [Stay.]
          B: [Bye.]
          selector: [no_transfer, transfer_to_B_1]
        user: [Hello., I go.]
        """
    out = ran(turnloom, tmp_path, {**USER, "script.yaml": script})
    assert "user → A (no rule fired" in out
    assert "user → B (string_llm rule 1)" in out and "B: Bye." in out
    found = [json.loads(line) for line in turnloom("log", "last", "--json").out.splitlines()]
    first, second = [
        e["seq"] for e in found if e["kind"] == "route.decided" and e["data"]["source"] == "user"
    ]
    assert (
        "the workflow's model did not choose it"
        in turnloom("explain", "last", "--route", str(first)).out
    )
    assert "fired" in turnloom("explain", "last", "--route", str(second)).out


def test_a_rule_of_the_user_may_be_decided_before_the_user_is_asked(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {
        "orchestrator.yaml": "{initial_agent: A, human_in_the_loop: true}",
        "context_variables.yaml": """
            definitions:
              known:
                type: boolean
                source:
                  type: derived
                  default: false
                  triggers: [{type: agent_text, agent: A, match: {contains: known}}]
            """,
        "handoffs.yaml": """
            - source_agent: user
              target_agent: B
              handoff_type: condition
              condition_scope: pre
              condition: ${known} == True
            - {source_agent: A, target_agent: user, handoff_type: after_work}
            - {source_agent: B, target_agent: terminate, handoff_type: after_work}
            """,
        "script.yaml": "agents: {A: [What is it?, It is known.], B: [Bye.]}\nuser: [This.]",
    }
    out = ran(turnloom, tmp_path, files)
    assert out.count("you> ") == 1
    assert "user → B (condition rule 1, before the user is asked)" in out


def test_imports_of_the_original_are_one_problem_for_each_file(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {
        **BASE,
        "tools.yaml": """
            tools:
            - {agent: A, file: plan.py, function: plan}
            - {agent: A, file: plan.py, function: show}
            - {agent: B, file: quiet.py, function: quiet}
            - {agent: B, file: late.py, function: late}
            """,
        "tools/plan.py": """\
import json
from mozaiksai.core.workflow.outputs.ui_tools import use_ui_tool
from logs.logging_config import get_workflow_logger

async def plan() -> str: return await use_ui_tool("Plan", {})
async def show() -> str: return "shown"
""",
        "tools/quiet.py": """\
try:
    from logs.logging_config import get_workflow_logger
except ImportError:
    get_workflow_logger = None
from core import helper

def quiet() -> str: return helper()
""",
        "core.py": "def helper() -> str: return 'ours'",
        "tools/late.py": """\
def late() -> str:
    from mozaiks.core.data.persistence import manager
    return manager
""",
    }
    told = turnloom("check", write_folder(tmp_path, files, "Talk"), code=2).out.splitlines()
    late, plan = told
    assert "late.py:2: W075" in late and "context_variables" in late
    assert "plan.py:2: W075" in plan
    assert "turnloom import use_ui_tool" in plan and "getLogger" in plan


COUNTED = {
    "context_variables.yaml": """\
agents: {A: {variables: [count, done]}}
definitions:
  count:
    type: integer
    source:
      type: derived
      default: 0
      triggers: [{type: agent_turn_count, agent: A, count: 2, value: 4}]
  done:
    type: boolean
    source:
      type: derived
      default: true
      triggers: [{type: agent_turn_count, agent: A, count: 2, value: false}]
""",
    "handoffs.yaml": """\
- {source_agent: A, target_agent: B, handoff_type: condition, condition: 'CONDITION'}
- {source_agent: A, target_agent: A, handoff_type: after_work}
- {source_agent: B, target_agent: terminate, handoff_type: after_work}
""",
    "script.yaml": "agents: {A: [One., Two., Three.], B: [Bye.]}",
}


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("${done} != True", "context_changed"),
        ("not ${done}", "context_changed"),
        ("${count} > 3", "function"),
        ("${count}", "function"),
        ("${count} >= 4 OR ${done} == False", "function"),
        ("${count} == 4 AND ${done} == False AND ${count} == 4", "function"),
    ],
)
def test_a_refused_condition_comes_with_the_variable_that_does_it(
    condition: str, kind: str, turnloom: Call, tmp_path: Path
) -> None:
    files = {**BASE, **COUNTED}
    rules = files["handoffs.yaml"]
    files["handoffs.yaml"] = rules.replace("CONDITION", condition)
    write_folder(tmp_path, files, "Talk")
    (told,) = json.loads(turnloom("check", "Talk", "--json", code=2).out)
    assert told["code"] == "W022" and kind in told["remedy"]
    pasted = re.findall(r"`([^`]*)`", told["remedy"])
    files["context_variables.yaml"] += f"  {pasted[0]}\n"
    files["handoffs.yaml"] = rules.replace("CONDITION", pasted[-1])
    if kind == "function":
        files["derivations.py"] = f"{pasted[2]}\n"
    out = ran(turnloom, tmp_path, files)
    assert "A: Two." in out and "A: Three." not in out and "B: Bye." in out


def test_a_refused_condition_does_not_hide_an_unknown_variable(
    turnloom: Call, tmp_path: Path
) -> None:
    rules = COUNTED["handoffs.yaml"].replace("CONDITION", "${cuont} > 3")
    write_folder(tmp_path, {**BASE, **COUNTED, "handoffs.yaml": rules}, "Talk")
    told = turnloom("check", "Talk", code=2).out
    assert "W022" in told and "W021" in told and "Did you mean 'count'?" in told


def test_a_key_without_an_effect_is_a_warning(turnloom: Call, tmp_path: Path) -> None:
    files = {
        "orchestrator.yaml": "initial_agent: A",
        "tools.yaml": """\
            tools:
            - {agent: A, file: t.py, function: f, tool_type: UI_Tool, ui: {component: Card}}
            - {agent: A, file: t.py, function: g, tool_type: Agent_Tool, ui: {component: Card}}
            """,
        "t.py": "async def f() -> str: return ''\ndef g() -> str: return ''",
        "context_variables.yaml": """\
            definitions:
              sure:
                type: boolean
                source:
                  type: derived
                  triggers:
                  - {type: ui_response, tool: f, response_key: sure, ui_hidden: true}
            """,
    }
    write_folder(tmp_path, {**BASE, **files}, "Talk")
    variables, tools = turnloom("check", "Talk").out.splitlines()
    assert variables.startswith("Talk/context_variables.yaml:7: W015 ")
    assert tools.startswith("Talk/tools.yaml:3: W015 ") and "'g'" in tools
