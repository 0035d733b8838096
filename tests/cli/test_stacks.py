"""Where the code of a workflow failed is on record, and shown to the person who has to mend it."""

from pathlib import Path

from tests.cli.conftest import Call
from tests.support.folders import write_folder

AGENTS = "Clerk: {engine: {type: functions, file: clerk.py, function: answer}}"
CLERK = """
    def answer(task):
        return counted(task.turn)


    def counted(number):
        return 1 // (number - number)
    """
TOOLS = {
    "agents.yaml": "Clerk: {}",
    "tools.yaml": "tools: [{agent: Clerk, file: clerk.py, function: count}]",
    "script.yaml": "agents: {Clerk: [{calls: [{tool: count}]}, Done.]}",
    "context_variables.yaml": """
        definitions:
          pin: {type: string, secret: true, source: {type: environment, env_var: PIN}}
        """,
    "clerk.py": """
        import json


        def count():
            return read("{hunter2secret")


        def read(text):
            return json.loads(text)  # hunter2secret
        """,
}
FLOW = """
from pydantic import BaseModel
from turnloom import Flow


class State(BaseModel, frozen=True):
    done: bool = False


def work(state):
    raise LookupError("no card")


flow = Flow("Cards", State).start_with(work)
"""


def test_a_failed_run_says_where_the_code_of_its_agent_failed(
    turnloom: Call, tmp_path: Path
) -> None:
    write_folder(tmp_path, {"agents.yaml": AGENTS, "clerk.py": CLERK}, "Office")
    done = turnloom("run", "Office", code=1)
    assert "clerk.py:3 in answer" in done.err and "clerk.py:7 in counted" in done.err
    assert "turnloom/runtime" not in done.err
    shown = turnloom("explain", "last", "--turn", "1").out
    assert "clerk.py:7 in counted: return 1 // (number - number)" in shown
    assert "turnloom/runtime" not in shown


def test_a_failed_tool_has_its_frames_on_record_without_secrets(
    turnloom: Call, tmp_path: Path
) -> None:
    write_folder(tmp_path, TOOLS, "Office")
    out = turnloom("run", "Office", "--json", PIN="hunter2secret").out
    assert "clerk.py:10 in read" in out and "decoder.py" in out and "hunter2secret" not in out
    shown = turnloom("explain", "last", "--turn", "1").out
    assert "clerk.py:10 in read: return json.loads(text)" in shown and "hunter2" not in shown


def test_a_failed_step_says_where(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "cards.py").write_text(FLOW)
    assert "cards.py" in turnloom("run", "cards.py", code=1).err.split("raised in")[1]
