"""The Generator, as people have it: it interviews, plans, and writes a workflow that works."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Call, Sit
from tests.support.warm import Done
from turnloom import Answer, Loom, Task
from turnloom.adapters.files import parse

pytestmark = pytest.mark.repeats

ROOT = Path(__file__).parents[2]
GENERATOR = ROOT / "workflows" / "Generator"
MADE = "generated/SalesReport"
SWITCH = {
    "type": "boolean",
    "description": "Whether the report is sent at all.",
    "source": {"type": "environment", "env_var": "SEND_REPORTS", "default": True},
}

Script = dict[str, Any]
Events = list[dict[str, Any]]


def script() -> Script:
    document, problems = parse("script.yaml", (GENERATOR / "script.yaml").read_text("utf-8"))
    assert document and not problems
    return document.value


def line(agent: str, number: int = -1) -> Any:
    """A copy of an output that an agent gives in the script."""
    return json.loads(json.dumps(script()["agents"][agent][number]["output"]))


@pytest.fixture
def rehearsed(turnloom: Call, tmp_path: Path) -> Callable[..., Events]:
    def run(changed: Script, code: int = 0, **env: str) -> Events:
        """Run the Generator with another script, and give what happened."""
        folder = tmp_path / "Generator"
        shutil.copytree(GENERATOR, folder, ignore=shutil.ignore_patterns("script.*", "__pycache__"))
        (folder / "script.json").write_text(json.dumps(changed))
        done = turnloom("run", "Generator", "--json", code=code, **env)
        return [json.loads(each) for each in done.out.splitlines()]

    return run


def refusals(events: Events) -> list[str]:
    return [each["data"]["message"] for each in events if each["kind"] == "tool.failed"]


def definitions(folder: Path) -> dict[str, Any]:
    file = folder / "context_variables.yaml"
    document, _ = parse(file.name, file.read_text("utf-8"))
    assert document
    return document.value["context_variables"]["definitions"]


def sources(folder: Path) -> set[str]:
    return {each["source"]["type"] for each in definitions(folder).values()}


def texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


def assert_works(turnloom: Call, folder: str, **env: str) -> None:
    checked = turnloom("check", folder, "--production", **env)
    assert not checked.out and not checked.err
    ran = turnloom("run", folder, "--store", "memory", **env)
    assert "finished" in ran.out and not ran.err


def test_it_passes_its_check(turnloom: Call) -> None:
    for more in ((), ("--production",)):
        assert turnloom("check", str(GENERATOR), *more) == Done(0, "", "")


def test_it_writes_a_workflow_that_passes_its_check_and_runs(
    turnloom: Call, tmp_path: Path
) -> None:
    done = turnloom("run", str(GENERATOR), "--quiet")
    assert not done.err
    plan, adjusted, overview = done.out.split("Do you accept")[:3]
    assert "InterviewAgent: Hello!" in plan and "with their total" not in plan
    assert "The report is to have the total" in adjusted
    assert "from the figures, with their total" in adjusted
    assert "sequenceDiagram" in overview and f"written to {MADE}" in overview
    assert "NEXT" not in done.out
    assert_works(turnloom, MADE)
    made = texts(tmp_path / MADE)
    assert "```mermaid\nsequenceDiagram" in made["README.md"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".turnloom", "generated"]
    assert [path.name for path in (tmp_path / "generated").iterdir()] == ["SalesReport"]


@pytest.mark.doors
def test_a_workflow_that_is_there_stays_as_it_is(turnloom: Call, tmp_path: Path) -> None:
    theirs = tmp_path / MADE
    theirs.mkdir(parents=True)
    (theirs / "agents.yaml").write_text("mine: {}")
    turnloom("run", str(GENERATOR))
    assert texts(theirs) == {"agents.yaml": "mine: {}"}
    assert_works(turnloom, f"{MADE}2")
    before = texts(tmp_path / f"{MADE}2")
    turnloom("run", str(GENERATOR))  # its own work, again
    assert texts(tmp_path / f"{MADE}2") == before
    assert not (tmp_path / f"{MADE}3").exists()


def test_a_name_that_is_a_path_is_refused(rehearsed: Callable[..., Events], tmp_path: Path) -> None:
    changed = script()
    wrong = [
        {"output": line("ActionPlanArchitect") | {"workflow_name": name}}
        for name in ("../x", "/x", "a/b")
    ]
    changed["agents"]["ActionPlanArchitect"] = wrong + changed["agents"]["ActionPlanArchitect"]
    events = rehearsed(changed)
    refused = refusals(events)
    for name, message in zip(("'../x'", "'/x'", "'a/b'"), refused, strict=True):
        assert "workflow_name" in message and name in message
    assert sorted(path.name for path in (tmp_path / "generated").iterdir()) == ["SalesReport"]
    assert {path.name for path in tmp_path.iterdir()} == {".turnloom", "Generator", "generated"}


def test_what_is_never_corrected_ends_the_run_and_writes_nothing(
    rehearsed: Callable[..., Events], tmp_path: Path
) -> None:
    changed = script()
    wrong = line("ActionPlanArchitect") | {"workflow_name": "../x"}
    twice = line("ActionPlanArchitect")
    twice["agents"].append(twice["agents"][0])
    twice["tools"].append(twice["tools"][0])
    plans = [*[{"output": wrong}] * 3, {"output": twice}]
    changed["agents"]["ActionPlanArchitect"] = plans
    events = rehearsed(changed, code=1)
    assert events[-1]["kind"] == "run.failed" and len(refusals(events)) == 4
    assert "'CollectorAgent'" in refusals(events)[-1] and "'fetch_figures'" in refusals(events)[-1]
    assert not (tmp_path / "generated").exists()


@pytest.mark.doors
def test_production_has_no_environment_variables(
    rehearsed: Callable[..., Events], turnloom: Call, tmp_path: Path
) -> None:
    changed = script()
    output = line("ContextVariablesAgent")
    output["definitions"]["send_reports"] = SWITCH
    changed["agents"]["ContextVariablesAgent"].insert(0, {"output": output})
    events = rehearsed(changed, ENVIRONMENT="production")
    (refused,) = refusals(events)
    assert "'send_reports'" in refused and "production" in refused
    assert "environment" not in sources(tmp_path / MADE)
    assert_works(turnloom, MADE, ENVIRONMENT="production")
    shown = [
        segment.get("text", "")
        for event in events
        if event["kind"] == "frame.assembled" and event["data"]["agent"] == "ContextVariablesAgent"
        for segment in event["data"]["segments"]
    ]
    assert any("production: true" in text for text in shown)


@pytest.mark.doors
def test_in_production_it_works_as_elsewhere(turnloom: Call, tmp_path: Path) -> None:
    turnloom("run", str(GENERATOR), ENVIRONMENT="production")
    assert sources(tmp_path / MADE) == {"static", "derived"}
    assert_works(turnloom, MADE, ENVIRONMENT="production")


@pytest.mark.doors
def test_elsewhere_a_flag_may_come_from_the_environment(
    rehearsed: Callable[..., Events], turnloom: Call, tmp_path: Path
) -> None:
    changed = script()
    (only,) = changed["agents"]["ContextVariablesAgent"]
    only["output"]["definitions"]["send_reports"] = SWITCH
    assert refusals(rehearsed(changed)) == []
    assert "environment" in sources(tmp_path / MADE)
    assert_works(turnloom, MADE)


def refer_to_nobody(it: Any) -> None:
    it["agents"]["Nobody"] = {"variables": ["recipients"]}


def read_another_answer(it: Any) -> None:
    it["definitions"]["report_decision"]["source"]["triggers"][0]["response_key"] = "verdict"


def leave_it_to_the_tool(it: Any) -> None:
    del it["definitions"]["report_decision"]["source"]["triggers"][0]["apply"]


def name_a_parameter_wrongly(it: Any) -> None:
    it["tools"][0]["parameters"].append({"name": "x): import os", "type": "string"})


def check_what_is_not_there(it: Any) -> None:
    it[0]["condition"] = "${figures} == True"


def lead_nowhere(it: Any) -> None:
    del it[2:4]


# What each writer may get wrong, one after the other, and values that the refusal names.
MISTAKES: dict[str, list[tuple[Callable[[Any], object], tuple[str, ...]]]] = {
    "ContextVariablesAgent": [
        (refer_to_nobody, ("'Nobody'",)),
        (read_another_answer, ("'report_decision'", "'verdict'", "'approve_report'", "decision")),
        (leave_it_to_the_tool, ("'report_decision'", "`apply: auto`")),
    ],
    "ToolsAgent": [
        (lambda it: it["tools"].pop(), ("fetch_figures, approve_report",)),
        (name_a_parameter_wrongly, ("'x): import os'",)),
    ],
    "HandoffsAgent": [
        (check_what_is_not_there, ("'figures'",)),
        (lead_nowhere, ("'SenderAgent'",)),
    ],
    "AgentsAgent": [(lambda it: it.pop("SenderAgent"), ("'SenderAgent'",))],
    "ScriptAgent": [
        (lambda it: it["agents"]["SenderAgent"].pop(), ("'SenderAgent'", "1", "2")),
        (lambda it: it["user"].pop(), ("waits",)),
    ],
}


@pytest.mark.doors
def test_writers_hear_of_their_mistakes_and_correct_them(
    rehearsed: Callable[..., Events], tmp_path: Path
) -> None:
    changed = script()
    named: list[tuple[str, ...]] = []
    for agent, mistakes in MISTAKES.items():
        wrong = [line(agent) for _ in mistakes]
        for (spoil, values), output in zip(mistakes, wrong, strict=True):
            spoil(output)
            named.append(values)
        changed["agents"][agent][:0] = [{"output": output} for output in wrong]
    events = rehearsed(changed)
    for values, refused in zip(named, refusals(events), strict=True):
        assert all(value in refused for value in values), refused
    assert (tmp_path / MADE).is_dir() and events[-1]["kind"] == "run.finished"


def test_no_text_of_a_plan_becomes_code(
    rehearsed: Callable[..., Events], turnloom: Call, tmp_path: Path
) -> None:
    hostile = "\"\"\"\nraise SystemExit  # ''' {week} \\"
    changed = script()
    plan = changed["agents"]["ActionPlanArchitect"][-1]["output"]
    plan["purpose"] = plan["agents"][0]["role"] = hostile
    for tool in plan["tools"]:
        tool["purpose"] = hostile
    for tool in changed["agents"]["ToolsAgent"][0]["output"]["tools"]:
        tool["sample"] = hostile
    rehearsed(changed)
    assert_works(turnloom, MADE)


@pytest.mark.doors
def test_an_agent_that_the_rehearsal_does_not_reach_needs_no_lines(
    rehearsed: Callable[..., Events], turnloom: Call
) -> None:
    changed = script()
    agents = changed["agents"]
    for plan in agents["ActionPlanArchitect"]:
        plan["output"]["agents"].append({"name": "HelperAgent", "role": "Helps in need."})
    agents["HandoffsAgent"][0]["output"][:0] = [
        {
            "source_agent": "CollectorAgent",
            "target_agent": "HelperAgent",
            "handoff_type": "condition",
            "condition": '${report_decision} == "changes_wanted"',
        },
        {
            "source_agent": "HelperAgent",
            "target_agent": "terminate",
            "handoff_type": "after_work",
        },
    ]
    agents["AgentsAgent"][0]["output"]["HelperAgent"] = {"system_message": "Help."}
    assert refusals(rehearsed(changed)) == []
    assert_works(turnloom, MADE)


def test_whatever_a_person_answers_the_play_ends_well(
    sit: Sit, turnloom: Call, tmp_path: Path
) -> None:
    seat = sit("run", str(GENERATOR))
    told = seat.until("InterviewAgent")
    assert "script" in told and "--model" in told
    for said in ("A planner for a bakery.", "no", "42"):
        seat.until("you> ")
        seat.type(said)

    def judge(verdict: str, wish: str) -> None:
        for prompt, typed in (("plan_acceptance> ", verdict), ("adjustments> ", wish)):
            seat.until(prompt)
            seat.type(typed)

    judge("accepted", "")  # the first plan
    judge("adjustments_requested", "It is for a bakery!")  # the overview
    for _ in range(3):
        judge("adjustments_requested", "More cakes.")
    judge("accepted", "")
    judge("accepted", "")
    seat.until("finished")
    assert seat.end() == 0
    assert_works(turnloom, MADE)


@pytest.mark.doors
def test_who_does_not_like_the_overview_gets_another_plan(
    rehearsed: Callable[..., Events], tmp_path: Path
) -> None:
    changed = script()
    agents, renamed = changed["agents"], line("ActionPlanArchitect") | {"workflow_name": "Weekly"}
    agents["ActionPlanArchitect"].append({"output": renamed})
    for agent in list(agents)[2:]:
        agents[agent] *= 2
    wish = {"plan_acceptance": "adjustments_requested", "adjustments": "Call it Weekly."}
    changed["user"][-1:] = [wish, {"plan_acceptance": "accepted"}, {"plan_acceptance": "accepted"}]
    rehearsed(changed)
    assert [path.name for path in (tmp_path / "generated").iterdir()] == ["Weekly"]


async def test_any_engine_answers_for_its_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = script()
    answers = iter(said["user"])

    async def engine(task: Task) -> Answer:
        line = said["agents"][task.agent][task.number - 1]
        if isinstance(line, str):
            return Answer(line)
        assert task.output is not None
        return Answer(f"Here it is.\n```json\n{json.dumps(line['output'])}\n```")

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(str(GENERATOR))
        async for event in run.events():
            if event.kind == "run.paused":
                await run.answer(None, next(answers))
        assert event.kind == "run.finished"
    assert (tmp_path / MADE / "agents.yaml").is_file()
