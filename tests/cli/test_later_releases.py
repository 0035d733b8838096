"""Folders of later releases of MozaiksAI: what is only spelt otherwise has its effect, what other
systems read is a warning, and transitions become handoffs."""

from pathlib import Path

from tests.cli.conftest import Call
from tests.support.folders import write_folder

CODE = """
from turnloom import use_ui_tool

def note(context_variables) -> str:
    context_variables.set("ready", True)
    return "noted"

def opened() -> None: print("opened")
def closed() -> None: print("closed")
"""
LATER = {
    "orchestrator.yaml": """
        schema_version: orchestrator.v1
        workflow_startup_mode: BackendOnly
        orchestration_pattern: ag2_network
        max_turns: 4
        initial_agent: Scout
        """,
    "agents.yaml": """
        agents:
        - {name: Scout, system_message: Look., web_search: true, sandbox_shell: false}
        - {name: Clerk, system_message: Write.}
        """,
    "tools.yaml": """
        tools:
        - {agent: Scout, file: t.py, function: note, auto_tool_call: false, bind_to_agent: true}
        lifecycle_tools:
        - {trigger: on_start, file: t.py, function: opened}
        - {trigger: on_complete, file: t.py, function: closed}
        """,
    "structured_outputs.yaml": "{schema_version: outputs.v1, models: {}, registry: {}}",
    "context_variables.yaml": """
        definitions:
          ready:
            type: boolean
            writer_ids: [tool_writeback]
            source: {type: state, default: false}
          parcel: {type: object, persisted: true, source: {type: derived, default: null}}
        """,
    "transition_graph.yaml": """
        transition_rules:
        - source_agent: Scout
          target_agent: Clerk
          transition_type: condition
          condition_type: context_equals
          condition_key: ready
          condition_value: true
        - source_agent: Clerk
          target_agent: terminate
          transition_type: condition
          condition_type: context_expression
          context_expression: ${parcel} == None
          termination_reason: workflow_complete
        - {source_agent: Scout, target_agent: terminate, transition_type: after_turn}
        - {source_agent: Clerk, target_agent: terminate, transition_type: after_turn}
        """,
    "t.py": CODE,
    "script.yaml": "agents: {Scout: [{calls: [{tool: note}]}, Seen.], Clerk: [Written.]}",
}


def codes(out: str) -> list[str]:
    """The file and code of each diagnostic."""
    return [f"{line.split(':')[0]} {line.split()[1]}" for line in out.splitlines()]


def test_a_folder_of_a_later_release_moves_in_and_runs(turnloom: Call, tmp_path: Path) -> None:
    folder = Path(write_folder(tmp_path, LATER, "Late"))
    said = [
        "Late/agents.yaml W015",
        "Late/context_variables.yaml W015",
        "Late/context_variables.yaml W014",
        "Late/context_variables.yaml W015",
        "Late/orchestrator.yaml W015",
        "Late/structured_outputs.yaml W015",
        "Late/tools.yaml W015",
        "Late/transition_graph.yaml W014",
        "Late/transition_graph.yaml W015",
    ]
    assert codes(turnloom("check", "Late", code=2).out) == said
    graph = (folder / "transition_graph.yaml").read_text("utf-8")
    turnloom("migrate", "Late")
    assert (folder / "transition_graph.yaml.bak").read_text("utf-8") == graph
    kept = [line for line in said if "W014" not in line and "transition" not in line]
    assert codes(turnloom("check", "Late").out) == sorted([*kept, "Late/handoffs.yaml W015"])
    out = turnloom("run", "Late").out
    assert "Scout: Seen." in out and "Clerk: Written." in out
    assert out.index("opened") < out.index("Written.") < out.index("closed")
    turnloom("migrate", "Late", "--undo")
    assert not (folder / "handoffs.yaml").exists()
    assert (folder / "transition_graph.yaml").read_text("utf-8") == graph


def test_faults_in_transitions_are_named_before_and_after(turnloom: Call, tmp_path: Path) -> None:
    rules = """
        transition_rules:
        - {source_agent: Scout, target_agent: Clark, transition_type: after_turn}
        - {source_agent: Clerk, target_agent: Scout, transition_type: after_trun}
        - {source_agent: Scout, target_agent: Clerk, transition_type: condition,
           condition_type: tool_called, tool_name: note}
        - {source_agent: Scout, target_agent: Clerk, transition_type: condition,
           condition_type: context_equals, condition_key: raedy, condition_value: true}
        """
    write_folder(tmp_path, {**LATER, "transition_graph.yaml": rules}, "Late")

    def faults() -> list[str]:
        found = codes(turnloom("check", "Late", code=2).out)
        return [line.split()[1] for line in found if "graph" in line or "handoffs" in line]

    first = faults()
    turnloom("migrate", "Late")
    assert sorted(first) == ["W010", "W012", "W012", "W014", "W020", "W021"]
    assert sorted(faults()) == ["W010", "W012", "W012", "W020", "W021"]
