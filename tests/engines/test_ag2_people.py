"""Agents of AG2 that ask people, wait for them, and serve many of them at once."""

import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from ag2 import Agent, Context
from ag2.config import OpenAIConfig

from tests.support.folders import write_folder
from turnloom import Engine, Loom, Run, use_ui_tool
from turnloom.adapters.ag2 import AG2AgentEngine
from turnloom.agents.events import QuestionAsked
from turnloom.agents.spec import Answer, ToolCall
from turnloom.testing import LoopbackModel, ModelRequest, StalledReply
from turnloom.testing.contracts.facts import PATIENCE, until

FILES = {
    "orchestrator.yaml": "initial_message: A table for two.",
    "agents.yaml": "Host: {system_message: Book a table.}",
    "context_variables.yaml": """
        definitions:
          day: {type: string, source: {type: derived, default: none, triggers: []}}
          canary: {type: string, source: {type: derived, default: none, triggers: []}}
        agents: {Host: {variables: [day, app_id]}}
        """,
}


def host(model: LoopbackModel, *tools: Callable[..., Any], **how: Any) -> Engine:
    """An agent of AG2 with tools of its own."""
    config = OpenAIConfig("loopback", api_key="none", base_url=model.url, max_retries=0, **how)
    return AG2AgentEngine(lambda: Agent("host", config=config, tools=tools))


def calling(*names: str) -> Answer:
    return Answer(calls=tuple(ToolCall(name, {}, f"id-{name}") for name in names))


async def asked_in(run: Run) -> QuestionAsked:
    """The question that a run comes to."""
    with anyio.fail_after(PATIENCE):
        async for event in run.events():
            if isinstance(event.data, QuestionAsked):
                return event.data
    raise AssertionError("nobody was asked")


async def book(context: Context) -> str:
    """Book a table on the day that the guest says."""
    day = await context.input("Which day?")
    context.variables["day"] = day
    return f"booked for {day}"


async def test_who_is_asked_may_answer_another_process(tmp_path: Path) -> None:
    folder, store = write_folder(tmp_path, FILES), str(tmp_path / "turnloom.db")
    async with LoopbackModel([calling("book"), "See you on Friday."]) as model:
        async with Loom(store=store, engine=host(model, book)) as app:
            run = await app.start(folder)
            asked = await asked_in(run)
        assert (asked.tool, asked.prompt) == ("human_input", "Which day?")
        async with Loom(store=store, engine=host(model, book)) as app:
            resumed = await app.resume(run.id)
            await resumed.answer(asked.question, "Friday")
            with anyio.fail_after(PATIENCE):
                assert (await resumed.finished()).kind == "run.finished"
            events = await app.history.events(run.id, app_id=run.app_id)
    model.assert_complete()  # the model was not asked again for the call that is on record
    assert model.requests[1].results == ["booked for Friday"]
    (changed,) = [event.data for event in events if event.kind == "context.changed"]
    assert (changed.name, changed.value, changed.writer) == ("day", "Friday", "agent:Host")
    assert len([event for event in events if event.kind == "turn.started"]) == 1


async def test_who_asks_stops_the_tools_beside_it(tmp_path: Path) -> None:
    served, begun, stopped = anyio.Event(), anyio.Event(), anyio.Event()
    done: list[str] = []

    async def cook() -> str:
        """Cook as long as it takes."""
        begun.set()
        try:
            await served.wait()
        except anyio.get_cancelled_exc_class():
            done.append("stopped")
            stopped.set()
            raise
        done.append("cooked")
        return "cooked"

    async def taste() -> str:
        """Ask for a taste once it is cooking, as a tool of the workflow would."""
        await begun.wait()
        return str(await use_ui_tool("taste", {"prompt": "Hot?"}))

    folder = write_folder(tmp_path, FILES)
    async with LoopbackModel([calling("cook", "taste"), "Enjoy."]) as model:
        async with Loom(store="memory", engine=host(model, cook, taste)) as app:
            run = await app.start(folder)
            asked = await asked_in(run)
            with anyio.fail_after(PATIENCE):
                await stopped.wait()
            assert done == ["stopped"]
            served.set()
            await run.answer(asked.question, "Very.")
            with anyio.fail_after(PATIENCE):
                assert (await run.finished()).kind == "run.finished"
    assert done == ["stopped", "cooked"]
    assert model.requests[1].results == ["cooked", "Very."]


async def test_nobody_answers_in_time(tmp_path: Path) -> None:
    async def hurry(context: Context) -> str:
        return await context.input("Now?", timeout=0.02)

    folder = write_folder(tmp_path, FILES)
    async with LoopbackModel([calling("hurry")]) as model:
        async with Loom(store="memory", engine=host(model, hurry)) as app:
            run = await app.start(folder)
            with anyio.fail_after(PATIENCE):
                assert (await run.finished()).kind == "run.failed"
            (failed,) = [
                e.data
                for e in await app.history.events(run.id, app_id=run.app_id)
                if e.kind == "model.failed"
            ]
    # AG2 or the run notices first.
    assert re.search("human.input", failed.message)


async def test_a_call_that_was_cut_off_asks_only_for_what_is_not_on_record(tmp_path: Path) -> None:
    noted: list[str] = []

    def note() -> str:
        noted.append("noted")
        return "noted"

    folder, store = write_folder(tmp_path, FILES), str(tmp_path / "turnloom.db")
    async with LoopbackModel([calling("note"), StalledReply(), "Done."]) as model:
        async with Loom(store=store, engine=host(model, note)) as app:
            run = await app.start(folder)
            await until(lambda: len(model.requests) == 2)
        async with Loom(store=store, engine=host(model, note)) as app:
            resumed = await app.resume(run.id)
            with anyio.fail_after(PATIENCE):
                assert (await resumed.finished()).kind == "run.finished"
    model.assert_complete()
    assert model.requests[1].body == model.requests[2].body
    assert noted == ["noted"] * 2


async def test_what_tools_give_anew_is_another_request(tmp_path: Path) -> None:
    tries = count(1)

    def look() -> str:
        return f"look {next(tries)}"

    folder = write_folder(tmp_path, FILES)
    lines = [calling("look"), calling("book"), calling("book"), "Done."]
    async with LoopbackModel(lines) as model:
        async with Loom(store="memory", engine=host(model, look, book)) as app:
            run = await app.start(folder)
            asked = await asked_in(run)
            await run.answer(asked.question, "Friday")
            with anyio.fail_after(PATIENCE):
                assert (await run.finished()).kind == "run.finished"
    assert [request.results for request in model.requests] == [
        [],
        ["look 1"],
        ["look 2"],
        ["look 2", "booked for Friday"],
    ]


SECRET = """
definitions: {pin: {type: string, secret: true, source: {type: environment, env_var: PIN}}}
agents: {Host: {variables: [pin]}}
"""


async def test_secrets_are_shown_to_its_tools_and_are_not_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIN", "hush-4711")
    seen: list[str] = []

    def unlock(context: Context) -> str:
        seen.append(context.variables["pin"])
        return f"opened with {context.variables['pin']}"

    folder = write_folder(tmp_path, FILES | {"context_variables.yaml": SECRET})
    async with LoopbackModel([calling("unlock"), calling("book"), "Open."]) as model:
        async with Loom(store="memory", engine=host(model, unlock, book)) as app:
            run = await app.start(folder)
            asked = await asked_in(run)
            await run.answer(asked.question, "Friday")
            with anyio.fail_after(PATIENCE):
                assert (await run.finished()).kind == "run.finished"
            assert "hush-4711" not in repr(await app.history.events(run.id, app_id=run.app_id))
    model.assert_complete()
    assert seen == ["hush-4711"] * 2
    assert model.requests[2].results == ["opened with hush-4711", "booked for Friday"]


@pytest.mark.repeats
async def test_nothing_is_shared_between_runs(tmp_path: Path) -> None:
    mixed: list[str] = []

    async def answer(request: ModelRequest) -> Answer | str:
        await anyio.lowlevel.checkpoint()
        canaries = {*re.findall(r"canary-\d+-\w+", request.text)}
        mixed.extend([request.text] if len(canaries) > 1 else [])
        return request.results[0] if request.results else calling("sing")

    async def sing(context: Context) -> str:
        mine = f"{context.variables['user_id']}-{context.variables['app_id']}"
        context.variables["canary"] = mine
        await anyio.lowlevel.checkpoint()
        return context.variables["canary"]

    folder, tenants = write_folder(tmp_path, FILES), ("acme", "bolt")
    async with LoopbackModel(answer) as model:
        client = httpx2.AsyncClient(limits=httpx2.Limits(max_keepalive_connections=0))
        engine = host(model, sing, http_client=client)
        async with client, Loom(store="memory", engine=engine, slots=20) as app:
            names = [(f"canary-{n}", tenants[n % 2]) for n in range(20)]
            runs = [(await app.start(folder, user_id=u, app_id=a), u, a) for u, a in names]
            with anyio.fail_after(PATIENCE):
                for run, user, tenant in runs:
                    await run.finished()
                    found = [
                        event.data for event in await app.history.events(run.id, app_id=run.app_id)
                    ]
                    said = [each.text for each in found if each.kind == "agent.text"]
                    changed = [each.value for each in found if each.kind == "context.changed"]
                    assert said == changed == [f"{user}-{tenant}"]
    assert not mixed


MAKING = """
from ag2 import Agent, Context

def note(day: str, context: Context) -> str:
    context.variables["day"] = day
    return "noted"

def make_host():
    return Agent("host", "Be brief.", tools=[note])
"""
BY_FILE = {
    "agents.yaml": """
        Host:
          model: openai-chat:any
          engine: {type: ag2, file: host.py, function: make_host}
        """,
    "host.py": MAKING,
}


async def test_a_folder_says_who_makes_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path, FILES | BY_FILE)
    call = Answer(calls=(ToolCall("note", {"day": "Monday"}),))
    async with LoopbackModel([call, "Monday, then."]) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        async with Loom(store="memory") as app:
            run = await app.start(folder)
            with anyio.fail_after(PATIENCE):
                assert (await run.finished()).kind == "run.finished"
            events = await app.history.events(run.id, app_id=run.app_id)
    assert [e.data.value for e in events if e.kind == "context.changed"] == ["Monday"]
    (answered,) = [e.data for e in events if e.kind == "model.answered"]
    assert model.requests[0].body["model"] == "any"
    assert model.requests[0].tools == ["note"]
    assert "Be brief." in answered.added
