"""`turnloom send` from a terminal."""

import json
from pathlib import Path

from tests.cli.conftest import Call
from tests.support.folders import write_folder

TALK = {
    "orchestrator.yaml": "{initial_agent: Ann, initial_message: Begin.}",
    "agents.yaml": "Ann: {system_message: Greet., engine: scripted}",
    "handoffs.yaml": (
        "handoff_rules: [{source_agent: Ann, target_agent: terminate, handoff_type: after_work}]"
    ),
    "script.json": json.dumps({"agents": {"Ann": ["Hello.", "Again?", "Well."]}}),
}


def test_a_message_continues_a_conversation(turnloom: Call, tmp_path: Path) -> None:
    turnloom("run", write_folder(tmp_path, TALK, "Talk"))
    run = json.loads(turnloom("runs", "--json").out)[0]["run"]
    done = turnloom("send", run, "And now?", "--id", "m")
    assert "Again?" in done.out and f"{run}.2" in done.out + done.err
    assert "m" in turnloom("send", run, "And now?", "--id", "m").out
    assert "Well." in turnloom("send", run, "More", "--if-busy", "interrupt", "--quiet").out
    listed = json.loads(turnloom("runs", "--json").out)
    assert [(each["run"], each["continues"]) for each in listed] == [
        (f"{run}.3", f"{run}.2"),
        (f"{run}.2", run),
        (run, ""),
    ]
    assert run in turnloom("runs").out and "continued" in turnloom("explain", f"{run}.3").out
    assert turnloom("send", run, "x", "--if-busy", "wait", code=2).err
    assert turnloom("send", run, "x", "--user", "eve", code=1).err
    turnloom("store", "verify")
