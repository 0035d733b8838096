"""Features of turns in flows."""

import asyncio
from pathlib import Path
from typing import Any

from tests.parity.forms.boards import nothing
from tests.parity.forms.cells import Cell, Refused, Works
from tests.parity.forms.stages import (
    Ask,
    Brings,
    Crowd,
    Loud,
    Parcel,
    Prepares,
    Sees,
    Work,
    calls,
    close,
    confirm,
    counts,
    formed,
    hello,
    hide_an_order,
    insists,
    note,
    pack,
    polish,
    repeats,
    show_an_order,
    streams,
    tries,
    walk,
)
from tests.parity.forms.talks import asked
from turnloom import (
    Budget,
    FilteredContextProvider,
    Flow,
    Loom,
    Selection,
    StateDelegatingProvider,
    from_literal,
    from_provider,
)
from turnloom.board.spec import FilterConfig
from turnloom.testing import FakeToolServer

SHELF = FilteredContextProvider(FilterConfig(types={"forms.Order"}))


def with_tools(*tools: Any, rounds: int | None = None) -> Ask:
    """The step with tools."""

    class Uses(Ask):
        pass

    Uses.tools = tools
    if rounds is not None:
        Uses.max_tool_rounds = rounds
    return Uses()


async def around_calls(on: bool, where: Path) -> Any:
    return (await walk(Ask().with_components(Loud()) if on else Ask())).said


async def around_turns(on: bool, where: Path) -> Any:
    step = Ask().with_components(Prepares()) if on else Ask()
    gives = from_provider(StateDelegatingProvider(), fallback=nothing)
    seen = await walk(step, context=[gives], app={"engine": repeats})
    return "prepared" in seen.said


async def of_the_app(on: bool, where: Path) -> Any:
    return (await walk(app={"components": [Loud()] if on else []})).said


async def observers(on: bool, where: Path) -> Any:
    sees = Sees()
    await walk(app={"observers": [sees] if on else []})
    return "agent.text" in sees.kinds


async def chains(on: bool, where: Path) -> Any:
    seen = await walk(Ask().with_engines(*((hello, polish) if on else (hello,))))
    return seen.data("agent.text", "text")


async def own_context(on: bool, where: Path) -> Any:
    return (await walk(app={"engine": Brings() if on else counts})).said


async def best_of(on: bool, where: Path) -> Any:
    step = Ask().best_of(2, lambda answer: len(answer.text)) if on else Ask()
    seen = await walk(step, app={"engine": tries})
    return seen.data("step.completed", "update")[0]["text"]


async def labels(on: bool, where: Path) -> Any:
    step = Ask().labels("staff") if on else Ask()
    seen = await walk(
        step, context=[from_provider(SHELF)], app={"engine": repeats}, prepare=hide_an_order
    )
    return "secret" in seen.said


async def inherit(where: Path) -> Any:
    settings: Any = {"inherit": True}
    return await walk(**settings)


async def limits(on: bool, where: Path) -> Any:
    crowd = Crowd(1 if on else 2)
    step = Ask().max_concurrency(1) if on else Ask()
    built = Flow("walk", Work).start_with(step).finally_(close)
    async with Loom(store="memory", engine=crowd) as app:
        await asyncio.gather(app.run(built, Work()), app.run(built, Work()))
    return crowd.most


async def instructions(on: bool, where: Path) -> Any:
    class Kind(Ask):
        def instructions(self) -> str:
            return "Be kind." if on else "Be."

    return "Be kind." in (await walk(Kind(), app={"engine": repeats})).said


async def models(on: bool, where: Path) -> Any:
    class Asks(Ask):
        model = "openai-chat:two" if on else None

    return await asked(lambda: walk(Asks(), app={"engine": None, "model": "openai-chat:one"}))


async def hooks(on: bool, where: Path) -> Any:
    hook = {"trigger": "before_agent", "agent": "A", "function": note}
    seen = await walk(flow={"hooks": [hook] if on else []})
    return seen.data("lifecycle.tool_result", "function")


async def message_hooks(where: Path) -> Any:
    hook = {"trigger": "process_message_before_send", "agent": "A", "function": note}
    return await walk(flow={"hooks": [hook]})


async def variables(on: bool, where: Path) -> Any:
    tier = {"type": "string", "source": {"type": "static", "value": "gold"}}
    said = {"definitions": {"tier": tier}, "agents": {"A": {"variables": ["tier"]}}}
    seen = await walk(flow={"variables": said if on else {}}, app={"engine": repeats})
    return "gold" in seen.said


async def budgets(on: bool, where: Path) -> Any:
    guards = {"budget": {"model_calls": 1}} if on else None
    seen = await walk(with_tools(pack), {"guards": guards}, app={"engine": calls})
    return "budget.exceeded" in seen.kinds


async def loops(on: bool, where: Path) -> Any:
    guards = {"loop_detection": {"window": 2, "then": "stop"}} if on else None
    again = Flow("walk", Work, guards=guards).start_with(close)
    again.repeat_until(lambda state: False, Ask(), max_iterations=4).finally_(close, name="end")
    async with Loom(store="memory", engine=hello) as app:
        run = await app.start(again, Work())
        return "loop.detected" in {event.kind async for event in run.events()}


async def selection(on: bool, where: Path) -> Any:
    class Chooses(Ask):
        engines = {"left": hello, "right": polish} if on else {}
        engine = None if on else hello

    select = Selection(candidates=("left", "right"), exclude=("right",))
    seen = await walk(Chooses(), **({"select": select} if on else {}))
    return seen.data("selection.made", "chosen")


async def sources(on: bool, where: Path) -> Any:
    cite: Any = {"context": [from_literal("Cite.")], "budget": Budget(max_tokens=50)}
    return "Cite." in (await walk(**(cite if on else {}), app={"engine": repeats})).said


async def providers(on: bool, where: Path) -> Any:
    context: Any = {"context": [from_provider(SHELF)]} if on else {}
    seen = await walk(**context, app={"engine": counts}, prepare=show_an_order)
    return seen.said


async def tools(on: bool, where: Path) -> Any:
    seen = await walk(with_tools(pack) if on else Ask(), app={"engine": calls})
    return seen.data("tool.returned", "result")


async def tool_rounds(on: bool, where: Path) -> Any:
    seen = await walk(with_tools(pack, rounds=1 if on else None), app={"engine": insists})
    return len(seen.data("tool.returned", "result"))


async def servers(where: Path) -> Any:
    return await walk(with_tools(FakeToolServer()))


async def questions(on: bool, where: Path) -> Any:
    seen = await walk(with_tools(confirm if on else pack), app={"engine": calls})
    return seen.data("question.answered", "value")


async def outputs(on: bool, where: Path) -> Any:
    class Packs(Ask):
        output_type = Parcel if on else None

    seen = await walk(Packs(), app={"engine": formed})
    return seen.data("agent.output", "output")


async def streaming(on: bool, where: Path) -> Any:
    return (await walk(app={"engine": streams if on else hello})).heard


AGENT = "flows.md#agent-steps"
FLOW: dict[str, Cell] = {
    "instructions": Works("`instructions`", AGENT, instructions, False, True),
    "models by name": Works("`model`", "engines.md#models", models, ["one"], ["two"]),
    "engines one after the other": Works(
        "`with_engines`", "engines.md#one-after-the-other", chains, ["hello"], ["hello!"]
    ),
    "an engine's own context": Works("`engine`", "context-providers.md", own_context, "0", "1"),
    "best of several tries": Works("`best_of`", AGENT, best_of, "long", "longer"),
    "components around calls": Works(
        "`with_components`", "components.md", around_calls, "hello", "HELLO"
    ),
    "components around turns": Works(
        "`with_components`", "components.md", around_turns, False, True
    ),
    "components of the app": Works(
        "`Loom(components=…)`", "components.md#of-the-app", of_the_app, "hello", "HELLO"
    ),
    "observers of the app": Works("`Loom(observers=…)`", "observers.md", observers, False, True),
    "labels": Works("`labels`", AGENT, labels, False, True),
    "labels that outputs inherit": Refused("every step reads the whole state", "W131", inherit),
    "concurrency limits": Works("`max_concurrency`", AGENT, limits, 2, 1),
    "variables": Works("`Flow(variables=…)`", "context-variables.md", variables, False, True),
    "lifecycle hooks": Works("`Flow(hooks=…)`", "hooks.md", hooks, [], ["note"]),
    "message hooks": Refused(
        "messages pass between agents in conversations only; put a component around the call",
        "W012",
        message_hooks,
    ),
    "run budgets": Works("`Flow(guards=…)`", "guards.md", budgets, False, True),
    "loop detection": Works("`Flow(guards=…)`", "guards.md", loops, False, True),
    "selection": Works("`select`", "selection.md", selection, [], ["left"]),
    "context providers": Works(
        "`context=[from_provider(…)]`", "context-providers.md", providers, "0", "1"
    ),
    "sources and token budgets": Works("`context`, `budget`", "sources.md", sources, False, True),
    "tools": Works("`tools`", "tools.md", tools, [], ["packed"]),
    "rounds of tool calls": Works("`max_tool_rounds`", AGENT, tool_rounds, 8, 1),
    "tool servers": Refused(
        "tools of a program are its functions; let one of them call the server",
        "W126",
        servers,
    ),
    "questions": Works("`use_ui_tool`", "questions.md", questions, [], [{"sure": True}]),
    "outputs": Works("`output_type`", AGENT, outputs, [], [{"item": "tea"}]),
    "streaming": Works("`run.listening`, `on_text`", "runs.md", streaming, [], ["hel", "lo"]),
}
