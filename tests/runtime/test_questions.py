"""Questions that tools and hooks ask: once, of the right person, and answered once."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from tests.support.plays import (
    answering,
    attend,
    call,
    every,
    last,
    lines,
    only,
    play,
    serving,
    solo,
    until,
)
from tests.support.programs import Program, answer, begin, drive, make_world
from tests.support.world import PATIENCE, World
from turnloom import Delivery, Loom, use_ui_tool
from turnloom.errors import NotYours, QuestionExpired, UsageError
from turnloom.log.spec import RunKey
from turnloom.ports import Reply

ASK = """
    from turnloom import use_ui_tool

    async def plan(title: str, context_variables):
        answer = await use_ui_tool("plan", {"title": title})
        return answer
    """
RESPONSE = {
    "type": "object",
    "properties": {"acceptance": {"enum": ["accepted", "refused"]}},
    "required": ["acceptance"],
}
PLAN = {
    "function": "plan",
    "tool_type": "UI_Tool",
    "ui": {"component": "PlanCard", "mode": "artifact", "response": RESPONSE},
}
SCRIPT = lines(call("plan", title="Mine"), "Done.")
YES = {"acceptance": "accepted"}


def asking(code: str = ASK, *tools: Any, **parts: Any) -> dict[str, str]:
    return solo(code, *(tools or [PLAN]), **{"script": SCRIPT, **parts})


async def asked(where: Path, files: Mapping[str, str]) -> tuple[World, str, str]:
    """A run that waits: its world, its id, and the question."""
    world = make_world()
    run = await begin(world, write_folder(where, files))
    await drive(world, run)
    events = await world.read(run)
    assert events[-1].kind == "run.paused"
    return world, run, events[-1].data.waiting_for


async def test_a_tool_asks_waits_and_is_entered_again_with_the_answer(tmp_path: Path) -> None:
    world, run, id = await asked(tmp_path, asking())
    async with Program(world) as program:
        question = await program.app.handle(run).question()
    assert question is not None
    assert (question.id, question.prompt, question.to) == (id, "Mine", "u1")
    assert (question.tool, question.component, question.display) == ("plan", "PlanCard", "artifact")
    assert (question.payload, question.schema) == ({"title": "Mine"}, RESPONSE)
    async with Program(world) as later:
        events = await attend(later, run, lambda question: YES)
    assert only(events, "question.asked").question == id
    assert only(events, "tool.called").tool == "plan"
    assert only(events, "tool.returned").result == YES
    assert events[-1].kind == "run.finished"


CHILD = """
import asyncio, sys
from turnloom import Delivery, Event, Loom, use_ui_tool

async def main():
    async with Loom(store=sys.argv[1]) as app:
        run = await app.start(sys.argv[2], user_id="u1")
        async for event in run.events():
            if event.kind == "run.paused":
                print(run.id, flush=True)

asyncio.run(main())
"""


async def test_a_question_of_a_killed_process_is_answered_in_another(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path, asking()), str(tmp_path / "runs.db")
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CHILD, store, folder), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    run = (await child.stdout.readline()).decode().strip()
    os.kill(child.pid, signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL
    async with Loom(store=store) as app:
        resumed = await app.resume(run)
        question = await resumed.question()
        assert question is not None
        assert await resumed.answer(question.id, YES, user_id="u1")
        assert (await resumed.finished()).kind == "run.finished"
        events = await app.history.events(run)
    assert only(events, "question.asked").question == question.id
    assert only(events, "tool.returned").result == YES


@pytest.mark.parametrize(
    "who",
    ["u2", ""],
)
async def test_nobody_else_can_answer_and_nothing_is_recorded(who: str, tmp_path: Path) -> None:
    world, run, id = await asked(tmp_path, asking())
    before = await world.read(run)
    async with Program(world) as program:
        with pytest.raises(NotYours):
            await program.app.handle(run).answer(id, YES, user_id=who)
        with pytest.raises(NotYours) as refused:
            await program.app.handle(run).question(user_id=who)
    assert "Mine" not in str(refused.value)
    assert await world.read(run) == before
    mail = await world.store.inbox.pending(RunKey("local", run))
    assert not any(isinstance(message, Reply) for _, message in mail)


async def test_an_answer_of_another_form_is_refused_and_the_question_stays(tmp_path: Path) -> None:
    world, run, id = await asked(tmp_path, asking())
    values = [
        ({"acceptance": "maybe"}, "'maybe'"),
        ({}, "acceptance"),
        ("yes", "object"),
        ({"acceptance": float("nan")}, "JSON"),
    ]
    async with Program(world) as program:
        for value, says in values:
            with pytest.raises(UsageError) as refused:
                await program.answer(run, value, id)
            assert repr(id) in str(refused.value) and says in str(refused.value)
        question = await program.app.handle(run).question()
        assert question is not None and question.id == id
        assert await program.answer(run, YES, id) is Delivery.TAKEN
    assert (await world.read(run))[-1].kind == "run.finished"


async def test_a_repeated_answer_changes_nothing(tmp_path: Path) -> None:
    world, run, id = await asked(tmp_path, asking())
    async with serving(world) as app:
        going = await app.resume(run)
        assert await going.answer(id, YES) is Delivery.TAKEN
        assert await going.answer(id, {"acceptance": "refused"}) is Delivery.REPEATED
        await until(going, "run.finished")
        assert await going.answer(id, YES) is Delivery.REPEATED
    events = await world.read(run)
    assert only(events, "question.answered").value == YES
    assert events[-1].kind == "run.finished"


async def test_of_two_answers_at_once_one_counts_and_the_other_is_told(tmp_path: Path) -> None:
    world, run, id = await asked(tmp_path, asking())
    async with serving(world) as app:
        going = await app.resume(run)
        answers = [{"acceptance": "refused"}, YES]
        told = await asyncio.gather(*(going.answer(id, each) for each in answers))
        await until(going, "run.finished")
    assert {*told} == {Delivery.TAKEN, Delivery.REPEATED}
    taken = answers[told.index(Delivery.TAKEN)]
    assert only(await world.read(run), "question.answered").value == taken


async def test_a_question_that_was_never_asked_is_named(tmp_path: Path) -> None:
    world, run, id = await asked(tmp_path, asking())
    async with Program(world) as program:
        with pytest.raises(UsageError) as refused:
            await program.answer(run, YES, "nothing")
    assert "'nothing'" in str(refused.value) and id in str(refused.value)


PATIENT = """
    from turnloom import QuestionExpired, use_ui_tool

    async def plan(title: str, context_variables):
        try:
            return await use_ui_tool("plan", {"title": title}, timeout=60, display="inline")
        except QuestionExpired as error:
            context_variables["late"] = str(error)
            return "nobody"
    """


def later(world: World) -> None:
    world.clock.advance(timedelta(seconds=61))


async def test_a_question_expires_when_its_time_is_over(tmp_path: Path) -> None:
    world, run, id = await asked(tmp_path, asking(PATIENT))
    events = await world.read(run)
    assert only(events, "question.asked").due == world.clock.now() + timedelta(seconds=60)
    assert only(events, "question.asked").display == "inline"
    async with Program(world) as program:
        assert await program.drive(run) == only(events, "question.asked").due
        later(world)
        await program.drive(run)
    events = await world.read(run)
    assert only(events, "question.expired").question == id
    assert only(events, "tool.returned").result == "nobody"
    assert "'plan'" in only(events, "context.changed").value
    assert events[-1].kind == "run.finished"


async def test_an_answer_that_comes_too_late_changes_nothing_and_is_told_so(tmp_path: Path) -> None:
    """Nobody drives the run when the time is over; the first who looks finds it expired."""
    world, run, id = await asked(tmp_path, asking(PATIENT))
    later(world)
    async with Program(world) as idle:
        assert await idle.app.handle(run).question() is None  # it waits for nothing any more
        with pytest.raises(QuestionExpired):
            await idle.app.handle(run).answer(id, YES)
    events = await world.read(run)
    assert [event.kind for event in events[-2:]] == ["question.expired", "answer.refused"]
    await drive(world, run)
    assert only(await world.read(run), "tool.returned").result == "nobody"
    for question in (id, None):
        with pytest.raises(QuestionExpired):
            await answer(world, run, YES, question)


async def test_an_answer_that_was_left_in_time_counts_only_if_it_was_put_on_record(
    tmp_path: Path,
) -> None:
    world, run, id = await asked(tmp_path, asking(PATIENT))
    async with Program(world) as idle:
        assert await idle.app.handle(run).answer(id, YES) is Delivery.RECORDED
    later(world)
    await drive(world, run)
    events = await world.read(run)
    assert only(events, "tool.returned").result == YES
    assert not every(events, "question.expired")


async def test_a_question_expires_by_itself_where_the_run_is_driven(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, asking(PATIENT.replace("timeout=60", "timeout=0.1")))
    async with Loom(store="memory") as app, asyncio.timeout(PATIENCE):
        run = await app.start(folder)
        await run.finished()
        assert only(await app.history.events(run.id), "tool.returned").result == "nobody"


async def test_waiting_does_not_count_against_the_time_of_a_tool(tmp_path: Path) -> None:
    files = asking(ASK, {**PLAN, "timeout_s": 30})
    world, run, _ = await asked(tmp_path, files)
    later(world)
    async with Program(world) as program:
        events = await attend(program, run, lambda question: YES)
    assert only(events, "tool.returned").result == YES


async def test_only_a_tool_or_hook_can_ask() -> None:
    with pytest.raises(UsageError):
        await use_ui_tool("plan", {})


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def plan(title: str): return asyncio.run(use_ui_tool('plan'))", "async def"),
        ("def plan(title: str): return use_ui_tool('plan')", "async def"),
        ("async def plan(title: str): await use_ui_tool('plan', chat_id='x')", "'run1'"),
        (
            "async def plan(title: str): await use_ui_tool('plan', workflow_name='Other')",
            "'Other'",
        ),
        ("async def plan(title: str): await use_ui_tool('plan', object())", "<object"),
        ("async def plan(title: str): await use_ui_tool('plan', timeout=0)", "0"),
        ("async def plan(title: str): await use_ui_tool(5)", ""),
        ("async def plan(title: str): await use_ui_tool('plan', display='big')", "'big'"),
    ],
)
async def test_what_is_no_question_is_told_to_the_engine(
    body: str, says: str, tmp_path: Path
) -> None:
    code = f"import asyncio\nfrom turnloom import use_ui_tool\n{body}\n"
    events = await play(tmp_path, asking(code))
    failed = only(events, "tool.failed")
    assert failed.error == "UsageError" and says in failed.message
    assert not every(events, "question.asked")


async def test_the_run_and_the_workflow_may_be_named(tmp_path: Path) -> None:
    code = """
        from turnloom import use_ui_tool
        async def plan(title: str, context_variables):
            return await use_ui_tool(
                "PlanCard",
                {"title": title},
                chat_id=context_variables["chat_id"],
                workflow_name=context_variables["workflow_name"],
            )
        """
    events = await play(tmp_path, asking(code), answering(YES))
    assert only(events, "question.asked").tool == "plan"
    assert only(events, "tool.returned").result == YES


@pytest.mark.parametrize(
    "body",
    [
        "try:\n        await use_ui_tool('one')\n    except BaseException:\n        pass",
        "try:\n        await use_ui_tool('one')\n    finally:\n        raise ValueError('mine')",
        "try:\n        await use_ui_tool('one')\n    except BaseException:\n"
        "        await use_ui_tool('two')",
        "try:\n        await use_ui_tool('one')\n    except BaseException:\n"
        "        await context_variables.once('sent', lambda: print('sent'))",
        "async with asyncio.TaskGroup() as group:\n        group.create_task(use_ui_tool('one'))",
    ],
)
async def test_whoever_catches_what_ends_the_call_cannot_go_on(body: str, tmp_path: Path) -> None:
    code = f"""
import asyncio
import json
from turnloom.log.spec import RunKey
from turnloom import use_ui_tool
async def plan(title: str, context_variables):
    context_variables["tried"] = True
    {body}
    return "went on"
"""
    world, run, _ = await asked(tmp_path, asking(code))
    events = await world.read(run)
    assert only(events, "question.asked").tool == "one"
    kinds = {event.kind for event in events}
    assert not kinds & {"tool.returned", "tool.failed", "effect.done", "context.changed"}


async def test_questions_of_tasks_of_a_tool_are_asked_one_after_the_other(tmp_path: Path) -> None:
    code = """
        import asyncio
        from turnloom import use_ui_tool
        async def plan(title: str):
            return await asyncio.gather(use_ui_tool("one"), use_ui_tool("two"))
        """
    events = await play(tmp_path, asking(code), answering(1, 2))
    assert [each.tool for each in every(events, "question.asked")] == ["one", "two"]
    assert only(events, "tool.returned").result == [1, 2]


async def test_an_effect_of_a_tool_is_not_repeated_when_it_is_entered_again(tmp_path: Path) -> None:
    code = """
        from turnloom import use_ui_tool
        done = []
        async def send(): done.append("mail"); return len(done)
        async def plan(title: str, context_variables):
            first = await context_variables.once("count", lambda: done.append("count") or "counted")
            one = await use_ui_tool("one")
            second = await context_variables.once("send", send)
            two = await use_ui_tool("two")
            return [first, one, second, two, done]
        """
    events = await play(tmp_path, asking(code), answering(1, 2))
    assert only(events, "tool.returned").result == ["counted", 1, 2, 2, ["count", "mail"]]
    assert [each.name for each in every(events, "effect.done")] == ["count", "send"]


HOOKS = """
    from turnloom import use_ui_tool
    async def ask(context_variables):
        answer = await use_ui_tool("gate", {"prompt": "Well?"})
        context_variables["said"] = [*context_variables.get("said", []), answer]
        return answer
    """
TRIGGERS = ["before_chat", "before_agent", "after_agent", "after_chat"]


def hooked(*triggers: str) -> dict[str, str]:
    hooks = [
        {"trigger": trigger, "agent": None, "file": "code.py", "function": "ask"}
        for trigger in triggers
    ]
    return solo(HOOKS, tools={"lifecycle_tools": hooks}, script=lines("Hello."))


async def test_hooks_at_every_point_ask_and_go_on_with_the_answer(tmp_path: Path) -> None:
    events = await play(tmp_path, hooked(*TRIGGERS), answering(*TRIGGERS))
    assert [(each.trigger, each.result) for each in every(events, "lifecycle.tool_result")] == [
        (trigger, trigger) for trigger in TRIGGERS
    ]
    assert last(events, "context.changed").value == TRIGGERS
    assert [len(every(events, kind)) for kind in ("turn.started", "question.asked")] == [1, 4]
    assert events[-1].kind == "run.finished"


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_a_run_is_cancelled_while_a_hook_waits(trigger: str, tmp_path: Path) -> None:
    """After the chat, the hook was told that the run finished, so it did."""
    world, run, id = await asked(tmp_path, hooked(trigger))
    async with Program(world) as program:
        assert await program.cancel(run, reason="enough")
        with pytest.raises(UsageError) as refused:
            await program.answer(run, "late", id)
    assert repr(id) in str(refused.value)
    events = await world.read(run)
    assert events[-1].kind == ("run.finished" if trigger == "after_chat" else "run.cancelled")
    assert only(events, "question.asked").question == id
    assert len({event.id for event in events}) == len(events)


async def test_a_run_is_cancelled_while_a_tool_waits(tmp_path: Path) -> None:
    code = (
        ASK
        + """
    async def mourn():
        return await use_ui_tool("mourn")
    """
    )
    hook = {"trigger": "after_chat", "agent": None, "file": "code.py", "function": "mourn"}
    tools = {
        "tools": [{"agent": "A", "file": "code.py", **PLAN}],
        "lifecycle_tools": [{**hook, "on": "failure"}],
    }
    world, run, _ = await asked(tmp_path, asking(code, tools=tools))
    async with Program(world) as program:
        assert await program.cancel(run)
    events = await world.read(run)
    assert events[-1].kind == "run.cancelled"
    assert only(events, "turn.finished").status == "cancelled"
    assert only(events, "lifecycle.tool_error").error == "UsageError"
    assert not every(events, "tool.returned")


def variable(trigger: Mapping[str, Any]) -> dict[str, Any]:
    triggers = [{"type": "ui_response", "response_key": "acceptance", **trigger}]
    source = {"type": "derived", "default": "pending", "triggers": triggers}
    definition = {"type": "string", "enum": ["pending", "accepted", "refused"], "source": source}
    return {"definitions": {"acceptance": definition}}


ROUTES = [
    {
        "source_agent": "A",
        "target_agent": "B",
        "handoff_type": "condition",
        "condition": 'acceptance is "accepted"',
    },
    {"source_agent": "A", "target_agent": "terminate", "handoff_type": "after_work"},
]
SETS = ASK.replace("return answer", 'context_variables.set("acceptance", answer["acceptance"])')


@pytest.mark.parametrize("word", ["plan", "PlanCard"])
@pytest.mark.parametrize("apply", ["auto", "tool"])
@pytest.mark.parametrize("given", ["accepted", "refused"])
async def test_an_answer_is_folded_before_the_next_route_is_decided(
    word: str, apply: str, given: str, tmp_path: Path
) -> None:
    files = asking(
        ASK if apply == "auto" else SETS,
        agents={"A": {}, "B": {}},
        context_variables=variable({"tool": word, "apply": apply}),
        handoffs=ROUTES,
        script={"agents": {**SCRIPT["agents"], "B": ["Fine."]}},
    )
    events = await play(tmp_path, files, answering({"acceptance": given}))
    change = only(events, "context.changed")
    writer = "trigger:acceptance[0]" if apply == "auto" else "tool:plan"
    assert (change.value, change.writer) == (given, writer)
    assert not every(events, "context.missed")
    speakers = [each.agent for each in every(events, "turn.started")]
    assert speakers == (["A", "B"] if given == "accepted" else ["A"])


async def test_an_answer_that_the_tool_does_not_take_over_is_noted(tmp_path: Path) -> None:
    files = asking(context_variables=variable({"tool": "PlanCard"}))
    events = await play(tmp_path, files, answering(YES))
    missed = only(events, "context.missed")
    assert (missed.name, missed.tool, missed.key, missed.value) == (
        "acceptance",
        "plan",
        "acceptance",
        "accepted",
    )
    assert not every(events, "context.changed")


async def test_code_that_changed_while_a_run_waits_does_not_change_what_it_was_called_with(
    tmp_path: Path,
) -> None:
    outputs = {
        "models": {"Plan": {"type": "model", "fields": {"title": {"type": "str"}}}},
        "registry": {"A": "Plan"},
    }
    tool = {**PLAN, "auto_invoke": True}
    script = lines({"output": {"title": "Mine"}})
    world, run, _ = await asked(
        tmp_path, asking(ASK, tool, structured_outputs=outputs, script=script)
    )
    write_folder(tmp_path, {"code.py": ASK.replace("title", "heading")})
    async with Program(world) as later:
        events = await attend(later, run, lambda question: YES)
    assert "`heading`" in only(events, "tool.failed").message
    assert last(events, "turn.finished").status == "failed"


@pytest.mark.parametrize("kind", ["tool", "hook"])
async def test_a_workflow_without_people_asks_nobody(kind: str, tmp_path: Path) -> None:
    """Who asks gets an error, and the run comes to its end."""
    code = """
        from turnloom import use_ui_tool
        async def f(): await use_ui_tool("f", {"title": "Well?"})
        """
    hooks = [{"trigger": "before_chat", "agent": None, "file": "code.py", "function": "f"}]
    parts: dict[str, Any] = {
        "orchestrator": {"startup_mode": "BackendOnly", "initial_agent": "A"},
        "handoffs": [
            {"source_agent": "A", "target_agent": "terminate", "handoff_type": "after_work"}
        ],
    }
    if kind == "tool":
        files = solo(code, "f", script=lines(call("f"), "Done."), **parts)
        failure = "tool.failed"
    else:
        files = solo(code, script=lines("Done."), **parts)
        files["tools.json"] = json.dumps({"lifecycle_tools": hooks})
        failure = "lifecycle.tool_error"
    events = await play(tmp_path, files)
    (failed,) = every(events, failure)
    assert failed.error == "UsageError" and "BackendOnly" in failed.message
    assert every(events, "question.asked") == []
    assert events[-1].kind == "run.finished"
