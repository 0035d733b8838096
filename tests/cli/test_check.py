"""`turnloom check`: everything that is wrong, at once, where it is wrong."""

import json
import re
from importlib import metadata
from pathlib import Path

from tests.cli.conftest import CHAT, INTERVIEW, Call
from tests.support.folders import write_folder

MISTAKES = {
    "orchestrator.yaml": """\
        startup_mode: AgentDrivn
        max_turns: 0
        human_in_the_lop: true
        """,
    "agents.yaml": """\
        agents:
          Poet: {system_mesage: Rhyme.}
          user: {system_message: Judge.}
        """,
    "context_variables.yaml": """\
        definitions:
          limit: {type: integer, source: {type: static, value: many}}
          done:
            type: boolean
            source:
              type: derived
              triggers: [{type: agent_text, agent: Poett, match: {regex: "("}}]
        agents: {Poet: {variables: [dune]}}
        """,
    "handoffs.yaml": """\
        handoff_rules:
          - source_agent: Poet
            target_agent: Critic
            handoff_type: condition
            condition: ${done} != True
          - {source_agent: Poet, target_agent: terminate, handoff_type: condition}
        """,
}
PLANTED = {
    ("orchestrator.yaml", 1, "W012", "AgentDrivn"),
    ("orchestrator.yaml", 2, "W012", "max_turns"),
    ("orchestrator.yaml", 3, "W010", "human_in_the_loop"),
    ("agents.yaml", 2, "W010", "system_message"),
    ("agents.yaml", 3, "W026", "'user'"),
    ("context_variables.yaml", 2, "W024", "'many'"),
    ("context_variables.yaml", 7, "W020", "'Poet'"),
    ("context_variables.yaml", 7, "W025", "'('"),
    ("context_variables.yaml", 8, "W021", "'done'"),
    ("handoffs.yaml", 3, "W020", "'Critic'"),
    ("handoffs.yaml", 5, "W022", "`"),
    ("handoffs.yaml", 6, "W028", "condition"),
}


def test_twelve_mistakes_are_found_in_one_go(turnloom: Call, tmp_path: Path) -> None:
    write_folder(tmp_path / "flows", MISTAKES, "Bad")
    done = turnloom("check", "flows/Bad", INTERVIEW, code=2)
    found = [
        re.match(r"flows/Bad/([\w.]+):(\d+): (W\d+) (.+)", line) for line in done.out.splitlines()
    ]
    assert all(found), done.out
    lines = [(each[1], int(each[2]), each[3], each[4]) for each in found if each]
    for file, line, code, says in PLANTED:
        assert any(each[:3] == (file, line, code) and says in each[3] for each in lines), (
            file,
            line,
            code,
            says,
            done.out,
        )
    assert not done.err
    problems = json.loads(turnloom("check", "--format", "json", "flows/Bad", code=2).out)
    assert len(problems) == len(lines)
    assert {"file", "line", "code", "message", "remedy", "severity"} == set(problems[0])
    assert {(each["file"], each["line"]) for each in problems} == {
        (f"flows/Bad/{file}", line) for file, line, *_ in lines
    }


def test_what_is_right_is_silent(turnloom: Call, chat: str) -> None:
    done = turnloom("check", chat, INTERVIEW)
    assert not done.out and not done.err
    assert json.loads(turnloom("check", chat, "--format", "json").out) == []
    assert json.loads(turnloom("check", chat, "--json").out) == []
    assert not turnloom("check", ".", folder=chat).out


def test_paths_lead_from_here_to_the_file(turnloom: Call, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"agents.yaml": "agents: {Poet: {sytem_message: x}}"}, "Bad")
    assert turnloom("check", ".", folder="Bad", code=2).out.startswith("agents.yaml:1: ")
    assert turnloom("check", folder, code=2).out.startswith(f"{folder}/agents.yaml:1: ")


def test_warnings_are_printed_and_do_not_fail(turnloom: Call, tmp_path: Path) -> None:
    handoffs = (
        CHAT["handoffs.yaml"]
        + """
          - source_agent: Poet
            target_agent: terminate
            handoff_type: condition
            condition: ${done} == True
        """
    )
    write_folder(tmp_path, CHAT | {"handoffs.yaml": handoffs}, "Chat")
    done = turnloom("check", "Chat")
    assert re.search(r"^Chat/handoffs.yaml:\d+: W031 ", done.out)
    (problem,) = json.loads(turnloom("check", "Chat", "--format", "json").out)
    assert problem["severity"] == "warning"


def test_sarif_has_a_result_per_problem(turnloom: Call, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "my flows", MISTAKES, "Bad")
    problems = json.loads(turnloom("check", "my flows/Bad", "--format", "json", code=2).out)
    found = json.loads(turnloom("check", folder, "--format", "sarif", code=2).out)
    assert found["version"] == "2.1.0" and "sarif-schema-2.1.0" in found["$schema"]
    (run,) = found["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "Turnloom" and driver["version"] == metadata.version("turnloom")
    rules = [rule["id"] for rule in driver["rules"]]
    assert rules == sorted({each["code"] for each in problems})
    for problem, result in zip(problems, run["results"], strict=True):
        assert result["ruleId"] == problem["code"] == rules[result["ruleIndex"]]
        assert result["level"] == problem["severity"]
        assert result["message"]["text"].startswith(problem["message"])
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == problem["file"].replace(" ", "%20")
        assert place["region"]["startLine"] == problem["line"] >= 1
    (clean,) = json.loads(turnloom("check", INTERVIEW, "--format", "sarif").out)["runs"]
    assert clean["results"] == clean["tool"]["driver"]["rules"] == []


def test_production_is_judged_when_asked_for(turnloom: Call, tmp_path: Path) -> None:
    handoffs = CHAT["handoffs.yaml"].replace("${done}", "${context_aware}")
    write_folder(tmp_path, CHAT | {"handoffs.yaml": handoffs}, "Chat")
    assert not turnloom("check", "Chat").out
    agent, rule = turnloom("check", "Chat", "--production").out.splitlines()
    assert agent.startswith("Chat/agents.yaml:4: W030 ") and "'Critic'" in agent
    assert rule.startswith("Chat/handoffs.yaml:6: W070 ")
    assert all(name in rule for name in ("'Poet'", "'Critic'", "'context_aware'"))


def test_wrong_use_is_refused(turnloom: Call) -> None:
    assert "PATH" in turnloom("check", code=2).err
    assert "yaml" in turnloom("check", INTERVIEW, "--format", "yaml", code=2).err
    both = turnloom("check", INTERVIEW, "--format", "sarif", "--json", code=2)
    assert "--format" in both.err and "--json" in both.err
    assert re.match(r"nowhere\S*:1: W\d{3} ", turnloom("check", "nowhere", code=2).out)


def test_what_is_named_as_context_and_is_not_there_is_told(turnloom: Call, tmp_path: Path) -> None:
    files = {
        "agents.yaml": """\
            A: {context: winz}
            B: {context: {filter: {limit: 0}}}
            """,
        "providers.py": "async def wins(request): ...",
    }
    told = turnloom("check", write_folder(tmp_path, files), code=2).out
    first, second, third = (line.partition("agents.yaml:")[2] for line in told.splitlines())
    assert first.startswith("1: W048 ") and "'winz'" in first and "'wins'" in first
    assert second.startswith("2: W012 ") and "'limit'" in second
    assert third.startswith("2: W030 ") and "'B'" in third


FLOWS = """\
from turnloom import Flow
from pydantic import BaseModel, ConfigDict


class State(BaseModel):
    model_config = ConfigDict(frozen=True)
    total: int = 0


def count(state, ctx): return {"total": state.total + 1}
def undo(state, ctx): return {"totl": 0}


first = Flow("first", State).start_with(count, compensate=undo)
second = Flow("second", State).start_with(count, retry=-1).finally_(undo)
"""


def test_every_flow_that_a_file_builds_is_checked(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "flows.py").write_text(FLOWS, "utf-8")
    lines = turnloom("check", "flows.py", INTERVIEW, code=2).out.splitlines()
    assert [line.split(" ")[:2] for line in lines] == [
        ["flows.py:14:", "W105"],
        ["flows.py:14:", "W120"],
        ["flows.py:14:", "W128"],
        ["flows.py:15:", "W120"],
        ["flows.py:15:", "W122"],
    ]
    problems = json.loads(turnloom("check", "--json", str(tmp_path / "flows.py"), code=2).out)
    assert [each["severity"] for each in problems[:3]] == ["warning", "error", "info"]
    assert {each["file"] for each in problems} == {str(tmp_path / "flows.py")}
    (run,) = json.loads(turnloom("check", "flows.py", "--format", "sarif", code=2).out)["runs"]
    assert [each["level"] for each in run["results"][:3]] == ["warning", "error", "note"]


def test_what_a_flow_may_be_rid_of_does_not_fail_its_check(turnloom: Call, tmp_path: Path) -> None:
    right = FLOWS.replace("totl", "total").replace(", retry=-1", "")
    (tmp_path / "flows.py").write_text(right, "utf-8")
    assert [line.split(" ")[1] for line in turnloom("check", "flows.py").out.splitlines()] == [
        "W105",
        "W128",
    ]
    (tmp_path / "flows.py").write_text("import nothing_of_the_kind", "utf-8")
    assert turnloom("check", "flows.py", code=2).out.startswith("flows.py:1: W042 ")
    assert turnloom("check", "nowhere.py", code=2).out.startswith("nowhere.py:1: W042 ")


CHAT_OF_AG2 = """\
from autogen import ConversableAgent
from autogen.agentchat import initiate_group_chat
from autogen.agentchat.group.patterns import DefaultPattern

desk = ConversableAgent("Desk")
raise SystemExit("Nobody runs this.")


def serve(text):
    pattern = DefaultPattern(initial_agent=desk, agents=[desk])
    return initiate_group_chat(pattern, text, 5)
"""


def test_a_chat_of_ag2_is_checked_without_being_run(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "chat.py").write_text(CHAT_OF_AG2, "utf-8")
    done = turnloom("check", "chat.py")
    assert done.out.startswith("chat.py:11: W072 ") and "'serve'" in done.out
    (tmp_path / "right.py").write_text(CHAT_OF_AG2.partition("def serve")[0], "utf-8")
    assert not turnloom("check", "right.py").out


def test_the_check_and_a_run_agree_on_who_answers(turnloom: Call, tmp_path: Path) -> None:
    """By the same settings; whether a model can be reached is asked by a run alone."""
    write_folder(tmp_path, {"agents.yaml": "A: {system_message: a}\n"}, "Lone")
    for word in ("check", "run"):
        done = turnloom(word, "Lone", code=2)
        told = done.out + done.err
        assert "Lone/agents.yaml:1: W050 " in told and "does not pass its check" not in told
    for given in (("--model", "openai:gpt-5"), ("--model", "openai:gpt-5", "--engine", "ag2")):
        assert turnloom("check", "Lone", *given).out == ""
    assert turnloom("check", "Lone", TURNLOOM_MODEL="openai:gpt-5").out == ""
    (tmp_path / "turnloom.toml").write_text('model = "openai:gpt-5"\n')
    assert turnloom("check", "Lone").out == ""
    assert "oracle" in turnloom("check", "Lone", "--engine", "oracle", code=2).err


FLOW = """
from pydantic import BaseModel
from turnloom import AgentStep, Flow

class State(BaseModel, frozen=True):
    text: str = ""

class Write(AgentStep[State, str]):
    ENGINE
    def instructions(self): return "Write."
    def user_prompt(self, state): return "What?"
    def apply(self, state, answer, context): return {}

flow = (
    Flow("letter", State)
    .start_with(Write)
    .finally_(lambda state: {}, name="end")
)
"""


def test_the_check_and_a_run_of_a_flow_agree_on_who_answers(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW.replace("ENGINE", ""), "utf-8")
    for call in (("check", "flow.py"), ("check", "flow.py:letter"), ("run", "flow.py")):
        done = turnloom(*call, code=2)
        told = done.out + done.err
        assert "flow.py:16: W050 " in told and "'Write'" in told
        assert "does not pass its check" not in told
    assert turnloom("check", "flow.py", "--model", "openai:gpt-5").out == ""
    assert turnloom("check", "flow.py", TURNLOOM_MODEL="openai:gpt-5").out == ""


def test_a_run_of_a_flow_says_which_step_lacks_its_model(turnloom: Call, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW.replace("ENGINE", 'engine = "opnai:gpt-5"'), "utf-8")
    assert turnloom("check", "flow.py").out == ""
    told = turnloom("run", "flow.py", code=2).err
    assert "flow.py:16: W050 " in told and "'Write'" in told and "'openai:gpt-5'" in told


def test_what_another_system_reads_is_a_warning_and_the_workflow_runs(
    turnloom: Call, tmp_path: Path
) -> None:
    files = {
        "orchestrator.yaml": "runtime_extensions: [{kind: api_router}]\nmax_turns: 1",
        "agents.yaml": "A: {}",
        "script.yaml": "agents: {A: [Hello.]}",
        "tools.yaml": """\
            lifecycle_tools:
            - trigger: before_chat
              agent: null
              file: hooks.py
              function: start
              tool_type: Agent_Tool
            """,
        "hooks.py": "def start() -> None: ...",
        "theme.json": '{"colour": "red"}',
        "_pack/workflow_graph.json": '{"journeys": [{"id": "x"}]}',
    }
    folder = write_folder(tmp_path, files)
    told = turnloom("check", folder).out.splitlines()
    assert [line.split(": ")[1][:4] for line in told] == ["W008", "W015", "W007", "W015"]
    assert turnloom("check", folder, "--fail-on", "warning", code=2).out.splitlines() == told
    assert "Hello." in turnloom("run", folder, "--store", str(tmp_path / "runs.db")).out
    turnloom("check", INTERVIEW, "--fail-on", "warning")
