"""Features of turns in conversations."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.forms.cells import Cell, Refused, Works
from tests.parity.forms.stages import (
    FILES,
    Brings,
    Crowd,
    Loud,
    Sees,
    calls,
    counts,
    formed,
    hello,
    hide_an_order,
    insists,
    repeats,
    show_an_order,
    streams,
    talk,
    write,
)
from turnloom import Loom
from turnloom.testing import FakeToolServer, LoopbackModel

FILTER = {"context": {"filter": {"types": ["forms.Order"]}}}
TOOLS = {"tools": {"tools": [{"agent": "A", "file": "work.py", "function": "pack"}]}}


def by(function: str) -> dict[str, str]:
    """An engine that a function of the folder is."""
    return {"type": "functions", "file": "work.py", "function": function}


async def around_calls(on: bool, where: Path) -> Any:
    parts = {"components": [{"file": "work.py", "function": "loud"}]} if on else {}
    return (await talk(where, parts, code=FILES)).said


async def around_turns(on: bool, where: Path) -> Any:
    parts: dict[str, Any] = {"context": {"provider": "prepared", "fallback": "nothing"}}
    if on:
        parts["components"] = [{"file": "work.py", "function": "prepares"}]
    return (await talk(where, parts, code=FILES, engine=counts)).said


async def of_the_app(on: bool, where: Path) -> Any:
    return (await talk(where, components=[Loud()] if on else [])).said


async def observers(on: bool, where: Path) -> Any:
    sees = Sees()
    await talk(where, observers=[sees] if on else [])
    return "agent.text" in sees.kinds


async def chains(on: bool, where: Path) -> Any:
    parts: dict[str, Any] = (
        {"engines": [by("hello"), by("polish")]} if on else {"engine": by("hello")}
    )
    return (await talk(where, parts, code=FILES)).data("agent.text", "text")


async def own_context(on: bool, where: Path) -> Any:
    return (await talk(where, engine=Brings() if on else counts)).said


async def best_of(where: Path) -> Any:
    return await talk(where, {"best_of": 2})


async def labels(on: bool, where: Path) -> Any:
    parts = {**FILTER, "labels": ["staff"]} if on else FILTER
    return (await talk(where, parts, engine=counts, prepare=hide_an_order)).said


async def inherit(where: Path) -> Any:
    return await talk(where, {"inherit": True})


async def limits(on: bool, where: Path) -> Any:
    crowd = Crowd(1 if on else 2)
    limit = {"max_concurrency": 1} if on else {}
    folder = write(where, {"agents": {"A": {"system_message": "Hi.", **limit}}})
    async with Loom(store="memory", engine=crowd) as app:
        runs = await asyncio.gather(app.start(folder), app.start(folder))
        await asyncio.gather(*(run.finished() for run in runs))
    return crowd.most


async def instructions(on: bool, where: Path) -> Any:
    told = {"system_message": "Be kind."} if on else {}
    return "Be kind." in (await talk(where, told, engine=repeats)).said


async def models(on: bool, where: Path) -> Any:
    own = {"model": "openai-chat:two"} if on else {}
    return await asked(lambda: talk(where, own, engine=None, model="openai-chat:one"))


async def asked(play: Callable[[], Awaitable[Any]]) -> list[str]:
    """The models that are asked in a run."""
    async with LoopbackModel(["Done."]) as model:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", model.url)
            patch.setenv("OPENAI_API_KEY", "key")
            await play()
    return [request.body["model"] for request in model.requests]


async def hooks(on: bool, where: Path) -> Any:
    hook = {"trigger": "before_agent", "agent": "A", "file": "work.py", "function": "note"}
    parts = {"tools": {"lifecycle_tools": [hook]}} if on else {}
    return (await talk(where, parts=parts, code=FILES)).data("lifecycle.tool_result", "function")


async def message_hooks(on: bool, where: Path) -> Any:
    hook = {
        "hook_type": "process_message_before_send",
        "hook_agent": "A",
        "filename": "work.py",
        "function": "shout",
    }
    return (await talk(where, parts={"hooks": [hook]} if on else {}, code=FILES)).said


async def variables(on: bool, where: Path) -> Any:
    tier = {"type": "string", "source": {"type": "static", "value": "gold"}}
    parts = {"definitions": {"tier": tier}, "agents": {"A": {"variables": ["tier"]}}}
    seen = await talk(where, parts={"context_variables": parts} if on else {}, engine=repeats)
    return "gold" in seen.said


async def budgets(on: bool, where: Path) -> Any:
    parts = {"orchestrator": {"guards": {"budget": {"model_calls": 1}}}} if on else {}
    seen = await talk(where, parts={**parts, **TOOLS}, code=FILES, engine=calls)
    return "budget.exceeded" in seen.kinds


async def loops(on: bool, where: Path) -> Any:
    detection = {"loop_detection": {"window": 2, "then": "stop"}}
    rules = [{"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}]
    setup = {"max_turns": 4, **({"guards": detection} if on else {})}
    seen = await talk(where, parts={"orchestrator": setup, "handoffs": rules})
    return "loop.detected" in seen.kinds


async def selection(on: bool, where: Path) -> Any:
    guards = {"selection": {"candidates": ["A", "B"], "exclude": ["A"]}}
    agents = {"A": {"system_message": "Hi."}, "B": {"system_message": "Ho."}}
    setup: dict[str, Any] = {"initial_agent": "A", **({"guards": guards} if on else {})}
    rules = [{"source_agent": "A", "target_agent": "terminate", "handoff_type": "after_work"}]
    rules += [{"source_agent": "B", "target_agent": "terminate", "handoff_type": "after_work"}]
    parts = {"agents": agents, "orchestrator": setup, "handoffs": rules}
    return (await talk(where, parts=parts)).data("turn.started", "agent")


async def sources(on: bool, where: Path) -> Any:
    chosen = {"sources": [{"literal": "Cite."}], "budget": {"max_tokens": 50}}
    parts = {"context": chosen} if on else {}
    return "Cite." in (await talk(where, parts, engine=repeats)).said


async def providers(on: bool, where: Path) -> Any:
    return (await talk(where, FILTER if on else {}, engine=counts, prepare=show_an_order)).said


async def tools(on: bool, where: Path) -> Any:
    seen = await talk(where, parts=TOOLS if on else {}, code=FILES, engine=calls)
    return seen.data("tool.returned", "result")


async def tool_rounds(on: bool, where: Path) -> Any:
    limit = {"max_tool_rounds": 1} if on else {}
    seen = await talk(where, limit, TOOLS, FILES, engine=insists)
    return len(seen.data("tool.returned", "result"))


async def servers(on: bool, where: Path) -> Any:
    parts = {"tools": {"mcp_servers": [{"name": "mine", "agent": "A", "command": ["x"]}]}}
    server = FakeToolServer()
    seen = await talk(where, parts=parts if on else {}, connect=lambda *_: server)
    return seen.data("tools.offered", "server")


async def questions(on: bool, where: Path) -> Any:
    function = "confirm" if on else "pack"
    parts = {"tools": {"tools": [{"agent": "A", "file": "work.py", "function": function}]}}
    seen = await talk(where, parts=parts, code=FILES, engine=calls)
    return seen.data("question.answered", "value")


async def outputs(on: bool, where: Path) -> Any:
    models = {"models": {"Parcel": {"type": "model", "fields": {"item": {"type": "str"}}}}}
    given = {"registry": {"A": "Parcel"}} if on else {"registry": {}}
    seen = await talk(where, parts={"structured_outputs": {**models, **given}}, engine=formed)
    return seen.data("agent.output", "output")


async def streaming(on: bool, where: Path) -> Any:
    return (await talk(where, engine=streams if on else hello)).heard


AGENT = "write-a-workflow.md#agents"
CONVERSATION: dict[str, Cell] = {
    "instructions": Works("`system_message`, `prompt_sections`", AGENT, instructions, False, True),
    "models by name": Works("`model`", "engines.md#models", models, ["one"], ["two"]),
    "engines one after the other": Works(
        "`engines`", "engines.md#one-after-the-other", chains, ["hello"], ["hello!"]
    ),
    "an engine's own context": Works(
        "`Loom(engine=…)`", "context-providers.md", own_context, "0", "1"
    ),
    "best of several tries": Refused(
        "everybody in the conversation would hear each try", "W074", best_of
    ),
    "components around calls": Works(
        "`components`", "components.md", around_calls, "hello", "HELLO"
    ),
    "components around turns": Works("`components`", "components.md", around_turns, "0", "1"),
    "components of the app": Works(
        "`Loom(components=…)`", "components.md#of-the-app", of_the_app, "hello", "HELLO"
    ),
    "observers of the app": Works("`Loom(observers=…)`", "observers.md", observers, False, True),
    "labels": Works("`labels`", AGENT, labels, "0", "1"),
    "labels that outputs inherit": Refused(
        "what is said is heard by everybody in the conversation", "W074", inherit
    ),
    "concurrency limits": Works("`max_concurrency`", AGENT, limits, 2, 1),
    "variables": Works("`context_variables`", "context-variables.md", variables, False, True),
    "lifecycle hooks": Works("`lifecycle_tools`", "hooks.md", hooks, [], ["note"]),
    "message hooks": Works("`hooks`", "hooks.md", message_hooks, "hello", "HELLO"),
    "run budgets": Works("`guards.budget`", "guards.md", budgets, False, True),
    "loop detection": Works("`guards.loop_detection`", "guards.md", loops, False, True),
    "selection": Works("`guards.selection`", "selection.md", selection, ["A"], ["B"]),
    "context providers": Works("`context`", "context-providers.md", providers, "0", "1"),
    "sources and token budgets": Works("`context.sources`", "sources.md", sources, False, True),
    "tools": Works("`tools`", "tools.md", tools, [], ["packed"]),
    "rounds of tool calls": Works("`max_tool_rounds`", AGENT, tool_rounds, 8, 1),
    "tool servers": Works("`mcp_servers`", "tools.md", servers, [], ["mine"]),
    "questions": Works("`use_ui_tool`", "questions.md", questions, [], [{"sure": True}]),
    "outputs": Works("`structured_outputs`", "tools.md", outputs, [], [{"item": "tea"}]),
    "streaming": Works("`run.listening`", "runs.md", streaming, [], ["hel", "lo"]),
}
