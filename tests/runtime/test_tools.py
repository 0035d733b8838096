"""Tools: what an engine is told of them, how they are called, and what comes of them."""

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support import stage
from tests.support.checks import examined
from tests.support.folders import write_folder
from tests.support.plays import call, every, last, lines, only, play, serving, solo, until
from tests.support.programs import Refusing, begin, drive, make_world, refitted
from turnloom import Loom
from turnloom.agents.spec import Answer, Task, ToolCall
from turnloom.errors import Conflict, LogError, StoreUnavailable
from turnloom.log.spec import Event
from turnloom.testing import ScriptedEngine

TYPED = '''
    from __future__ import annotations

    from dataclasses import dataclass
    from datetime import date, datetime, timedelta
    from enum import Enum
    from typing import Annotated, Literal

    from pydantic import BaseModel, Field
    from turnloom import Context

    class Tone(Enum):
        FLAT = "flat"
        WARM = "warm"

    class Guest(BaseModel):
        name: str
        tags: list[str] = []

    @dataclass
    class Seat:
        row: int
        taken_at: datetime

    def invite(
        guest: Guest,
        day: date,
        note: str | None = None,
        tone: Tone = Tone.WARM,
        size: Literal["s", "m"] = "s",
        count: Annotated[int, Field(ge=1, description="How many.")] = 1,
        *,
        ctx: Context,
        context_variables,
    ):
        """Invite somebody.

        On a day."""
        return [guest, day, note, tone, size, count, Seat(3, datetime(2026, 1, 2)),
                timedelta(seconds=90), {"set"}]
    '''


class Noting:
    """An engine that follows a script and keeps what it was given."""

    def __init__(self, *answers: Answer | str) -> None:
        self.engine = ScriptedEngine({"A": answers})

    async def __call__(self, task: Task) -> Answer:
        return await self.engine(task)

    @property
    def tasks(self) -> list[Task]:
        return self.engine.calls


def calling(tool: str, **arguments: Any) -> Answer:
    return Answer(calls=(ToolCall(tool, arguments),))


def ended(events: list[Event]) -> str:
    """How the last turn ended."""
    return last(events, "turn.finished").error


async def test_the_schema_of_a_tool_comes_from_its_signature(tmp_path: Path) -> None:
    engine = Noting(calling("invite", guest={"name": "Ann"}, day="2026-05-01"), "Done.")
    events = await play(tmp_path, solo(TYPED, "invite"), engine=engine)
    (schema,) = engine.tasks[0].tools
    assert (schema.name, schema.description) == ("invite", "Invite somebody.\n\nOn a day.")
    keys = schema.parameters["properties"]
    assert set(keys) == {"guest", "day", "note", "tone", "size", "count"}
    assert schema.parameters["required"] == ["guest", "day"]
    assert schema.parameters["additionalProperties"] is False
    assert schema.parameters["$defs"]["Guest"]["required"] == ["name"]
    assert keys["day"] == {"format": "date", "type": "string"}
    assert keys["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert keys["tone"] == {"$ref": "#/$defs/Tone", "default": "warm"}
    assert keys["size"] == {"default": "s", "enum": ["s", "m"], "type": "string"}
    assert keys["count"] == {
        "default": 1,
        "description": "How many.",
        "minimum": 1,
        "type": "integer",
    }
    guest = {"name": "Ann", "tags": []}
    seat = {"row": 3, "taken_at": "2026-01-02T00:00:00"}
    told = [guest, "2026-05-01", None, "warm", "s", 1, seat, "PT1M30S", ["set"]]
    assert only(events, "tool.returned").result == told
    assert engine.tasks[1].exchanges[0].results[0].value == told


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        (call("add", a="x"), "ValueError", "`a`"),
        (call("add"), "ValueError", "`a`"),
        (call("add", a=1, c=2), "ValueError", "`c`"),
        (call("ad", a=1), "UnknownTool", "add, fail, odd"),
        (call("fail"), "RuntimeError", "no luck"),
        (call("leave"), "SystemExit", "3"),
        (call("give_up"), "CancelledError", ""),
        (call("hurry"), "TimeoutError", "in its own words"),
        (call("mute"), "Mute", "KeyError"),
        (call("odd"), "TypeError", "JSON"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_engine_and_the_turn_goes_on(
    asked: dict[str, Any], error: str, says: str, tmp_path: Path
) -> None:
    code = """
        import asyncio, sys
        def add(a: int, b: int = 2): return a + b
        def fail(): raise RuntimeError("no luck")
        def odd(): return object()
        def leave(): sys.exit(3)
        async def give_up(): raise asyncio.CancelledError
        async def hurry(): raise TimeoutError("in its own words")
        class Mute(Exception):
            def __str__(self): return {}["nothing"]
        def mute(): raise Mute
        """
    engine = Noting(calling(asked["tool"], **asked["arguments"]), calling("add", a=1), "Done.")
    tools = ["add", "fail", "odd", "leave", "give_up", "hurry", "mute"]
    events = await play(tmp_path, solo(code, *tools), engine=engine)
    failed = only(events, "tool.failed")
    assert (failed.tool, failed.error) == (asked["tool"], error)
    assert says in failed.message
    (result,) = engine.tasks[1].exchanges[0].results
    assert result.error == f"{error}: {failed.message}"
    assert only(events, "tool.returned").result == 3
    assert (ended(events), events[-1].kind) == ("", "run.finished")


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("named", "ctx"),
        ("typed", "where"),
        ("both", "context_variables"),
        ("open_to_all", "ctx"),
        ("closed", "context_variables"),
    ],
)
async def test_a_model_cannot_give_a_tool_its_context(tool: str, name: str, tmp_path: Path) -> None:
    code = """
        from turnloom import Context
        def named(ctx, **kwargs): return [ctx["user_id"], kwargs]
        def typed(where: Context, **kwargs): return [where["user_id"], kwargs]
        def both(context_variables, a: int = 1, **kwargs):
            return [context_variables["user_id"], kwargs]
        def open_to_all(**kwargs): return ["u1", kwargs]
        def closed(context_variables): return [context_variables["user_id"], {"b": 2}]
        """
    forged = calling(tool, **{name: {"user_id": "root"}})
    right = calling(tool, **({} if tool == "closed" else {"b": 2}))
    engine = Noting(forged, right, "Done.")
    events = await play(tmp_path, solo(code, tool), engine=engine)
    failed = only(events, "tool.failed")
    assert failed.error == "ValueError" and f"`{name}`" in failed.message
    (told,) = engine.tasks[1].exchanges[0].results
    assert f"`{name}`" in told.error
    user, rest = only(events, "tool.returned").result
    assert user != "root" and rest == {"b": 2}


async def test_only_what_is_given_from_outside_needs_a_type_that_is_there(tmp_path: Path) -> None:
    code = """
        def typed(a: "int", context_variables: "Nothing") -> "Nobody":
            return a + len(context_variables["user_id"])
        """
    events = await play(tmp_path, solo(code, "typed", script=lines(call("typed", a="1"), "Done.")))
    assert only(events, "tool.returned").result == 3
    is_right, (problem,) = examined(
        write_folder(tmp_path, solo("def typed(a: 'Nothing'): pass", "typed"), "Wrong")
    )
    assert not is_right and problem.code == "W049"
    assert "'Nothing'" in problem.message


@pytest.mark.parametrize("hint", ["TypedDict('T', {'b': int})", "Callable[[], int]", "object()"])
def test_a_type_that_json_cannot_have_is_a_problem_of_the_folder(tmp_path: Path, hint: str) -> None:
    code = f"""
        from collections.abc import Callable
        from typing import TypedDict
        def typed(a: {hint}): return a
        """
    is_right, (problem,) = examined(write_folder(tmp_path, solo(code, "typed")))
    assert not is_right and problem.code == "W049"


async def test_an_engine_that_makes_too_many_mistakes_ends_its_turn(tmp_path: Path) -> None:
    code = "def add(a: int): return a"
    engine = Noting(*[calling("add", a="x")] * 9)
    events = await play(tmp_path, solo(code, "add"), engine=engine)
    assert len(engine.tasks) == 4
    assert ended(events).startswith("TooManyMistakes: ValueError: ")
    assert events[-1].kind == "run.failed"


async def test_an_engine_has_as_many_rounds_of_calls_as_it_is_given(tmp_path: Path) -> None:
    code = "def add(a: int): return a"
    agents = {"A": {"max_tool_rounds": 2}}
    files = solo(code, "add", agents=agents)
    engine = Noting(calling("add", a=1), calling("add", a=2), "Done.")
    assert ended(await play(tmp_path / "enough", files, engine=engine)) == ""
    engine = Noting(*(calling("add", a=n) for n in range(9)))
    events = await play(tmp_path / "more", files, engine=engine)
    assert ended(events).startswith("TooManyRounds: ") and "2" in ended(events)
    assert [each.result for each in every(events, "tool.returned")] == [0, 1]


async def test_wrong_outputs_between_rounds_of_calls_give_no_further_rounds(tmp_path: Path) -> None:
    agents = {"A": {"max_tool_rounds": 1, "structured_outputs": "M"}}
    outputs = {"models": {"M": {"type": "model", "fields": {"a": {"type": "int"}}}}}
    files = solo("def add(a: int): return a", "add", agents=agents, structured_outputs=outputs)
    engine = Noting(calling("add", a=1), '{"a": "x"}', *[calling("add", a=1)] * 9)
    events = await play(tmp_path, files, engine=engine)
    assert ended(events).startswith("TooManyRounds")
    assert len(engine.tasks) == 3


async def test_a_handoff_can_be_chosen_when_no_round_is_left(tmp_path: Path) -> None:
    rule = {
        "source_agent": "A",
        "target_agent": "terminate",
        "handoff_type": "condition",
        "condition_type": "string_llm",
        "condition": "It is done.",
    }
    agents = {"A": {"max_tool_rounds": 1}}
    files = solo("def add(a: int): return a", "add", agents=agents, handoffs=[rule])
    engine = Noting(calling("add", a=1), calling("transfer_to_terminate_1"))
    events = await play(tmp_path, files, engine=engine)
    assert last(events, "route.decided").reason == "string_llm rule 1"


@pytest.mark.parametrize(
    "kind", ["async def slow(): await asyncio.sleep(60)", "def slow(): stage.kept['over'].wait(60)"]
)
async def test_a_tool_has_its_time_and_no_more(kind: str, tmp_path: Path) -> None:
    code = f"import asyncio\nfrom tests.support import stage\n{kind}\n"
    files = solo(code, {"function": "slow", "timeout_s": 0.05}, script=lines(call("slow"), "Done."))
    over = stage.kept["over"] = threading.Event()
    try:
        events = await play(tmp_path, files)
    finally:
        over.set()
    failed = only(events, "tool.failed")
    assert failed.error == "TimeoutError" and "0.05" in failed.message
    assert events[-1].kind == "run.finished"


async def test_a_sync_tool_does_not_hold_the_loop(tmp_path: Path) -> None:
    """It waits for one that runs in the loop."""
    code = """
        import threading
        met = threading.Event()
        def where():
            assert met.wait(60)
            return threading.current_thread() is threading.main_thread()
        async def here():
            met.set()
            return threading.current_thread() is threading.main_thread()
        """
    asked = [call("where"), call("here")]
    events = await play(tmp_path, solo(code, "where", "here", script=lines(asked, "Done.")))
    results = {each.tool: each.result for each in every(events, "tool.returned")}
    assert results == {"where": False, "here": True}


MEETING = """
    import asyncio
    met = asyncio.Event()

    async def wait(context_variables):
        await met.wait()
        context_variables["last"] = "wait"
        context_variables["who"] = [*context_variables.get("who", []), "wait"]
        return "waited"

    async def meet(context_variables):
        met.set()
        context_variables["last"] = "meet"
        return "met"
    """


async def test_tools_of_one_answer_run_side_by_side_and_the_last_call_has_the_last_word(
    tmp_path: Path,
) -> None:
    files = solo(MEETING, "wait", "meet", script=lines([call("wait"), call("meet")], "Done."))
    events = await play(tmp_path, files)
    kinds = [event.kind for event in events if event.kind.startswith("tool.")]
    assert kinds == ["tool.called", "tool.called", "tool.returned", "tool.returned"]
    changes = [(each.name, each.value, each.writer) for each in every(events, "context.changed")]
    assert [value for name, value, _ in changes if name == "last"][-1] == "meet"
    assert ("who", ["wait"], "tool:wait") in changes


async def test_a_tool_that_fails_beside_another_stops_nothing(tmp_path: Path) -> None:
    code = """
        import asyncio
        async def slow(context_variables):
            for _ in range(9): await asyncio.sleep(0)
            context_variables["done"] = True
            return "slow"
        async def fail(context_variables):
            context_variables["tried"] = True
            raise RuntimeError("at once")
        """
    files = solo(code, "slow", "fail", script=lines([call("fail"), call("slow")], "Done."))
    events = await play(tmp_path, files)
    assert only(events, "tool.failed").tool == "fail"
    assert only(events, "tool.returned").result == "slow"
    assert [each.name for each in every(events, "context.changed")] == ["tried", "done"]


@pytest.mark.parametrize("error", [Conflict("lost"), StoreUnavailable("full")])
@pytest.mark.parametrize("kind", ["effect.done", "tool.returned"])
async def test_trouble_with_the_store_comes_as_it_is_from_among_many_calls(
    kind: str, error: LogError, tmp_path: Path
) -> None:
    code = """
        async def effect(context_variables): return await context_variables.once("it", lambda: 1)
        async def plain(): return 2
        """
    asked = [call("plain"), call("effect"), call("plain")]
    world = make_world()
    run = await begin(
        world, write_folder(tmp_path, solo(code, "effect", "plain", script=lines(asked, "Done.")))
    )
    refusing = refitted(world, log=Refusing(world.store.log, kind, error))
    with pytest.raises(type(error)):
        await drive(refusing, run)
    await drive(world, run)
    results = [each.result for each in every(await world.read(run), "tool.returned")]
    assert sorted(results) == [1, 2, 2]


async def test_a_tool_that_is_done_is_not_called_again_though_another_was_cut_off(
    tmp_path: Path,
) -> None:
    code = f"""
        import asyncio, pathlib
        calls = pathlib.Path({str(tmp_path / "calls")!r})

        async def slow(context_variables):
            if not calls.exists() or "slow" not in calls.read_text():
                with calls.open("a") as file: file.write("slow ")
                await asyncio.Event().wait()
            context_variables["last"] = "slow"

        async def fast(context_variables):
            with calls.open("a") as file: file.write("fast ")
            context_variables["last"] = "fast"
        """
    asked = [call("slow"), call("fast")]
    files = solo(code, "slow", "fast", script=lines(asked, "Done."))
    world = make_world()
    async with serving(world) as app:
        run = await app.start(write_folder(tmp_path, files), user_id="u1")
        await until(run, "tool.returned")
    await drive(world, run.id)
    events = await world.read(run.id)
    assert events[-1].kind == "run.finished"
    assert (tmp_path / "calls").read_text("utf-8") == "slow fast "
    assert [each.value for each in every(events, "context.changed")] == ["slow", "fast"]


async def test_a_run_is_cancelled_while_tools_run(tmp_path: Path) -> None:
    code = """
        import asyncio
        async def stay(): await asyncio.Event().wait()
        """
    files = solo(code, "stay", script=lines([call("stay"), call("stay")], "Done."))
    world = make_world()
    async with serving(world) as app:
        run = await app.start(write_folder(tmp_path, files), user_id="u1")
        await until(run, "tool.called")
        assert await run.cancel(by="u1")
        await until(run, "run.cancelled")
    events = await world.read(run.id)
    assert only(events, "turn.finished").status == "cancelled"
    assert len(every(events, "tool.called")) == 2


async def test_a_large_result_is_kept_and_told_whole(tmp_path: Path) -> None:
    code = "def large(): return ['x' * 1000] * 3000"
    engine = Noting(calling("large"), "Done.")
    events = await play(tmp_path, solo(code, "large"), engine=engine)
    assert len(only(events, "tool.returned").result) == 3000
    assert engine.tasks[1].exchanges[0].results[0].value == ["x" * 1000] * 3000


OUTPUTS = {
    "models": {
        "Plan": {
            "type": "model",
            "fields": {"title": {"type": "str"}, "steps": {"type": "list", "items": "str"}},
        }
    },
    "registry": {"A": "Plan"},
}
PLAN = {"title": "T", "steps": ["a"]}
KEEP = """
    from pydantic import BaseModel

    class Plan(BaseModel):
        title: str
        steps: list[str]

    def by_name(title: str, steps: list[str]): return [title, *steps]
    def part(title: str): return title
    def whole(plan: Plan): return plan
    def rest(**kwargs): return kwargs
    def picky(title: str):
        if title != "Good":
            raise ValueError(f"{title} is no title")
        return title
    """


@pytest.mark.parametrize("mode", ["auto_invoke", "auto_tool_mode"])
@pytest.mark.parametrize(
    ("function", "result"),
    [("by_name", ["T", "a"]), ("part", "T"), ("whole", PLAN), ("rest", PLAN)],
)
async def test_a_tool_takes_the_output_of_its_agent(
    mode: str, function: str, result: Any, tmp_path: Path
) -> None:
    agent = {"auto_tool_mode": True} if mode == "auto_tool_mode" else {}
    tool = {"function": function, "auto_invoke": mode == "auto_invoke"}
    files = solo(KEEP, tool, agents={"A": agent}, structured_outputs=OUTPUTS)
    engine = Noting(Answer(output=PLAN))
    events = await play(tmp_path, files, engine=engine)
    assert engine.tasks[0].tools == ()
    assert only(events, "agent.output").output == PLAN
    assert only(events, "tool.returned").result == result
    assert len(engine.tasks) == 1


async def test_an_output_that_is_wrong_is_told_and_kept_and_asked_for_again(tmp_path: Path) -> None:
    tool = {"function": "picky", "auto_invoke": True}
    files = solo(KEEP, tool, structured_outputs=OUTPUTS)
    good = {"title": "Good", "steps": []}
    engine = Noting(
        "In words.",
        '{"title": 5}',
        '```json\n{"title": "Bad", "steps": []}\n```',
        Answer(output=good),
    )
    events = await play(tmp_path, files, engine=engine)
    assert [each.raw for each in every(events, "model.answered")] == [
        "In words.",
        '{"title": 5}',
        "",
        "",
    ]
    refused = [each.problem for each in every(events, "output.refused")]
    assert [each.problem for each in engine.tasks[3].exchanges] == [
        *refused,
        engine.tasks[3].exchanges[-1].problem,
    ]
    assert "ValueError: Bad is no title" in engine.tasks[3].exchanges[-1].problem
    assert [each.text for each in engine.tasks[2].exchanges] == ["In words.", '{"title": 5}']
    assert only(events, "tool.returned").result == "Good"
    assert events[-1].kind == "run.finished"


async def test_outputs_that_stay_wrong_end_the_turn(tmp_path: Path) -> None:
    files = solo(KEEP, {"function": "part", "auto_invoke": True}, structured_outputs=OUTPUTS)
    engine = Noting(*["no"] * 9)
    events = await play(tmp_path, files, engine=engine)
    assert (len(engine.tasks), events[-1].kind) == (4, "run.failed")
    assert ended(events).startswith("TooManyMistakes: ")


async def test_an_output_that_is_not_required_may_be_words(tmp_path: Path) -> None:
    agents = {"A": {"structured_outputs_required": False}}
    files = solo(
        KEEP, {"function": "part", "auto_invoke": True}, structured_outputs=OUTPUTS, agents=agents
    )
    events = await play(tmp_path, files, engine=Noting("In words."))
    assert only(events, "agent.text").text == "In words."
    assert not every(events, "tool.called")


async def test_an_agent_that_calls_its_tools_itself_and_gives_an_output(tmp_path: Path) -> None:
    tools = [{"function": "part"}, {"function": "whole", "auto_invoke": True}]
    files = solo(KEEP, *tools, structured_outputs=OUTPUTS)
    engine = Noting(calling("part", title="x"), Answer(output=PLAN))
    events = await play(tmp_path, files, engine=engine)
    assert [schema.name for schema in engine.tasks[0].tools] == ["part"]
    assert [each.tool for each in every(events, "tool.returned")] == ["part", "whole"]


SECRET = {
    "definitions": {
        "token": {
            "type": "string",
            "secret": True,
            "source": {"type": "environment", "env_var": "TOKEN"},
        },
        "mood": {"type": "string", "source": {"type": "derived", "default": "calm " * 60}},
        "unseen": {"type": "string", "source": {"type": "derived", "default": "x"}},
    },
    "agents": {"A": {"variables": ["token", "mood"]}},
}


async def test_a_secret_reaches_the_tool_and_nothing_that_is_written(tmp_path: Path) -> None:
    code = """
        seen = []
        def send(header: str, token: str):
            assert (header, token) == ("Bearer s3cr3t-value", "s3cr3t-value"), (header, token)
            return {"sent": header}
        """
    files = solo(code, "send", context_variables=SECRET)
    engine = Noting(calling("send", header="Bearer s3cr3t-value", token="s3cr3t-value"), "Done.")
    world = make_world(engine, env={"TOKEN": "s3cr3t-value"})
    run = await begin(world, write_folder(tmp_path, files))
    await drive(world, run)
    events = await world.read(run)
    assert "s3cr3t" in engine.tasks[0].system
    assert only(events, "tool.called").arguments == {
        "header": "Bearer ⟨secret:token⟩",
        "token": "⟨secret:token⟩",
    }
    assert only(events, "tool.returned").result == {"sent": "Bearer ⟨secret:token⟩"}
    assert not any("s3cr3t" in repr(event.data) for event in events)


async def test_every_agent_can_have_a_digest_of_what_it_may_see(tmp_path: Path) -> None:
    files = solo(
        "",
        agents={"A": {"tools": ["context_digest"]}},
        context_variables=SECRET,
        script=lines(call("context_digest"), "Done."),
    )
    world = make_world(env={"TOKEN": "s3cr3t-value"})
    run = await begin(world, write_folder(tmp_path, files))
    await drive(world, run)
    told = only(await world.read(run), "tool.returned").result
    assert set(told) == {"token", "mood"}
    assert told["token"] == "secret"
    assert len(told["mood"]) == 120 and told["mood"].endswith("…")


async def test_runs_of_one_folder_share_what_its_modules_hold(tmp_path: Path) -> None:
    """A pool or a cache of a module is made once in a process, not once a run."""
    code = """
        calls = []

        def count():
            calls.append(1)
            return len(calls)
        """
    folder = write_folder(tmp_path, solo(code, "count", script=lines(call("count"), "Done.")))
    async with Loom(store="memory") as app:
        for number in (1, 2):
            run = await app.start(folder)
            await run.finished()
            assert only(await app.history.events(run.id), "tool.returned").result == number
