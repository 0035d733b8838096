"""Features of turns on boards."""

from pathlib import Path
from typing import Any

from tests.parity.forms.cells import Cell, Refused, Works
from tests.parity.forms.stages import (
    Brings,
    Crowd,
    Loud,
    Order,
    Parcel,
    Prepares,
    Sees,
    calls,
    confirm,
    counts,
    formed,
    hello,
    hide_an_order,
    insists,
    note,
    pack,
    polish,
    react,
    repeats,
    show_an_order,
    streams,
    tries,
)
from tests.parity.forms.talks import asked
from turnloom import (
    Budget,
    ContextSlice,
    FilteredContextProvider,
    Labelled,
    Loom,
    StateDelegatingProvider,
    from_literal,
)
from turnloom.board.spec import FilterConfig
from turnloom.reaction.spec.builder import AgentBuilder
from turnloom.testing import FakeToolServer

SHELF = FilteredContextProvider(FilterConfig(types={"forms.Order"}, correlation_id="shelf"))


def put(on: bool, declare: Any, *always: Any) -> Any:
    """What declares an agent, with a call or without it, after what is always said."""

    def declared(agent: AgentBuilder) -> None:
        for each in (*always, *([declare] if on else [])):
            each(agent)

    return declared


async def around_calls(on: bool, where: Path) -> Any:
    return (await react(put(on, lambda agent: agent.with_components(Loud())))).said


async def around_turns(on: bool, where: Path) -> Any:
    gives = StateDelegatingProvider()
    always = [lambda agent: agent.with_context(gives, fallback=nothing)]
    declare = put(on, lambda agent: agent.with_components(Prepares()), *always)
    return (await react(declare, engine=counts)).said


async def nothing(request: Any) -> Any:
    """A provider that gives nothing."""
    return ContextSlice([])


async def of_the_app(on: bool, where: Path) -> Any:
    return (await react(components=[Loud()] if on else [])).said


async def observers(on: bool, where: Path) -> Any:
    sees = Sees()
    await react(observers=[sees] if on else [])
    return "agent.text" in sees.kinds


async def chains(on: bool, where: Path) -> Any:
    seen = await react(lambda agent: agent.with_engines(*((hello, polish) if on else (hello,))))
    return seen.said


async def own_context(on: bool, where: Path) -> Any:
    engine = Brings() if on else counts
    return (await react(lambda agent: agent.with_context(nothing), engine=engine)).said


async def best_of(on: bool, where: Path) -> Any:
    always = [lambda agent: agent.publishes(Parcel)]

    def best(agent: AgentBuilder) -> None:
        agent.best_of(2, lambda answer: len(answer.artifacts[0].value.item))

    async def packs(task: Any) -> Parcel:
        return Parcel(item=(await tries(task)).text)

    seen = await react(put(on, best, *always), engine=packs)
    return seen.data("artifact.published", "artifact")[-1].payload["item"]


async def labels(on: bool, where: Path) -> Any:
    always = [lambda agent: agent.with_context_filter(filters=FilterConfig(types={"forms.Order"}))]
    declare = put(on, lambda agent: agent.labels("staff"), *always)
    return (await react(declare, engine=counts, prepare=hide_an_order)).said


async def inherit(on: bool, where: Path) -> Any:
    async def packs(task: Any) -> Parcel:
        return Parcel(item="tea")

    seen = await react(
        lambda agent: agent.labels("staff").publishes(Parcel, inherit=on),
        engine=packs,
        visibility=Labelled({"staff"}),
    )
    return isinstance(seen.data("artifact.published", "artifact")[-1].visibility, Labelled)


async def limits(on: bool, where: Path) -> Any:
    crowd = Crowd(1 if on else 2)
    async with Loom(store="memory", engine=crowd) as app:
        board = app.board()
        put(on, lambda agent: agent.max_concurrency(1))(board.agent("A").consumes(Order))
        await board.publish_many([Order(), Order()])
        await board.run_until_idle(60)
    return crowd.most


async def instructions(on: bool, where: Path) -> Any:
    seen = await react(
        more=lambda board: (
            board.agent("B").consumes(Order).description("Be kind." if on else "Be.")
        ),
        engine=repeats,
    )
    return any("Be kind." in text for text in seen.data("agent.text", "text"))


async def models(on: bool, where: Path) -> Any:
    declare = put(on, lambda agent: agent.with_engines("openai-chat:two"))
    return await asked(lambda: react(declare, engine=None, model="openai-chat:one"))


async def hooks(on: bool, where: Path) -> Any:
    hook = {"trigger": "before_agent", "agent": "A", "function": note}
    seen = await react(board={"hooks": [hook] if on else []})
    return seen.data("lifecycle.tool_result", "function")


async def message_hooks(where: Path) -> Any:
    hook = {"trigger": "process_message_before_send", "agent": "A", "function": note}
    return await react(board={"hooks": [hook]})


async def variables(on: bool, where: Path) -> Any:
    tier = {"type": "string", "source": {"type": "static", "value": "gold"}}
    said = {"definitions": {"tier": tier}, "agents": {"A": {"variables": ["tier"]}}}
    return "gold" in (await react(board={"variables": said if on else {}}, engine=repeats)).said


async def budgets(on: bool, where: Path) -> Any:
    guards = {"budget": {"model_calls": 1}} if on else None
    seen = await react(lambda agent: agent.with_tools(pack), engine=calls, board={"guards": guards})
    return "budget.exceeded" in seen.kinds


async def loops(on: bool, where: Path) -> Any:
    async def again(task: Any) -> Order:
        return Order()

    guards = {"loop_detection": {"window": 2, "then": "stop"}} if on else None
    seen = await react(
        lambda agent: agent.publishes(Order).prevent_self_trigger(False),
        engine=again,
        board={"guards": guards, "max_turns": 4},
    )
    return "loop.detected" in seen.kinds


async def selection(on: bool, where: Path) -> Any:
    guards = {"selection": {"candidates": ["A", "B"], "exclude": ["A"]}} if on else None
    seen = await react(
        board={"guards": guards}, more=lambda board: board.agent("B").consumes(Order)
    )
    return seen.data("turn.started", "agent")


async def sources(on: bool, where: Path) -> Any:
    def cite(agent: AgentBuilder) -> None:
        agent.with_sources(from_literal("Cite."), budget=Budget(max_tokens=50))

    return "Cite." in (await react(put(on, cite), engine=repeats)).said


async def providers(on: bool, where: Path) -> Any:
    whole = FilteredContextProvider(FilterConfig(types={"forms.Order"}))
    declare = put(on, lambda agent: agent.with_context(whole))
    return (await react(declare, engine=counts, prepare=show_an_order)).said


async def tools(on: bool, where: Path) -> Any:
    seen = await react(put(on, lambda agent: agent.with_tools(pack)), engine=calls)
    return seen.data("tool.returned", "result")


async def tool_rounds(on: bool, where: Path) -> Any:
    rounds = {"max_rounds": 1} if on else {}
    seen = await react(lambda agent: agent.with_tools(pack, **rounds), engine=insists)
    return len(seen.data("tool.returned", "result"))


async def servers(where: Path) -> Any:
    server: Any = FakeToolServer()
    return await react(lambda agent: agent.with_tools(server))


async def questions(on: bool, where: Path) -> Any:
    tool = confirm if on else pack
    seen = await react(lambda agent: agent.with_tools(tool), engine=calls)
    return seen.data("question.answered", "value")


async def outputs(on: bool, where: Path) -> Any:
    seen = await react(put(on, lambda agent: agent.publishes(Parcel)), engine=formed)
    return seen.data("agent.output", "output")


async def streaming(on: bool, where: Path) -> Any:
    return (await react(engine=streams if on else hello)).heard


AGENT = "reactions.md#declare-an-agent"
BOARD: dict[str, Cell] = {
    "instructions": Works("`description`", AGENT, instructions, False, True),
    "models by name": Works("`with_engines`", "engines.md#models", models, ["one"], ["two"]),
    "engines one after the other": Works(
        "`with_engines`", "engines.md#one-after-the-other", chains, "hello", "hello!"
    ),
    "an engine's own context": Works(
        "`with_engines`", "context-providers.md", own_context, "0", "1"
    ),
    "best of several tries": Works("`best_of`", AGENT, best_of, "long", "longer"),
    "components around calls": Works(
        "`with_components`", "components.md", around_calls, "hello", "HELLO"
    ),
    "components around turns": Works("`with_components`", "components.md", around_turns, "0", "1"),
    "components of the app": Works(
        "`Loom(components=…)`", "components.md#of-the-app", of_the_app, "hello", "HELLO"
    ),
    "observers of the app": Works("`Loom(observers=…)`", "observers.md", observers, False, True),
    "labels": Works("`labels`", AGENT, labels, "0", "1"),
    "labels that outputs inherit": Works("`publishes(inherit=…)`", AGENT, inherit, False, True),
    "concurrency limits": Works("`max_concurrency`", AGENT, limits, 2, 1),
    "variables": Works("`board(variables=…)`", "context-variables.md", variables, False, True),
    "lifecycle hooks": Works("`board(hooks=…)`", "hooks.md", hooks, [], ["note"]),
    "message hooks": Refused(
        "messages pass between agents in conversations only; put a component around the call",
        "W012",
        message_hooks,
    ),
    "run budgets": Works("`board(guards=…)`", "guards.md", budgets, False, True),
    "loop detection": Works("`board(guards=…)`", "guards.md", loops, False, True),
    "selection": Works("`board(guards=…)`", "selection.md", selection, ["A", "B"], ["B"]),
    "context providers": Works("`with_context`", "context-providers.md", providers, "0", "1"),
    "sources and token budgets": Works("`with_sources`", "sources.md", sources, False, True),
    "tools": Works("`with_tools`", "tools.md", tools, [], ["packed"]),
    "rounds of tool calls": Works("`with_tools(max_rounds=…)`", AGENT, tool_rounds, 8, 1),
    "tool servers": Refused(
        "tools of a program are its functions; let one of them call the server",
        "UsageError",
        servers,
    ),
    "questions": Works("`use_ui_tool`", "questions.md", questions, [], [{"sure": True}]),
    "outputs": Works("`publishes`", AGENT, outputs, [], [{"item": "tea"}]),
    "streaming": Works("`run.listening`", "runs.md", streaming, [], ["hel", "lo"]),
}
