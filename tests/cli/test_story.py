"""What `turnloom run` tells besides the conversation, and which workflow of several it runs."""

from pathlib import Path

from tests.cli.conftest import CHAT, INTERVIEW, Call
from tests.support.folders import write_folder
from tests.support.servers import free_port

LONG = "x" * 300

# Tools, hooks, outputs and writes, some of which fail.
BUSY = {
    "orchestrator.yaml": "{initial_agent: Clerk}",
    "agents.yaml": """
        Clerk: {system_message: Work., engine: scripted}
        Judge: {system_message: Judge., engine: scripted, structured_outputs_required: true}
        Scribe: {system_message: Write., engine: scripted}
        """,
    "structured_outputs.yaml": """
        models:
          Verdict:
            type: model
            fields: {verdict: {type: str}, reasons: {type: list, items: str}}
        registry: {Judge: Verdict}
        """,
    "context_variables.yaml": """
        definitions:
          tier: {type: string, source: {type: static, value: beta}}
          seen: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_text, agent: Scribe, match: {equals: SEEN}}]}}
        """,
    "tools.yaml": """
        tools:
          - {agent: Clerk, file: work.py, function: add}
          - {agent: Clerk, file: work.py, function: fail}
        lifecycle_tools:
          - {trigger: before_chat, agent: null, file: work.py, function: note}
          - {trigger: before_chat, agent: null, file: work.py, function: overstep}
          - {trigger: before_agent, agent: Judge, file: work.py, function: stumble}
          - {trigger: after_chat, agent: null, file: work.py, function: note,
             when: seen == False}
        """,
    "work.py": """
        def add(a: int, b: int = 2) -> dict:
            return {"sum": a + b}

        def fail(why: str):
            raise ValueError(why)

        def note(context_variables):
            context_variables["seen"] = True

        def overstep(context_variables):
            context_variables["tier"] = "gold"

        def stumble():
            raise RuntimeError("no")
        """,
    "handoffs.yaml": """
        - {source_agent: Clerk, target_agent: Judge, handoff_type: condition,
           condition_type: string_llm, condition: When it is done.}
        - {source_agent: Judge, target_agent: Scribe, handoff_type: after_work}
        - {source_agent: Scribe, target_agent: terminate, handoff_type: after_work}
        """,
    "script.yaml": f"""
        agents:
          Clerk:
            - calls: [{{tool: add, arguments: {{a: 3}}}}]
            - calls:
              - {{tool: add, arguments: {{a: 4}}}}
              - {{tool: fail, arguments: {{why: {LONG}}}}}
            - calls: [{{tool: transfer_to_Judge_1}}]
          Judge: ['{{"verdict": 1}}', {{output: {{verdict: guilty, reasons: [{LONG}]}}}}]
          Scribe: [Written.]
        """,
}
RANDOM = {
    "orchestrator.yaml": "{orchestration_pattern: RandomPattern, initial_agent: A, max_turns: 2}",
    "agents.yaml": "".join(f"{name}: {{system_message: x}}\n" for name in "ABC"),
    "script.yaml": "agents: {A: [I am A.], B: [Me.], C: [Me.]}",
}


def test_what_happens_is_told_briefly(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, BUSY, "Busy")
    told = turnloom("run", "Busy").out
    for line in (
        "  seen: false → true (hook:note)",
        "  hook note (before_chat) ran",
        '  Clerk called add(a=3) → {"sum":5}',
        "  Clerk handed off to Judge",
        "  Clerk → Judge (string_llm rule 1)",
        "  hook stumble (before_agent of Judge) failed: RuntimeError: no",
        "Scribe: Written.",
    ):
        assert f"{line}\n" in told
    # Of two calls side by side, the one that ends first ends its line.
    assert "  Clerk called add(a=4)" in told and '{"sum":6}\n' in told
    assert "\n  tier was not written by hook:overstep: " in told
    assert "\n  hook overstep (before_chat) failed: WriteRefused: " in told
    assert "\n  hook note (after_chat) was skipped: " in told
    assert '  Clerk called fail(why="xxx' in told and "failed: ValueError: xxx" in told
    assert "  an answer of Judge is not a valid Verdict: `verdict`: " in told
    reasons = f'    "reasons": [\n      "{LONG}"\n    ]\n'
    output = f'Judge: {{\n    "verdict": "guilty",\n{reasons}  }}\n'
    assert output in told
    assert told.count(LONG) == 1  # the output; elsewhere it is cut
    quiet = turnloom("run", "Busy", "--quiet").out
    assert quiet == f"{output}Scribe: Written.\n"


def test_what_is_not_for_the_screen_is_not_shown(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, BUSY | {"ui_config.yaml": "visual_agents: [Clerk]"}, "Busy")
    told = turnloom("run", "Busy").out
    assert "\n  Judge gave Verdict\n" in told and "\n  Scribe handed off\n" in told
    assert "guilty" not in told and "Written." not in told
    assert turnloom("run", "Busy", "--quiet").out == ""


def test_whose_rule_ended_it_is_said(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, BUSY, "Busy")
    assert "finished: Scribe, after_work rule 3." in turnloom("run", "Busy").out
    assert "finished: PlanArchitect, condition rule 3." in turnloom("run", INTERVIEW).out


def test_chance_is_told(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path, RANDOM, "Random")
    told = turnloom("run", "Random").out
    assert "\n  chance drew " in told and " of B, C\n" in told


def test_of_several_workflows_the_entry_point_is_run(turnloom: Call, tmp_path: Path) -> None:
    flows = tmp_path / "flows"
    write_folder(flows, CHAT, "Chat")
    write_folder(flows, {"notes.txt": "no workflow"}, "other")
    done = turnloom("run", "flows", code=2)
    assert "`entry_point: true`" in done.err and "flows/Chat" in done.err
    setup = CHAT["orchestrator.yaml"].replace("{", "orchestrator: {entry_point: true, ")
    write_folder(flows, CHAT | {"orchestrator.yaml": setup}, "Entry")
    assert "Critic: It rhymes." in turnloom("run", "flows", "--quiet").out
    assert "Entry" in turnloom("runs").out
    write_folder(flows, CHAT | {"orchestrator.yaml": setup}, "Second")
    done = turnloom("run", "flows", code=2)
    assert "flows/Entry, flows/Second" in done.err
    broken = CHAT["handoffs.yaml"].replace("target_agent: Critic", "target_agent: Critik")
    write_folder(flows, {"handoffs.yaml": broken}, "Entry")
    (flows / "Second" / "orchestrator.yaml").write_text(CHAT["orchestrator.yaml"])
    assert "flows/Entry/handoffs.yaml:4: W020" in turnloom("run", "flows", code=2).err


def test_what_production_leaves_out_is_said_once_at_the_start(turnloom: Call) -> None:
    told = turnloom("run", INTERVIEW, ENVIRONMENT="production").out.splitlines()
    said = [number for number, line in enumerate(told) if "ENVIRONMENT=production" in line]
    assert len(said) == 1 and said[0] < 3 and "context_aware" in told[said[0]]
    assert "ENVIRONMENT" not in turnloom("run", INTERVIEW).out


def test_a_store_of_documents_that_does_not_answer_is_noted_once(
    turnloom: Call, tmp_path: Path
) -> None:
    stored = "{type: database, collection: users, search_by: user_id, field: x, default: free}"
    files = {
        "agents.yaml": "A: {}",
        "script.yaml": "agents: {A: [Hello.]}",
        "context_variables.yaml": f"""
            definitions:
              plan: {{type: string, source: {stored}}}
              tier: {{type: string, source: {stored}}}
            """,
    }
    write_folder(tmp_path, files, "Stored")
    place = f"127.0.0.1:{free_port()}"
    down = {"TURNLOOM_DOCUMENTS": f"mongodb://{place}/app", "TURNLOOM_DOCUMENTS_TIMEOUT": "0.2"}
    told = turnloom("run", "Stored", **down).out
    (noted,) = [line for line in told.splitlines() if place in line]
    assert "plan, tier" in noted
    assert "plan, tier" not in turnloom("run", "Stored").out
