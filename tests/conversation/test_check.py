"""The check: every mistake at its place, all of them at once, and nothing said of what is right."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests.conversation.mistakes import RIGHT, Mistake, mistakes, named
from tests.conversation.talks import examine
from tests.support.checks import examined, problems
from tests.support.folders import INTERVIEW, write_folder
from turnloom import Loom
from turnloom.agents.spec import ScriptLine
from turnloom.errors import DefinitionError
from turnloom.testing import ScriptedEngine
from turnloom.variables.logic.migration.layout import OLDER

MISTAKES = mistakes()
WARNINGS = {
    "W015",
    "W030",
    "W031",
    "W032",
    "W034",
    "W038",
    "W046",
    "W047",
    "W054",
    "W064",
    "W065",
    "W066",
    "W067",
}

# What a model or a parser says holds what to do.
ALL_IN_ONE = {"W012", "W022"}

# Given only when code is loaded or read, or production asked about: `test_contexts`, `test_chats`
# and `test_production` have their cases.
ASKED_FOR = {"W057", "W070", "W071", "W072"}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: f"{each.code} {each.says}"[:60])
def test_a_mistake_is_told_where_it_stands_and_nothing_else_is(mistake: Mistake) -> None:
    conversation, problems = examine(mistake.files)
    (problem,) = problems
    assert (problem.code, problem.file, problem.line) == (
        mistake.code,
        f"Flow/{mistake.file}",
        mistake.line,
    )
    told = f"{problem.message} {problem.remedy}"
    assert all(value in told for value in named(mistake.says)), told
    assert problem.remedy or mistake.code in ALL_IN_ONE, "it says what to do"
    assert problem.severity == ("warning" if mistake.code in WARNINGS else "error")
    assert (conversation is not None) == (mistake.code in WARNINGS)


def test_every_code_that_the_checks_can_give_has_a_case() -> None:
    given: set[str] = set()
    concepts = ("kernel", "variables", "assembly", "hooks", "agents", "guards", "conversation")
    for concept in concepts:
        folder = Path(str(import_module(f"turnloom.{concept}").__file__)).parent
        for module in folder.rglob("*.py"):
            given |= set(re.findall(r'"(W0\d\d)"', module.read_text("utf-8")))
    assert {mistake.code for mistake in MISTAKES} == given - ASKED_FOR


def test_what_is_right_is_not_mentioned() -> None:
    assert examine(RIGHT)[1] == []
    assert examine(INTERVIEW)[1] == []


def test_a_workflow_that_we_ship_is_right() -> None:
    shipped = Path(__file__).parents[2] / "workflows" / "Interview"
    is_right, problems = examined(str(shipped))
    assert is_right
    assert problems == []


@pytest.mark.parametrize("outer", [True, False])
def test_what_is_right_may_be_written_in_other_ways(outer: bool) -> None:
    """Lists with names, outer keys, JSON: the same conversation."""
    plain, _ = examine(RIGHT)
    definitions = [
        {"name": "done", "type": "boolean", "source": {"type": "environment", "env_var": "D"}},
        {"name": "list", "source": {"type": "static", "value": [1]}},
    ]
    variables = {
        "definitions": definitions,
        "agents": [{"name": "A", "variables": ["done", "chat_id", "list"]}],
    }
    agents = [{"name": "A", "system_message": "You are A."}, {"name": "B", "engine": "scripted"}]
    rules = [{"source_agent": "A", "target_agent": "B", "handoff_type": "after_work"}]
    setup = {"initial_agent": "A"}
    other, problems = examine(
        {
            "orchestrator.json": json.dumps({"orchestrator": setup} if outer else setup),
            "agents.json": json.dumps({"agents": agents} if outer else agents),
            "context_variables.json": json.dumps(
                {"context_variables": variables} if outer else variables
            ),
            "handoffs.json": json.dumps({"handoff_rules": rules} if outer else rules),
            "script.json": json.dumps({"agents": {"B": ["Hello."]}, "user": ["Hi."]}),
            "tools.json": json.dumps({"tools": [], "lifecycle_tools": []}),
            "hooks.yaml": "hooks:",
        }
    )
    assert problems == []
    assert plain is not None and other is not None
    assert other.agents["A"] == plain.agents["A"]
    assert other.script.agents == {"B": (ScriptLine(text="Hello."),)}
    assert other.digest != plain.digest


def test_all_mistakes_of_a_folder_are_told_at_once() -> None:
    files = {
        "orchestrator.yaml": """
            startup_mode: BackendOnly
            human_in_the_loop: true   # W033
            initial_agent: Nobody     # W020
            """,
        "agents.yaml": """
            A: {system_message: 5}    # W012
            B: {promt: x}             # W010
            user: {}                  # W026
            """,
        "context_variables.yaml": """
            definitions:
              done: {type: colour, source: {type: derived}}                      # W012
              n: {type: integer, source: {type: static, value: x}}               # W024
              chat_id: {source: {type: static, value: 1}}                        # W026
              r:
                type: boolean
                source:
                  type: derived
                  triggers:
                    - {type: agent_text, agent: C, match: {equals: x}}           # W020
                    - {type: agent_text, agent: A, match: {regex: "("}}          # W025
            agents:
              A: {variables: [done, nn]}                                         # W021
              Z: {variables: [done]}                                             # W020
            """,
        "handoffs.yaml": """
            - {source_agent: A, target_agent: B, handoff_type: condition}  # W028
            - {source_agent: A, target_agent: Q, handoff_type: after_work}  # W020
            - {source_agent: A, target_agent: B, handoff_type: after_work}  # W027
            - {source_agent: B, target_agent: A, handoff_type: condition, condition: r > 1}  # W022
            - {source_agent: B, target_agent: A, handoff_type: condition, condition: n is 1}  # W023
            - {source_agent: B, target_agent: A, handoff_type: condition, condition: q is 1}  # W021
            - {source_agent: B, target_agent: A, handoff_type: wrk}  # W012
            """,
        "tools.yaml": "- tool   # W012",
        "script.yaml": "lines: []   # W010",
    }
    _, problems = examine(files)
    told = [(problem.file, problem.line, problem.code) for problem in problems]
    assert told == sorted(
        (f"Flow/{file}", number, code)
        for file, text in files.items()
        for number, line in enumerate(text.strip("\n").split("\n"), 1)
        for code in re.findall(r"# (W\d\d\d)", line)
    )
    assert len(told) == 21


def test_people_asked_in_a_run_without_people_are_told_with_the_rest() -> None:
    files = {
        **RIGHT,
        "orchestrator.yaml": "startup_mode: BackendOnly\ninitial_agent: Nobody",
        "tools.yaml": "- x",
    }
    told = [(problem.file, problem.line, problem.code) for problem in examine(files)[1]]
    assert told == [
        ("Flow/handoffs.yaml", 2, "W033"),
        ("Flow/orchestrator.yaml", 2, "W020"),
        ("Flow/tools.yaml", 1, "W012"),
    ]


def test_every_key_that_migration_reads_names_it() -> None:
    entry = {"name": "x", "type": "string", "value": "y"}
    for key in OLDER:
        for whole in ({key: [entry]}, {"context_variables": {}, key: [entry]}):
            files = {"agents.yaml": "A: {}", "context_variables.json": json.dumps(whole)}
            conversation, problems = examine(files)
            (problem,) = [each for each in problems if each.code == "W014"]
            assert problem.severity == "error"
            assert f"{key!r}" in problem.message and "turnloom migrate" in problem.remedy
            assert conversation is None


def test_an_older_shape_is_one_problem() -> None:
    older = {**RIGHT, "context_variables.yaml": "variables: [{name: done, type: boolean}]"}
    told = [(problem.file, problem.code) for problem in examine(older)[1]]
    # No trigger sets it, in either shape.
    assert told == [("Flow/context_variables.yaml", "W014"), ("Flow/handoffs.yaml", "W032")]


def test_older_sources_are_one_problem() -> None:
    variables = """
        definitions:
          done:
            type: boolean
            source: {type: state, persist: true, transitions: [{to: true, trigger: WHEN}]}
          tier: {type: string, source: {type: config, env_var: TIER, default: 3}}
          stage: {type: string, source: {type: computed, inputs: [tier]}}
        agents: {A: {variables: [done, tier]}, B: {variables: [stage]}}
        """.replace("WHEN", "{type: agent_text, agent: A, match: {equals: x}, ui_hidden: true}")
    (problem,) = examine({**RIGHT, "context_variables.yaml": variables})[1]
    assert (problem.code, problem.line) == ("W014", 4)
    assert "turnloom migrate" in problem.remedy and "static" not in str(problem)
    for word in ("'done'", "'tier'", "'stage'", "'state'", "'config'", "'computed'"):
        assert word in problem.message


@pytest.mark.parametrize(
    "definition",
    [
        "definitions: {done: 5}",
        "definitions: {done: }",
        "definitions: {done: {type: boolean, source: {type: external}}}",
        "definitions: {done: {type: boolean}}",
        "definitions: [{name: done, type: boolean, source: {type: static}}]",
        "definitions: [{nam: done, type: boolean, source: {type: derived}}]",
        "definitions: done",
    ],
)
def test_an_invalid_variable_may_be_named_elsewhere(definition: str) -> None:
    variables = f"agents: {{A: {{variables: [done]}}}}\n{definition}"
    (problem,) = examine({**RIGHT, "context_variables.yaml": variables})[1]
    assert (problem.file, problem.line) == ("Flow/context_variables.yaml", 2)


@pytest.mark.parametrize(
    "agents",
    [
        "{A: 5, B: {}}",
        "{A: {system_mesage: x}, B: {}}",
        "[{name: A}, {nam: B}]",
        "agents: A and B",
        "agents:",
        "[]",
        "A: {}\nB: [",
        "A: {}\n? [1]\n: {}",
    ],
)
def test_broken_agents_cause_no_other_problem(agents: str) -> None:
    problems = examine({**RIGHT, "agents.yaml": agents, "script.yaml": "agents: {B: [x]}"})[1]
    assert problems
    assert {problem.file for problem in problems} == {"Flow/agents.yaml"}
    assert "W020" not in {problem.code for problem in problems}


@pytest.mark.parametrize("file", sorted(RIGHT))
def test_a_file_that_cannot_be_read_causes_no_other_problem(file: str) -> None:
    conversation, problems = examine({**RIGHT, file: "a: [\n"})
    assert conversation is None
    assert {(problem.file, problem.code) for problem in problems} == {(f"Flow/{file}", "W002")}


def test_a_folder_in_which_nothing_is_has_one_problem(tmp_path: Path) -> None:
    for folder in (tmp_path / "absent", tmp_path):
        is_right, problems = examined(str(folder))
        assert not is_right
        assert [problem.code for problem in problems] == ["W000"]


def test_a_folder_without_agents_and_with_another_problem_says_both() -> None:
    rules = "- {source_agent: A, target_agent: B, handoff_type: after_work}"
    _, problems = examine({"orchestrator.yaml": "max_turn: 1", "handoffs.yaml": rules})
    assert [(problem.file, problem.code) for problem in problems] == [
        ("Flow/agents.yaml", "W011"),
        ("Flow/orchestrator.yaml", "W010"),
    ]


@pytest.mark.parametrize(
    ("agents", "says"),
    [
        ("A: {engine: scriptd}", "'scripted'"),
        (
            "A: {engine: {type: oracle}}",
            "scripted, functions, pydantic_ai, ag2, autogen, dspy",
        ),
        ("A: {engine: {type: functions, file: a.py}}", "`file`"),
        ("A: {engine: {type: ag2, function: f}}", "ag2"),
        ("A: {engine: {type: scripted, file: a.py}}", "scripted"),
        ("A: {engine: {type: pydantic_ai, function: f}}", "pydantic_ai"),
    ],
)
def test_an_agent_that_nothing_makes_answer_is_refused(
    agents: str, says: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path, {"agents.yaml": f"# roster\n{agents}"})
    is_right, (problem,) = examined(folder)
    assert not is_right
    assert (problem.code, problem.file, problem.line) == ("W050", "Flow/agents.yaml", 2)
    assert says in str(problem)


async def test_agents_that_lack_the_same_are_told_of_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    agents = (
        "A: {}\nB: {}\nC: {engine: scriptd}\nD: {model: 'openai:gpt-5'}\nE: {model: 'openai:gpt-5'}"
    )
    folder = write_folder(tmp_path, {"agents.yaml": agents})
    async with Loom(store="memory") as app:
        with pytest.raises(DefinitionError) as refused:
            await app.start(folder)
    found = [each for each in refused.value.diagnostics if each.code == "W050"]
    assert [each.line for each in found] == [1, 3, 4]
    assert "'A', 'B'" in found[0].message and "'D', 'E'" in found[2].message


def test_a_function_that_is_missing_is_told_of_at_the_line_that_names_it(tmp_path: Path) -> None:
    files = {
        "agents.yaml": """
            A:
              engine:
                type: functions
                file: a.py
                function: anser
              components:
                - file: a.py
                  function: time_it
            """,
        "tools.yaml": """
            tools:
              - agent: A
                file: a.py
                function: look
              - agent: A
                file: a.py
                function: lok
            """,
        "a.py": "def answer(task): ...\ndef look(): ...\n",
    }
    _, found = examined(write_folder(tmp_path, files))
    named = [(each.file, each.line) for each in found if each.code == "W043"]
    assert sorted(named) == [
        ("Flow/agents.yaml", 6),
        ("Flow/agents.yaml", 9),
        ("Flow/tools.yaml", 8),
    ]


async def test_who_answers_for_an_agent_is_said_by_a_deployment(tmp_path: Path) -> None:
    files = {"agents.yaml": "A: {}\nB: {engine: scriptd}", "handoffs.yaml": "[]"}
    folder = write_folder(tmp_path, files)
    assert [problem.code for problem in problems(folder)] == ["W030", "W050"]
    async with Loom(store="memory") as app:
        with pytest.raises(DefinitionError) as refused:
            await app.start(folder)
    first, second = [each for each in refused.value.diagnostics if each.code == "W050"]
    assert (first.line, second.line) == (1, 2)
    assert "'A'" in first.message and "'scriptd'" in second.message
    lone = write_folder(tmp_path, {"agents.yaml": "A: {}"}, "Lone")
    assert examined(lone) == (True, [])
    async with Loom(store="memory", engine=ScriptedEngine({})) as app:
        assert await app.start(lone)


def test_a_warning_does_not_stop_a_workflow(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"agents.yaml": "A: {}\nB: {}"})
    is_right, (problem,) = examined(folder)
    assert is_right
    assert (problem.code, problem.severity) == ("W030", "warning")
