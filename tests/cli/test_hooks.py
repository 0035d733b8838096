"""Hooks of a command that would end more than themselves."""

from pathlib import Path

from tests.cli.conftest import Call
from tests.support.folders import write_folder

FILES = {
    "orchestrator.yaml": "{startup_mode: BackendOnly, initial_agent: A}",
    "agents.yaml": "A: {system_message: First.}",
    "handoffs.yaml": "[{source_agent: A, target_agent: terminate, handoff_type: after_work}]",
    "script.yaml": "agents: {A: [Hello.]}",
    "tools.yaml": """
        lifecycle_tools:
          - {trigger: before_chat, agent: null, file: h.py, function: in_loop}
          - {trigger: before_chat, agent: null, file: h.py, function: in_thread}
        """,
    "h.py": """
async def in_loop(): raise KeyboardInterrupt("one")
def in_thread(): raise KeyboardInterrupt("two")
""",
}


def test_a_hook_that_raises_an_interrupt_fails_by_itself(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, FILES, "Talk")
    lines = turnloom("run", "Talk").out.splitlines()
    assert "A: Hello." in lines
    failed = [line for line in lines if "KeyboardInterrupt" in line]
    assert len(failed) == 2
