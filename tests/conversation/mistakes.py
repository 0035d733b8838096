"""Workflow folders with one mistake each, from `mistakes.txt`.

A case is a head `=== CODE words that are said`, and then files: `--- file` stands in place of the
right one, `+++ file` after its end. The line that is to be named ends with the mark `# <--`.
A line that begins with `##` is a heading.
"""

import re
from pathlib import Path
from typing import NamedTuple

RIGHT = {
    "orchestrator.yaml": "initial_agent: A\nhuman_in_the_loop: true\n",
    "agents.yaml": "A: {system_message: You are A.}\nB: {system_message: You are B.}\n",
    "context_variables.yaml": """\
agents:
  A: {variables: [done, tier, user_id, context_aware]}
  B: {variables: [stage, flag]}
definitions:
  done:
    type: boolean
    source:
      type: derived
      default: false
      triggers:
        - {type: agent_text, agent: A, match: {equals: DONE}}
  stage: {type: string, enum: [one, two], source: {type: derived, default: one}}
  flag: {type: boolean, source: {type: environment, env_var: FLAG, default: false}}
  tier: {source: {type: static, value: beta}}
""",
    "handoffs.yaml": """\
- {source_agent: A, target_agent: B, handoff_type: condition, condition: done is true}
- {source_agent: A, target_agent: user, handoff_type: after_work}
- {source_agent: B, target_agent: terminate, handoff_type: after_work}
""",
}
MARK = "# <--"


class Mistake(NamedTuple):
    """A folder with one mistake: the code and the words that are said, and the place."""

    code: str
    says: str
    file: str
    line: int
    files: dict[str, str]


def named(says: str) -> list[str]:
    """The values that a sentence names, in quotes; its words may be others."""
    return re.findall(r"'[^' ]+'|`[^`]+`", says)


def mistakes() -> list[Mistake]:
    """Every case."""
    text = Path(__file__).with_name("mistakes.txt").read_text("utf-8")
    return [_mistake(case) for case in text.split("\n=== ")[1:]]


def _mistake(case: str) -> Mistake:
    head, *body = case.split("\n")
    files, current = dict(RIGHT), ""
    for line in body:
        if line.startswith("--- "):
            current = line.removeprefix("--- ")
            files[current] = ""
        elif line.startswith("+++ "):
            current = line.removeprefix("+++ ")
        elif line and not line.startswith("## "):
            files[current] += f"{line}\n"
    ((file, text),) = [each for each in files.items() if MARK in each[1]]
    place = [MARK in line for line in text.split("\n")].index(True) + 1
    code, _, says = head.partition(" ")
    return Mistake(code, says, file, place, files)
