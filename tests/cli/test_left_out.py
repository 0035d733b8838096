"""Keys of MozaiksAI that are left out, null, or read by another system: no false alarm."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.test_moved_in import BASE, ran
from tests.support.checks import problems
from tests.support.folders import write_folder


def spoken(out: str) -> list[str]:
    """The agents whose messages a run shows."""
    return [name for name in ("A", "B") if f"\n{name}: " in f"\n{out}"]


def test_the_orchestrator_may_list_the_visible_agents(turnloom: Call, tmp_path: Path) -> None:
    start = "{startup_mode: BackendOnly, initial_agent: A, visual_agents: [B, user]}"
    assert spoken(ran(turnloom, tmp_path, {})) == ["A", "B"]
    assert spoken(ran(turnloom, tmp_path, {"orchestrator.yaml": start})) == ["B"]
    same = {"orchestrator.yaml": start, "ui_config.yaml": "visual_agents: [user, B]"}
    assert spoken(ran(turnloom, tmp_path, same)) == ["B"]
    write_folder(tmp_path, {"ui_config.yaml": "visual_agents: [A]"}, "Talk")
    assert "Talk/orchestrator.yaml:1: W013" in turnloom("check", "Talk", code=2).out
    write_folder(tmp_path, {"orchestrator.yaml": "{visual_agents: [Z], initial_agent: A}"}, "Talk")
    assert "'Z', which is shown to the user" in turnloom("check", "Talk", code=2).out


def test_keys_for_another_system_are_warnings(turnloom: Call, tmp_path: Path) -> None:
    files = {
        **BASE,
        "orchestrator.yaml": """
            startup_mode: BackendOnly
            initial_agent: A
            attachments: {enabled: true}
            metadata: {version: "1.0.0"}
            triggers: [{type: scheduled, cron: "0 6 * * 1"}]
            inputs: {scope: {type: string, required: true}}
            outputs: {payload: {type: object}}
            """,
        "agents.yaml": """
            A: {image_generation_enabled: true}
            B: {image_generation_enabled: null}
            """,
        "tools.yaml": """
            tools: [{agent: A, file: t.py, function: f, artifacts: [x],
            constraints: {read_only: true}, integration: Slack}]""",
        "ui_config.yaml": """
            ui_config:
              visual_agents: [A, B]
              themes: {dark: true}
              icon: chart-bar
              dashboard: {show_in_admin: true}
            """,
        "t.py": "def f() -> str: return ''",
    }
    write_folder(tmp_path, files, "Talk")
    told = turnloom("check", "Talk").out.splitlines()
    assert [line.split(":")[0] for line in told] == [
        f"Talk/{part}.yaml" for part in ("agents", "orchestrator", "tools", "ui_config")
    ]
    assert all("W015" in line and "another system" in line for line in told)
    assert all(f"'{key}'" in told[1] for key in ("metadata", "triggers", "inputs", "outputs"))
    assert "'constraints' and 'integration'" in told[2] and "'icon' and 'dashboard'" in told[3]
    write_folder(tmp_path, {"ui_config.yaml": "visual_agent: [A]"}, "Talk")
    assert "W010 Unknown key 'visual_agent'" in turnloom("check", "Talk", code=2).out


def test_a_null_is_the_same_as_no_key(tmp_path: Path) -> None:
    files = {
        **BASE,
        "orchestrator.yaml": """
            startup_mode: BackendOnly
            initial_agent: A
            orchestration_pattern: null
            human_in_the_loop: null
            """,
        "agents.yaml": """
            A: {system_message: '', prompt_sections: [{id: null, heading: Role, content: Go.}]}
            B: {system_message: Second., prompt_sections: null, auto_tool_mode: null}
            """,
        "tools.yaml": """
            tools:
            - {agent: A, file: t.py, function: f, description: null, auto_invoke: null, ui: null}
            lifecycle_tools:
            - {trigger: before_chat, agent: null, file: t.py, function: g, description: null}
            """,
        "context_variables.yaml": """
            definitions:
              done:
                type: boolean
                description: null
                source:
                  type: derived
                  default: false
                  env_var: null
                  triggers:
                  - type: agent_text
                    agent: A
                    match: {equals: NEXT, contains: null, regex: null}
                    tool: null
            agents: {A: {variables: null}, B: {variables: [done], template: null}}
            """,
        "t.py": "def f() -> str: return ''\ndef g() -> None: ...",
    }
    assert problems(write_folder(tmp_path, files, "Talk")) == []


def test_hooks_without_an_agent_are_for_all(turnloom: Call, tmp_path: Path) -> None:
    files = {
        "tools.yaml": "lifecycle_tools: [{trigger: before_agent, file: t.py, function: noted}]",
        "hooks.yaml": "[{hook_type: process_message_before_send, filename: t.py, function: loud}]",
        "t.py": """\
def noted(): return 'noted'
def loud(sender, message, recipient, silent): return message.upper()
""",
    }
    out = ran(turnloom, tmp_path, files)
    assert "A: HELLO." in out and "B: BYE." in out
    log = [json.loads(line) for line in turnloom("log", "last", "--json").out.splitlines()]
    called = [e["data"]["agent"] for e in log if e["kind"] == "lifecycle.tool_call"]
    assert [each for each in called if each] == ["A", "B"]


def test_a_condition_in_words_is_for_the_model(turnloom: Call, tmp_path: Path) -> None:
    rules = """
        - source_agent: a
          target_agent: End
          handoff_type: condition
          condition: The user wants to leave.
        - {source_agent: A, target_agent: b, handoff_type: after_work, condition_scope: null}
        - {source_agent: B, target_agent: TERMINATE, handoff_type: after_work}
        """
    script = "agents: {A: [{calls: [{tool: transfer_to_terminate_1}]}]}"
    out = ran(turnloom, tmp_path, {"handoffs.yaml": rules, "script.yaml": script})
    assert "A → terminate (string_llm rule 1)" in out
    assert "A → B (after_work rule 2)" in ran(turnloom, tmp_path, {"handoffs.yaml": rules})


@pytest.mark.parametrize(
    ("condition", "code"),
    [("${gone} is true", "W021"), ("gone is true", "W021"), ("done != true", "W022")],
)
def test_a_condition_about_variables_is_not_in_words(
    condition: str, code: str, tmp_path: Path
) -> None:
    rule = f"source_agent: A, target_agent: B, handoff_type: condition, condition: '{condition}'"
    files = {
        **BASE,
        "context_variables.yaml": """
            definitions: {done: {type: boolean, source: {type: environment, env_var: D}}}
            agents: {A: {variables: [done]}}
            """,
        "handoffs.yaml": f"- {{{rule}}}\n- {{{rule.replace('A', 'B', 1)}, condition_type: wat}}",
    }
    found = problems(write_folder(tmp_path, files, "Talk"))
    assert [each.code for each in found if each.severity == "error"] == [code, "W012", code]


def test_a_limit_of_replies_does_not_skip_the_rules_of_the_user(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {
        "orchestrator.yaml": "{initial_agent: A, human_in_the_loop: true}",
        "agents.yaml": "{A: {max_consecutive_auto_reply: 2}, B: {max_consecutive_auto_reply: 1}}",
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
            - {source_agent: A, target_agent: A, handoff_type: after_work}
            - {source_agent: B, target_agent: A, handoff_type: after_work}
            - {source_agent: user, target_agent: terminate, handoff_type: after_work}
            """,
        "script.yaml": "agents: {A: [Well., It is known.], B: [Bye.]}\nuser: [This.]",
    }
    out = ran(turnloom, tmp_path, files)
    assert "user → B (condition rule 1, before the user is asked)" in out
    # B may not reply a second time, so that the user is asked.
    assert out.count("you> ") == 1 and out.index("B: Bye.") < out.index("you> ")


def test_a_hook_after_an_unreadable_one_is_no_second_problem(tmp_path: Path) -> None:
    tools = """
        lifecycle_tools:
        - {trigger: sometimes, file: t.py, function: first}
        - {trigger: before_chat, file: t.py, function: second, after: first}
        - {trigger: before_chat, file: t.py, function: third, after: secnd}
        """
    files = {**BASE, "tools.yaml": tools, "t.py": "def first(): ...\ndef second(): ...\n"}
    files["t.py"] += "def third(): ...\n"
    found = problems(write_folder(tmp_path, files, "Talk"))
    assert [each.code for each in found] == ["W012", "W052"]


def test_too_many_values_are_refused_before_the_rest_is_read(tmp_path: Path) -> None:
    text = f"definitions: [{'1,' * 50_000} unclosed"
    found = problems(write_folder(tmp_path, {**BASE, "context_variables.yaml": text}, "Talk"))
    assert [each.code for each in found] == ["W005"]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("context_variables.yaml", "tier: {type: string, default: basic, enum: [basic, pro]}"),
        ("context_variables.json", '{"context_variables": {"x": {"type": "string", "value": ""}}}'),
        ("context_variables.json", '[{"name": "x", "type": "string", "value": "a"}]'),
        ("context_variables.json", '{"context_variables": [{"name": "x", "value": "a"}]}'),
        ("handoffs.yaml", "handoffs: [{from: A, to: B}, {from: B, to: END, condition: ''}]"),
    ],
)
def test_an_older_format_is_one_problem(
    file: str, text: str, turnloom: Call, tmp_path: Path
) -> None:
    write_folder(tmp_path, {**BASE, file: text}, "Talk")
    told = json.loads(turnloom("check", "Talk", "--json", code=2).out)
    (shape,) = [each for each in told if each["severity"] == "error"]
    assert shape["code"] == "W014" and "turnloom migrate" in shape["remedy"]
    turnloom("migrate", "Talk")
    after = json.loads(turnloom("check", "Talk", "--json").out)
    assert [each["message"] for each in after] == [
        each["message"] for each in told if each != shape
    ]


def test_older_handoffs_do_not_hide_unknown_agents(tmp_path: Path) -> None:
    rules = "handoffs:\n- {from: A, to: Nobody}\n- {from: A, to: B, condition: '${gone} == True'}"
    found = problems(write_folder(tmp_path, {**BASE, "handoffs.yaml": rules}, "Talk"))
    assert sorted(each.code for each in found) == ["W014", "W020", "W021"]


def test_other_spellings_are_accepted(tmp_path: Path) -> None:
    files = {
        "orchestrator.yaml": "{initial_agent: A, max_turns: 1, version: 1.0}",
        "agents.yaml": "A: {system_message: Hi., engine: scripted}",
        "script.yaml": "{agents: {A: [NEXT]}}",
        "tools.yaml": """
            lifecycle_tools:
              - {trigger: before_agent, agent: all, file: code.py, function: note}
            """,
        "hooks.yaml": """
            hooks:
              - hook_type: process_message_before_send
                hook_agent: All
                filename: code.py
                function: send
            """,
        "code.py": """
            def note(context_variables):
                context_variables["seen"] = True

            def send(sender, message, recipient, silent):
                return message
            """,
        "context_variables.yaml": """
            definitions:
              done:
                type: bool
                source:
                  type: derived
                  default: false
                  triggers: [{type: agent_text, agent: A, equals: NEXT}]
              seen: {type: bool, source: {type: derived, default: false, triggers: []}}
            agents: {A: {variables: [done, seen]}}
            """,
    }
    assert problems(write_folder(tmp_path, files)) == []


def test_an_older_format_does_not_hide_that_an_agent_has_no_engine(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {key: text for key, text in BASE.items() if not key.startswith("script")}
    variables = "variables: [{name: x, value: 1}]\nagents: {A: {variables: [x]}}"
    write_folder(tmp_path, {**files, "context_variables.yaml": variables}, "Talk")
    first = json.loads(turnloom("check", "Talk", "--json", code=2).out)
    assert {each["code"] for each in first} == {"W014", "W050"}
    turnloom("migrate", "Talk")
    second = json.loads(turnloom("check", "Talk", "--json", code=2).out)
    assert second == [each for each in first if each["code"] == "W050"]
