"""One problem of an entry does not hide the others, of the entry or of its file."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.conversation.mistakes import RIGHT
from tests.support.checks import problems
from tests.support.folders import write_folder


def marked(files: dict[str, str]) -> set[tuple[str, int, str]]:
    """The problems that comments in the files expect: `# W010 W040`."""
    return {
        (f"Flow/{file}", number, code)
        for file, text in files.items()
        for number, line in enumerate(text.split("\n"), 1)
        for code in re.findall(r"W\d\d\d", line.partition("#")[2])
    }


ENTRIES = {
    "an agent without a name, which is one of several that are missing": {
        "agents.yaml": """
            agents:
            - {name: A, system_message: x}
            - {system_message: y}           # W011
            """,
        "handoffs.yaml": """
            - {source_agent: A, target_agent: B, handoff_type: after_work}          # W020
            - {source_agent: C, target_agent: terminate, handoff_type: after_work}  # W020
            """,
        "context_variables.yaml": """
            definitions:
            - {type: boolean, source: {type: derived}}      # W011
            agents:
              A: {variables: [x, y]}                        # W021
            """,
    },
    "a handoff of an older guide": {
        "handoffs.yaml": """
            handoffs:
            - {from: A, to: B}                         # W014
            - {from: B, to: terminate, trigger: done}  # W010
            """,
    },
    "a tool": {
        "tools.yaml": """
            tools:
            - agent: Nobody      # W020
              file: gone.py      # W040
              function: f
              colour: red        # W010
            - agent: Nobody      # W020
              file: 5            # W012
              function: g
            - agent: A
              file: a.py
              function: missing  # W043
              timeout_s: soon    # W012
            """,
        "a.py": "def f() -> None: ...\n",
    },
    "a trigger": {
        "context_variables.yaml": """
            definitions:
              done:
                type: boolean
                source:
                  type: derived
                  triggers:
                  - type: agent_text
                    agent: Nobody           # W020
                    match: {equals: x}
                    colour: red             # W010
                  - type: agent_text
                    agent: Noone            # W020
                    match: 5                # W012
                  - type: tool_response
                    tool: nothing           # W045
                    staus: any              # W010
                  - type: agent_text
                    agent: A
                    match:
                      regex: (              # W025
                  - type: agent_text
                    agent: A
                    match: {equals: x}
                    value: maybe            # W024
            """,
    },
    "an older source": {
        "context_variables.yaml": """
            definitions:
            - name: done
              type: boolean
              source:
                type: state                 # W014
                defualt: false              # W010
                triggers:
                - type: agent_text          # W011
                  agnt: A                   # W010
                  match: {equals: x}
                - {type: wat, agent: A}     # W012
                - {type: agent_text, agent: A, regex: (}      # W025
                - {type: agent_text, agent: A}                # W011
                - {type: ui_response, tool: f, ui_hiden: 1}   # W010 W011 W045
                transitions: []
                persist: true
            - name: stored
              source: {type: data_reference, fields: [x]}     # W011
            agents: [{agent_name: A, variables: [done, stored]}]
            """,
    },
    "a variable": {
        "context_variables.yaml": """
            definitions:
              done:
                type: boolean
                description: 5              # W012
                source:
                  type: derived
                  default: maybe            # W024
            """,
    },
    "a handoff": {
        "handoffs.yaml": """
            - {source_agent: A, target_agent: B, handoff_type: after_work}
            - source_agent: A               # W027
              target_agent: B
              handoff_type: after_work
              colour: red                   # W010
            - source_agent: A
              target_agent: Nobody          # W020
              handoff_type: sometimes       # W012
              condition: ${gone} == True    # W021
            """,
    },
    "an exposure": {
        "context_variables.yaml": """
            definitions:
              done: {type: boolean, source: {type: environment, env_var: D}}
            agents:
              Nobody:                       # W020
                variables: [done, gone]     # W021
                colour: red                 # W010
              A:
                variables: [lost]           # W021
                header: 5                   # W012
            """,
    },
    "a hook": {
        "tools.yaml": """
            lifecycle_tools:
            - trigger: before_agent
              agent: Nobody                 # W020
              file: gone.py                 # W040
              function: f
              colour: red                   # W010
            - trigger: sometimes            # W012
              agent: Noone                  # W020
              file: a.py
              function: missing             # W043
            """,
        "hooks.yaml": """
            - hook_type: sometimes          # W012
              hook_agent: Nobody            # W020
              filename: gone.py             # W040
              function: f
            """,
        "a.py": "def f() -> None: ...\n",
    },
    "an agent": {
        "agents.yaml": """
            A: {tools: [gone], colour: red}         # W010 W045
            B: {tools: [gone], model: 5}            # W012 W045
            C: {system_message: I am never asked.}  # W030
            """,
        "orchestrator.yaml": "initial_agent: A\nhuman_in_the_loop: true",
    },
    "the start": {
        "orchestrator.yaml": """
            initial_agent: Nobody    # W020
            max_turns: many          # W012
            colour: red              # W010
            """,
    },
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_problem_of_an_entry_is_reported_at_once(entry: str, tmp_path: Path) -> None:
    written = {file: dedent(text).strip("\n") for file, text in ENTRIES[entry].items()}
    files = {**RIGHT, **written}
    found = problems(write_folder(tmp_path, files))
    told = {(each.file, each.line, each.code) for each in found if each.code != "W050"}
    assert told == marked(written)


def test_a_key_of_another_system_is_one_warning_of_its_file_with_the_lines(tmp_path: Path) -> None:
    rows = [
        f"  v{number}: {{type: string, writer_ids: [x], source: {{type: static, value: a}}}}"
        for number in range(3)
    ]
    other = "  w: {type: string, routing: x, source: {type: static, value: a}}"
    text = "\n".join(["definitions:", *rows, other, "agents: {A: {variables: [v0, v1, v2, w]}}"])
    found = problems(write_folder(tmp_path, {**RIGHT, "context_variables.yaml": text}))
    told = [each for each in found if each.code == "W015"]
    assert [each.line for each in told] == [2, 5]
    assert "'writer_ids'" in told[0].message and "3, 4" in told[0].message
    assert {each.severity for each in told} == {"warning"}


def test_an_agent_without_a_way_to_it_is_found_in_a_folder_with_errors(tmp_path: Path) -> None:
    files = {
        **RIGHT,
        "agents.yaml": "A: {}\nB: {}\nC: {}",
        "tools.yaml": "tools: [{agent: Nobody, file: a.py, function: f}]",
    }
    found = {each.code for each in problems(write_folder(tmp_path, files))}
    assert {"W020", "W030", "W040"} <= found


def test_rules_that_are_judged_at_other_moments_do_not_cover_each_other(tmp_path: Path) -> None:
    rules = """\
- {source_agent: A, target_agent: B, handoff_type: condition, condition: done is true}
- source_agent: A
  target_agent: B
  handoff_type: condition
  condition_scope: pre
  condition: done is true
- {source_agent: B, target_agent: terminate, handoff_type: after_work}
"""
    found = problems(write_folder(tmp_path, {**RIGHT, "handoffs.yaml": rules}))
    assert "W031" not in {each.code for each in found}
