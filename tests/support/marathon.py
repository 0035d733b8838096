"""A run of as many turns as wanted, for pages that must stay quick.

By hand: `python -m tests.support.marathon FOLDER TURNS` writes the workflow; then
`turnloom run FOLDER/Marathon --quiet`.
"""

import sys
from pathlib import Path

FILES = {
    "orchestrator.yaml": """\
workflow_name: Marathon
startup_mode: BackendOnly
initial_agent: Runner
initial_message: Run, and say where you are.
max_turns: {turns}
""",
    "agents.yaml": """\
agents:
  Runner:
    system_message: Say at which stone you are, and what you see.
    engine: {{ type: functions, file: marathon.py, function: run }}
  Coach:
    system_message: Cheer the runner on. Mind the weather.
    engine: {{ type: functions, file: marathon.py, function: cheer }}
""",
    "handoffs.yaml": """\
handoff_rules:
  - source_agent: Runner
    target_agent: terminate
    handoff_type: condition
    condition_type: expression
    condition: ${{arrived}} == True
  - {{ source_agent: Runner, target_agent: Coach, handoff_type: after_work }}
  - {{ source_agent: Coach, target_agent: Runner, handoff_type: after_work }}
""",
    "context_variables.yaml": """\
context_variables:
  definitions:
    weather:
      type: string
      description: What the sky does.
      source: {{ type: static, value: rain in the afternoon }}
    tired:
      type: boolean
      description: Whether the runner is tired.
      source:
        type: derived
        default: false
        triggers:
          - {{ type: agent_text, agent: Runner, match: {{ contains: tired }} }}
    arrived:
      type: boolean
      source:
        type: derived
        default: false
        triggers:
          - {{ type: agent_text, agent: Runner, match: {{ contains: "the finish" }} }}
  agents:
    Runner: {{ variables: [weather] }}
    Coach: {{ variables: [weather, tired] }}
""",
    "marathon.py": '''\
"""A runner and a coach."""

from turnloom import Task

SIGHTS = "a mill, a field of rape, two herons, a closed inn, a bridge with wet stones".split(", ")


def run(task: Task) -> str:
    stone = (task.turn + 1) // 2
    if task.turn >= {turns}:
        return "I am at the finish."
    sight = SIGHTS[stone % len(SIGHTS)]
    tired = " I am tired." if stone == {turns} // 3 else ""
    return f"Stone {{stone}}: I see {{sight}}, and the road goes on.{{tired}}"


def cheer(task: Task) -> str:
    return f"Well done, that is turn {{task.turn}}. Keep your pace, and drink."
''',
}


def marathon(folder: Path, turns: int) -> Path:
    """Write a workflow whose run takes about this many turns."""
    home = folder / "Marathon"
    home.mkdir(parents=True)
    for name, text in FILES.items():
        (home / name).write_text(text.format(turns=turns), encoding="utf-8")
    return home


if __name__ == "__main__":
    print(marathon(Path(sys.argv[1]), int(sys.argv[2])))
