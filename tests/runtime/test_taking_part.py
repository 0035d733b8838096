"""Engines that take the run's variables: what they write and ask is on record, as of tools."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.folders import write_folder
from tests.support.lives import Lives
from tests.support.logs import strands
from tests.support.plays import answering, every, only, play, solo
from turnloom import AgentStep, Answer, Engine, Flow, Loom, Task, UsageError, artifact_type
from turnloom.adapters.functions import FunctionEngine
from turnloom.testing import RecordedEngine

CODE = """
    from turnloom import use_ui_tool
    from turnloom.errors import WriteRefused

    async def ask(task, context_variables):
        context_variables["asked"] = True
        name = await use_ui_tool("name", {"prompt": "Your name?"})
        context_variables["name"] = name
        return f"Hello, {name}."

    def write(task, ctx):
        ctx["name"] = "Bob"
        return "I wrote it down."

    def refuse(task, ctx):
        try:
            ctx["fixed"] = 1
        except WriteRefused as error:
            return str(error)

    def fail(task, ctx):
        ctx["name"] = "Cid"
        raise RuntimeError("no luck")

    def tell(task):
        return task.system

    def shout(sender, message, recipient, silent):
        return message.upper()
    """
VARIABLES = {
    "definitions": {
        "name": {"type": "string", "source": {"type": "derived", "default": ""}},
        "fixed": {"type": "integer", "source": {"type": "static", "value": 0}},
    },
    "agents": {"B": {"variables": ["name"]}},
}


def code(function: str) -> dict[str, str]:
    return {"type": "functions", "file": "code.py", "function": function}


def files(function: str, name: str = "Ann", **parts: Any) -> dict[str, str]:
    """`A` answers by a function, and hands over to `B` once the name is known."""
    agents = {"A": {"engine": code(function)}, "B": {"engine": code("tell")}}
    rule = {"source_agent": "A", "target_agent": "B", "handoff_type": "after_work"}
    known = {**rule, "condition_type": "expression", "condition": f"${{name}} == '{name}'"}
    over = {**rule, "target_agent": "terminate"}
    done = {**rule, "source_agent": "B", "target_agent": "terminate"}
    rules = [known, over, done]
    return solo(CODE, agents=agents, context_variables=VARIABLES, handoffs=rules, **parts)


async def test_what_an_answering_function_writes_decides_the_next_route(tmp_path: Path) -> None:
    events = await play(tmp_path, files("write", "Bob"))
    changed = only(events, "context.changed")
    assert (changed.name, changed.value, changed.writer) == ("name", "Bob", "agent:A")
    assert [each.target for each in every(events, "route.decided")] == ["A", "B", "terminate"]
    assert 'name: "Bob"' in every(events, "agent.text")[-1].text


async def test_what_may_not_be_written_is_refused_at_once_and_on_record(tmp_path: Path) -> None:
    events = await play(tmp_path, files("refuse"))
    assert only(events, "context.refused").writer == "agent:A"
    assert "fixed" in only(events, "agent.text").text


async def test_what_was_written_before_a_failure_stays(tmp_path: Path) -> None:
    events = await play(tmp_path, files("fail"))
    assert only(events, "model.failed").message == "no luck"
    assert only(events, "context.changed").value == "Cid"
    assert events[-1].kind == "run.failed"


async def test_a_hook_rewrites_what_a_function_says_that_writes(tmp_path: Path) -> None:
    hook = {"hook_type": "process_message_before_send", "hook_agent": "A"}
    hooks = {"hooks": [{**hook, "filename": "code.py", "function": "shout"}]}
    events = await play(tmp_path, files("write", "Bob", hooks=hooks))
    assert every(events, "agent.text")[0].text == "I WROTE IT DOWN."
    assert only(events, "context.changed").value == "Bob"


async def test_a_question_of_an_answering_function_parks_the_run(tmp_path: Path) -> None:
    events = await play(tmp_path, files("ask"), answering("Ann"))
    assert only(events, "question.asked").prompt == "Your name?"
    assert len([each for each in every(events, "model.called") if each.agent == "A"]) == 1
    changed = {each.name: each.value for each in every(events, "context.changed")}
    assert changed == {"asked": True, "name": "Ann"}
    assert every(events, "agent.text")[0].text == "Hello, Ann."


async def test_a_kill_at_every_single_point_changes_nothing(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, files("ask"))
    whole = Lives(folder, lambda question: "Ann")
    undisturbed = await whole.live()
    assert undisturbed[-1].kind == "run.finished"
    for points in range(whole.passed):
        events = await Lives(folder, lambda question: "Ann").live(points)
        assert strands(events) == strands(undisturbed), f"killed after {points} points"


@artifact_type
class Plea(BaseModel):
    text: str


async def count(task: Task, ctx: Any) -> Answer:
    ctx["pleas"] = ctx.get("pleas", 0) + 1
    return Answer(f"That makes {ctx['pleas']}.")


async def test_on_a_board_variables_are_the_runs(tmp_path: Path) -> None:
    async with Loom(store="memory") as app:
        board = app.board()
        board.agent("clerk").consumes(Plea).with_engines(count)
        await board.publish(Plea(text="Please."))
        await board.run_until_idle()
        (run,) = await app.runs()
        changed = only(await app.history.events(run.run), "context.changed")
    assert (changed.name, changed.value, changed.writer) == ("pleas", 1, "agent:clerk")


class Case(BaseModel):
    model_config = ConfigDict(frozen=True)

    said: str = ""


class Clerk(AgentStep[Case]):
    """Answers a plea."""

    engine = count

    def instructions(self) -> str:
        return "Count."

    def user_prompt(self, state: Case) -> str:
        return "Please."

    def apply(self, state: Case, answer: Any, context: Any) -> Any:
        return {"said": answer}


async def end(state: Case, ctx: Any) -> None: ...


async def test_in_a_flow_variables_are_the_runs() -> None:
    async with Loom(store="memory") as app:
        outcome = await app.run(Flow("pleas", Case).start_with(Clerk).finally_(end), Case())
        changed = only(await app.history.events(outcome.run_id), "context.changed")
    assert outcome.state.said == "That makes 1."
    assert changed.writer.startswith("agent:")


async def test_what_is_done_to_variables_is_not_recorded_for_tests(tmp_path: Path) -> None:
    def make() -> Engine:
        return FunctionEngine(count)

    with pytest.raises(UsageError):
        async with RecordedEngine(tmp_path / "traffic.json", make):
            raise AssertionError
