"""Conversations whose logs are golden."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.golden.scenes import scene
from tests.support.folders import GARDEN, INTERVIEW, write_folder
from tests.support.world import Kill, World, at_rest, conversing, replying
from turnloom import (
    Answer,
    Event,
    Loom,
    QuestionExpired,
    Run,
    ToolCall,
)
from turnloom.testing import ScriptedEngine

INTERVIEWED = {
    "Asker": ["What is it?", "And when?", "Then: NEXT"],
    "Planner": ["A draft.", "Better.", "DONE"],
}


@scene
async def an_interview(world: World, where: Path) -> None:
    """A conversation with a person, variables, routes and an end."""
    folder = write_folder(where, INTERVIEW)
    person = replying("A report.", "Mondays.")
    await world.live(conversing(folder, person), engine=ScriptedEngine(INTERVIEWED))


@scene
async def an_interview_killed_three_times(world: World, where: Path) -> None:
    """The same: killed after a model was called, after it answered, and before an answer counts."""
    folder = write_folder(where, INTERVIEW)
    engine = ScriptedEngine(INTERVIEWED)
    before = Kill("question.answered", before=True)
    kills = Kill("model.called", 2), Kill("model.answered"), before
    person = replying("A report.", "Mondays.")
    await world.lives(conversing(folder, person), *kills, engine=engine)


# ------------------------------------------------------------------ what scenes are made of

# A speaks, then B, and that was it.
PAIR = {
    "agents": {"A": {"system_message": "First."}, "B": {"system_message": "Second."}},
    "handoffs": [
        {"source_agent": "A", "target_agent": "B", "handoff_type": "after_work"},
        {"source_agent": "B", "target_agent": "terminate", "handoff_type": "after_work"},
    ],
}


def written(where: Path, code: str = "", **parts: Any) -> str:
    """A workflow folder with these parts, and code in one file."""
    files = {f"{part}.json": json.dumps(said) for part, said in parts.items()}
    return write_folder(where, files | ({"code.py": code} if code else {}))


def tool(function: str, agent: str = "A", **more: Any) -> dict[str, Any]:
    """A tool as it is declared."""
    return {"agent": agent, "file": "code.py", "function": function, **more}


def hook(trigger: str, function: str, agent: str | None = None, **more: Any) -> dict[str, Any]:
    """A hook as it is declared."""
    return {"trigger": trigger, **tool(function), "agent": agent, **more}


def calling(*tools: str | tuple[str, Mapping[str, Any]]) -> Answer:
    """An answer that calls tools, with arguments or without."""
    pairs = [each if isinstance(each, tuple) else (each, {}) for each in tools]
    return Answer(calls=tuple(ToolCall(name, dict(arguments)) for name, arguments in pairs))


async def opened(app: Loom, folder: str, number: int = 1) -> Run:
    """The first run of the workflow, or another one: begun, or taken up again."""
    runs = [
        each.run for each in await app.runs(app_id="acme") if each.workflow == Path(folder).name
    ]
    if len(runs) >= number:
        return await app.resume(runs[-number], app_id="acme")
    return await app.start(folder, user_id="u1", app_id="acme")


async def until(run: Run, kind: str) -> Event:
    """The first event of a kind."""
    async for event in run.events():
        if event.kind == kind:
            return event
    raise AssertionError(f"{kind} never came")


def kinds(events: Sequence[Any]) -> list[str]:
    """What happened, event by event."""
    return [event.kind for event in events]


# ------------------------------------------------------------------ tools

TOOLS = '''
    """Tools of a kitchen."""

    def weigh(grams: int, context_variables):
        context_variables["weight"] = grams
        return {"grams": grams}

    async def stir(context_variables):
        context_variables["stirred"] = True
        context_variables["last"] = "stir"
        return "stirred"

    async def taste(context_variables):
        context_variables["last"] = "taste"
        context_variables["tier"] = "gold"

    async def burn(context_variables):
        context_variables["burnt"] = True
        raise RuntimeError("the pan is too hot")
    '''
KITCHEN = {
    "agents": {"A": {"system_message": "Cook."}},
    "tools": {"tools": [tool(name) for name in ("weigh", "stir", "taste", "burn")]},
    "context_variables": {
        "definitions": {
            "tier": {"type": "string", "source": {"type": "static", "value": "beta"}},
            "weight": {"type": "integer", "source": {"type": "derived", "default": 0}},
        },
        "agents": {"A": {"variables": ["tier", "weight"]}},
    },
}
COOKED = {
    "A": [
        calling(("weigh", {"grams": 5}), "stir", "burn", "taste"),
        calling("peel", ("weigh", {"grams": "many"})),
        "It is served.",
    ]
}


@scene
async def tools_side_by_side(world: World, where: Path) -> None:
    """Tools of one answer: they write variables, one fails, one may not write what it wants to.
    Then one that nobody has, and one with wrong arguments."""
    folder = written(where, TOOLS, **KITCHEN)
    await world.live(conversing(folder), engine=ScriptedEngine(COOKED))


@scene
async def tools_side_by_side_killed(world: World, where: Path) -> None:
    """The same: killed when they are about to be called, and when the first of them is done."""
    folder = written(where, TOOLS, **KITCHEN)
    kills = Kill("tool.called"), Kill("tool.returned"), Kill("tool.failed", before=True)
    await world.lives(conversing(folder), *kills, engine=ScriptedEngine(COOKED))


# ------------------------------------------------------------------ questions

ASKS = """
    from turnloom import use_ui_tool

    async def order(context_variables):
        number = await context_variables.once("number", lambda: 7)
        size = await use_ui_tool("size", {"title": f"Order {number}"})
        await context_variables.once("mail", lambda: f"size {size}")
        sure = await use_ui_tool("sure", {"prompt": f"{size}, really?"}, display="inline")
        context_variables["ordered"] = sure
        return [number, size, sure]
    """
ORDER = {
    "agents": {"A": {"system_message": "Take orders."}},
    "tools": {"tools": [tool("order", tool_type="UI_Tool", ui={"component": "Card"})]},
}


@scene
async def a_tool_that_asks_twice_killed(world: World, where: Path) -> None:
    """A tool with effects asks twice: killed between question and answer, after the answer, after
    an effect, and after the last answer before the tool is entered again."""
    folder = written(where, ASKS, **ORDER)
    engine = ScriptedEngine({"A": [calling("order"), "Ordered."]})
    kills = (
        Kill("run.paused"),
        Kill("question.answered"),
        Kill("effect.done"),
        Kill("question.answered"),
    )
    await world.lives(conversing(folder, replying("large", True)), *kills, engine=engine)


ACCEPTS = """
    from turnloom import use_ui_tool

    async def plan(title: str, context_variables):
        answer = await use_ui_tool("plan", {"title": title})
        return answer["acceptance"]

    async def rate():
        return await use_ui_tool("rate", {"prompt": "How was it?"})
    """
FORM = {
    "type": "object",
    "properties": {"acceptance": {"enum": ["accepted", "refused"]}},
    "required": ["acceptance"],
}


def answered(name: str, default: str, **trigger: Any) -> dict[str, Any]:
    """A variable that takes a value from an answer."""
    trigger = {"type": "ui_response", "response_key": name, **trigger}
    source = {"type": "derived", "default": default, "triggers": [trigger]}
    return {"type": "string", "source": source}


@scene
async def an_answer_decides_a_route(world: World, where: Path) -> None:
    """An answer to a form sets a variable, by which the work goes on elsewhere; another variable is
    left to the tool, which does not set it."""
    route = {"source_agent": "A", "target_agent": "B", "handoff_type": "condition"}
    rules = [
        {**route, "condition": 'acceptance is "accepted"'},
        {"source_agent": "A", "target_agent": "user", "handoff_type": "after_work"},
        {"source_agent": "B", "target_agent": "terminate", "handoff_type": "after_work"},
    ]
    definitions = {
        "acceptance": answered("acceptance", "pending", tool="plan", apply="auto"),
        "stars": answered("stars", "none", tool="rate", apply="tool"),
    }
    card = {"component": "PlanCard", "mode": "artifact", "response": FORM}
    tools = [
        tool("plan", tool_type="UI_Tool", ui=card),
        tool("rate", "B", tool_type="UI_Tool", ui={"component": "Stars"}),
    ]
    folder = written(
        where,
        ACCEPTS,
        agents=PAIR["agents"],
        tools={"tools": tools},
        context_variables={"definitions": definitions, "agents": {"B": {"variables": ["stars"]}}},
        handoffs=rules,
    )
    engine = ScriptedEngine(
        {"A": [calling(("plan", {"title": "Mine"})), "Here."], "B": [calling("rate"), "Thanks."]}
    )
    person = replying({"acceptance": "accepted"}, {"stars": "five"})
    await world.live(conversing(folder, person), engine=engine)


PATIENT = """
    from turnloom import QuestionExpired, use_ui_tool

    async def offer(context_variables):
        try:
            return await use_ui_tool("offer", {"title": "Still there?"}, timeout=60)
        except QuestionExpired as error:
            context_variables["late"] = str(error)
            return "nobody"
    """


@scene
async def a_question_that_expires(world: World, where: Path) -> None:
    """Nobody answers a tool in time; whoever answers then is refused, and the tool is told."""
    folder = written(
        where,
        PATIENT,
        agents={"A": {"system_message": "Offer."}},
        tools={"tools": [tool("offer", tool_type="UI_Tool")]},
    )

    async def ask(app: Loom) -> None:
        await at_rest(await opened(app, folder))

    async def answer(app: Loom) -> None:
        (asked,) = await app.runs(app_id="acme")
        with suppress(QuestionExpired):
            await app.handle(asked.run, app_id="acme").answer(None, "Here I am.")
        await (await opened(app, folder)).finished()

    engine = ScriptedEngine({"A": [calling("offer"), "So be it."]})
    await world.live(ask, engine=engine)
    world.clock.advance(timedelta(seconds=61))
    await world.live(answer, engine=engine)


# ------------------------------------------------------------------ hooks and objects

HOOKS = """
    from turnloom import use_ui_tool

    def begin(context_variables):
        context_variables["begun"] = context_variables["user_id"]

    async def gate(context_variables):
        context_variables["allowed"] = await use_ui_tool("gate", {"prompt": "May B speak?"})
        return "open"

    def stumble():
        raise LookupError("no such shelf")

    async def tell(context_variables):
        return [context_variables["run_status"], context_variables["allowed"]]
    """
HOOKED = [
    hook("before_chat", "begin"),
    hook("before_agent", "gate", "B"),
    hook("after_agent", "stumble"),
    hook("after_chat", "tell"),
    hook("after_chat", "tell", name="mourn", on="failure"),
]


@scene
async def hooks_around_a_chat_killed(world: World, where: Path) -> None:
    """Hooks around the chat and its turns, one asks and one fails: killed when one is to be
    called, when one failed, while one waits, and when one has ended."""
    folder = written(where, HOOKS, tools={"lifecycle_tools": HOOKED}, **PAIR)
    kills = (
        Kill("lifecycle.tool_call"),
        Kill("lifecycle.tool_error", before=True),
        Kill("run.paused"),
        Kill("lifecycle.tool_result"),
    )
    engine = ScriptedEngine({"A": ["Hello."], "B": ["Bye."]})
    await world.lives(conversing(folder, replying("yes")), *kills, engine=engine)


POOLS = """
    from turnloom import use_ui_tool

    class Pool:
        def __init__(self, name):
            self.name = name

    def chat(context_variables):
        context_variables["chat"] = Pool("chat")
        context_variables["opened"] = 1

    async def allocate(context_variables):
        context_variables["pool"] = Pool(context_variables["chat"].name + "/turn")
        context_variables["uses"] = 0

    async def query(context_variables):
        context_variables["uses"] += 1
        answer = await use_ui_tool("query", {"title": "Which?"})
        return f"{answer} from {context_variables['pool'].name}"

    async def release(context_variables):
        name = context_variables["pool"].name
        del context_variables["pool"]
        return f"{name} was used {context_variables['uses']} times"
    """


@scene
async def objects_made_again_after_a_kill(world: World, where: Path) -> None:
    """Hooks make objects for the chat and for a turn. After a kill, those whose scope is open make
    theirs again, and nothing else that they wrote counts twice."""
    hooks = [
        hook("before_chat", "chat"),
        hook("before_agent", "allocate", "A"),
        hook("after_agent", "release", "A"),
    ]
    tools = {"tools": [tool("query", tool_type="UI_Tool")], "lifecycle_tools": hooks}
    folder = written(where, POOLS, tools=tools, **PAIR)
    engine = ScriptedEngine({"A": [calling("query"), "Got it."], "B": ["Bye."]})
    kills = Kill("run.paused"), Kill("tool.returned"), Kill("turn.started")
    await world.lives(conversing(folder, replying("Seven")), *kills, engine=engine)


MESSAGES = """
    def tell(agent, messages):
        agent.update_system_message(f"{agent.system_message} There are {len(messages)} messages.")
        agent.context_variables["told"] = agent.name

    def shorten(messages):
        return messages[-1:] + [{"name": "clerk", "content": "A note.", "role": "user"}]

    async def mask(content):
        return content.replace("4711", "****")

    def sign(sender, message, recipient, silent):
        return {"content": f"{message} -- {sender}"}

    def stumble(content):
        raise RuntimeError("no hook")
    """
MESSAGE_HOOKS = [
    ("update_agent_state", "B", "tell"),
    ("process_all_messages_before_reply", "B", "shorten"),
    ("process_last_received_message", "A", "mask"),
    ("process_last_received_message", "B", "stumble"),
    ("process_message_before_send", "all", "sign"),
]


@scene
async def message_hooks_killed(world: World, where: Path) -> None:
    """Hooks change what agents are told, read and say, and one fails: killed before and after what
    one made is stored."""
    hooks = [
        {"hook_type": kind, "hook_agent": agent, "filename": "code.py", "function": function}
        for kind, agent, function in MESSAGE_HOOKS
    ]
    setup = {"initial_message": "My number is 4711."}
    folder = written(where, MESSAGES, orchestrator=setup, hooks={"hooks": hooks}, **PAIR)
    kills = Kill("message_hook.returned", before=True), Kill("message_hook.returned", 2)
    engine = ScriptedEngine({"A": ["Hello."], "B": ["Bye."]})
    await world.lives(conversing(folder), *kills, engine=engine)


# ------------------------------------------------------------------ variables


@scene
async def a_garden_killed(world: World, where: Path) -> None:
    """Words, cascades, counts, functions and a timer change variables: killed when something was
    said, when the timer expired, and when a turn ended."""
    folder = write_folder(where, GARDEN)

    async def sow(app: Loom) -> None:
        await at_rest(await opened(app, folder))

    async def water(app: Loom) -> None:
        run = await opened(app, folder)
        if "question.answered" not in kinds(await app.history.events(run.id, app_id="acme")):
            await at_rest(run, (await until(run, "timer.expired")).seq)
            await run.answer(None, "It looks dry.")
        await run.finished()

    engine = ScriptedEngine({"Gardener": ["I sow peas now.", "I water."], "Cook": ["Soup."]})
    await world.lives(sow, Kill("agent.text"), engine=engine)
    world.clock.advance(timedelta(seconds=90))
    await world.lives(water, Kill("timer.expired"), Kill("turn.finished"), engine=engine)
