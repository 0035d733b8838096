"""`turnloom run` and what can be done with a run afterwards, without a person."""

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from tests.cli.conftest import CHAT, INTERVIEW, PROGRAM, Call
from tests.support.folders import write_folder
from turnloom import Event, Loom


def run_id(text: str) -> str:
    found = re.search(r"Run (\w{26}) ", text)
    assert found, text
    return found[1]


def commands(text: str) -> list[str]:
    """The command lines that a text names."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith(PROGRAM)]


def words(command: str) -> list[str]:
    """What stands behind the program, as a shell reads it."""
    return shlex.split(command)[1:]


def test_a_scripted_user_answers_where_nobody_sits(turnloom: Call) -> None:
    done = turnloom("run", INTERVIEW)
    lines = done.out.splitlines()
    assert "InterviewAgent: Hello! What work would you like to automate?" in lines
    assert "you> Our weekly sales report." in lines
    assert "  InterviewAgent → PlanArchitect (condition rule 1)" in lines
    assert "  interview_complete: false → true (trigger:interview_complete[0])" in lines
    saw = "saw 5 segments with product_tier, context_aware, 1 message, 88 tokens, 0 withheld"
    assert f"  turn 1: InterviewAgent {saw}" in lines
    assert "NEXT" not in done.out and "DONE" not in done.out
    assert not done.err and "\x1b" not in done.out
    turn, whole = commands(done.out)
    run = run_id(done.out)
    assert turn == f"{PROGRAM} explain {run} --turn 7" and f"Run {run} finished" in done.out
    explained = turnloom(shell=turn)
    assert "Turn 7 of PlanArchitect" in explained.out and "digests verified" in explained.out
    assert "plan_accepted" in turnloom(*words(whole), "--variable", "plan_accepted").out


def test_without_a_standard_input_it_works_as_well(turnloom: Call, chat: str) -> None:
    done = turnloom(shell=f"exec {shlex.quote(PROGRAM)} run {chat} --store kept/chat.db <&-")
    assert "Critic: It rhymes." in done.out
    (_, whole) = commands(done.out)
    assert whole.endswith("--store kept/chat.db") and "finished" in turnloom(*words(whole)).out
    turnloom(shell=f"exec {shlex.quote(PROGRAM)} run {chat} >&-")


async def stored(path: Path) -> tuple[Sequence[Event], str]:
    async with Loom(store=str(path)) as app:
        (summary,) = await app.runs(app_id="acme")
        return await app.history.events(summary.run, app_id="acme"), summary.run


def test_json_is_the_events_as_stored_and_nothing_else(
    turnloom: Call, chat: str, tmp_path: Path
) -> None:
    done = turnloom("run", chat, "--json", "--user", "ada", "--app-id", "acme")
    told = [json.loads(line) for line in done.out.splitlines()]
    events, run = anyio.run(stored, tmp_path / ".turnloom" / "turnloom.db")
    assert told == [json.loads(msgspec.json.encode(event)) for event in events]
    assert "finished" in done.err and commands(done.err)
    (listed,) = json.loads(turnloom("runs", "--json", "--app-id", "acme").out)
    assert (listed["run"], listed["status"]) == (run, "finished")
    assert (listed["user"], listed["tenant"], listed["events"]) == ("ada", "acme", len(told))


def test_quiet_is_what_agents_say_and_what_is_asked(turnloom: Call, chat: str) -> None:
    done = turnloom("run", chat, "--quiet")
    assert done.out.splitlines() == [
        "Poet: Roses are red.",
        "you> Go on.",
        "Poet: Violets are blue.",
        "you> Enough.",
        "Critic: It rhymes.",
    ]
    assert not done.err
    both = turnloom("run", chat, "--quiet", "--json", code=2).err
    assert "--quiet" in both and "--json" in both


def test_a_script_that_ends_early_leaves_the_run_waiting(turnloom: Call, tmp_path: Path) -> None:
    script = CHAT["script.yaml"].replace("[Go on., Enough.]", "[Go on.]")
    write_folder(tmp_path, CHAT | {"script.yaml": script}, "Chat")
    done = turnloom("run", "Chat")
    run = run_id(done.out)
    answer, resume, explain, _ = commands(done.out)
    assert words(answer)[:2] == ["answer", run] and words(resume)[:2] == ["resume", run]
    assert "--turn 2" in explain
    again = turnloom(*words(resume))  # the pinned script has no second answer either
    assert "Roses are red." in again.out and commands(again.out)[:2] == [answer, resume]
    delivered = turnloom(*words(answer))
    assert commands(delivered.out) == [resume]
    finished = turnloom(shell=resume)
    assert "you> your answer" not in finished.out  # it was told before; the recap has it
    assert "  user: your answer" in finished.out and "Critic: It rhymes." in finished.out
    assert "finished" in finished.out
    assert "finished" in turnloom(*words(resume)).err
    assert run in turnloom(*words(answer)).out  # it was answered so before
    assert run in turnloom("answer", run, "Something else.", code=2).err
    repeated = turnloom("answer", run, "x", "--question", "nonsense", code=2)
    assert "'nonsense'" in repeated.err


def test_a_resumed_run_keeps_its_script_and_says_that_code_changed(
    turnloom: Call, tmp_path: Path
) -> None:
    copy = tmp_path / "Interview"
    shutil.copytree(INTERVIEW, copy)
    script = copy / "script.yaml"
    functions, _, _ = script.read_text().partition("user:")
    script.write_text(f"{functions}user: [Reports.]")
    assert words(commands(turnloom("run", "Interview").out)[0])[0] == "answer"
    script.write_text(f"{functions}user: [Reports., Dana., At nine., Accepted.]")
    (copy / "interview.py").write_text((copy / "interview.py").read_text() + "\n# more\n")
    resumed = turnloom("resume", "last")
    assert "interview.py" in resumed.err
    assert words(commands(resumed.out)[0])[0] == "answer" and "Dana" not in resumed.out


def test_only_lines_that_are_missing_fail_a_run(turnloom: Call, tmp_path: Path) -> None:
    script = CHAT["script.yaml"].replace('["It rhymes."]', '["It rhymes.", "More?", "And?"]')
    write_folder(tmp_path, CHAT | {"script.yaml": script}, "Chat")
    done = turnloom("run", "Chat")
    assert "Critic: 2" in done.err
    script = CHAT["script.yaml"].replace('["It rhymes."]', "[]")
    write_folder(tmp_path, CHAT | {"script.yaml": script}, "Chat")
    done = turnloom("run", "Chat", code=1)
    assert "turn 4 of Critic" in done.err
    assert "failed" in turnloom("resume", "last", code=1).err


def test_a_folder_that_does_not_pass_its_check_does_not_run(turnloom: Call, tmp_path: Path) -> None:
    broken = CHAT["handoffs.yaml"].replace("target_agent: Critic", "target_agent: Critik")
    write_folder(tmp_path / "flows", CHAT | {"handoffs.yaml": broken}, "Chat")
    done = turnloom("run", "flows/Chat", code=2)
    assert "flows/Chat/handoffs.yaml:4: W020" in done.err and "'Critic'" in done.err
    assert not done.out and json.loads(turnloom("runs", "--json").out) == []
    assert "nowhere" in turnloom("run", "nowhere", code=2).err


def test_a_run_is_cancelled_also_when_nobody_drives_it(turnloom: Call, tmp_path: Path) -> None:
    write_folder(
        tmp_path,
        {name: CHAT[name] for name in CHAT if name != "script.yaml"}
        | {"script.yaml": "agents: {Poet: [Roses are red.], Critic: [x]}"},
        "Chat",
    )
    run = run_id(turnloom("run", "Chat", "--quiet").err)
    assert run in turnloom("cancel", run, "--reason", "too late").out
    assert "cancelled" in turnloom("cancel", run).out
    assert "too late" in turnloom("explain", run).out
    assert "cancelled" in turnloom("resume", run, code=1).err


def test_check_and_run_agree_about_agents_that_a_script_leaves_out(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {
        "agents.yaml": "A: {}\nB: {}",
        "handoffs.yaml": """
            - source_agent: A
              target_agent: B
              handoff_type: condition
              condition: ${go} == True
            - {source_agent: A, target_agent: terminate, handoff_type: after_work}
            - {source_agent: B, target_agent: terminate, handoff_type: after_work}
            """,
        "context_variables.yaml": """
            definitions:
              go:
                type: boolean
                source:
                  type: derived
                  default: false
                  triggers: [{type: agent_text, agent: A, match: {equals: GO}}]
            """,
        "script.yaml": "agents: {A: [Hello.]}",
    }
    write_folder(tmp_path, files, "Left")
    assert turnloom("check", "Left").code == 0
    assert "A: Hello." in turnloom("run", "Left").out
    script = "agents: {A: [Hello.], B: [Never said.]}"
    write_folder(tmp_path, files | {"script.yaml": script}, "Unreached")
    assert turnloom("check", "Unreached").code == 0
    done = turnloom("run", "Unreached")
    assert "finished" in done.out and "(B: 1)" in done.err


def test_a_window_that_is_nearly_full_is_told(turnloom: Call, chat: str) -> None:
    done = turnloom("run", chat, TURNLOOM_WINDOW="13", code=1)
    assert "  Poet uses 12 of the 13 tokens in its model's context window" in done.out
    assert "ContextTooLarge" in done.err and "agents.Poet" in done.err
