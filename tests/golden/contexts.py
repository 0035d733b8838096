"""Conversations whose logs are golden: outputs, variables, guards, patterns, ends and context."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tests.golden.conversations import (
    ASKS,
    ORDER,
    PAIR,
    calling,
    hook,
    kinds,
    opened,
    tool,
    written,
)
from tests.golden.scenes import scene
from tests.support.folders import INTERVIEW, write_folder
from tests.support.world import Kill, Script, World, at_rest, conversing, replying
from turnloom import (
    Answer,
    Board,
    Loom,
    RagCollection,
    RetrievalResult,
    Task,
)
from turnloom.agents.spec import Usage
from turnloom.board.spec import artifact_type
from turnloom.testing import InMemorySearch, ScriptedEngine

OUTPUTS = {
    "models": {
        "Plan": {
            "type": "model",
            "fields": {"title": {"type": "str"}, "steps": {"type": "list", "items": "str"}},
        }
    },
    "registry": {"A": "Plan"},
}
KEEPS = """
    def keep(title: str, steps: list[str], context_variables):
        if not steps:
            raise ValueError("a plan has steps")
        context_variables["title"] = title
        return len(steps)
    """


@scene
async def an_output_asked_for_again(world: World, where: Path) -> None:
    """An output in words, one of another form, one that its tool refuses, and one that is right:
    killed when the first was refused."""
    folder = written(
        where,
        KEEPS,
        structured_outputs=OUTPUTS,
        tools={"tools": [tool("keep", auto_invoke=True)]},
        **PAIR,
    )
    said = [
        "In words.",
        '{"title": 5}',
        '```json\n{"title": "Bad", "steps": []}\n```',
        Answer(output={"title": "Good", "steps": ["one", "two"]}),
    ]
    engine = ScriptedEngine({"A": said, "B": ["Fine."]})
    await world.lives(conversing(folder), Kill("output.refused"), engine=engine)


SENDS = """
    def send(header: str, token: str, context_variables):
        context_variables["sent"] = header
        return {"sent": f"{header} and {token}"}
    """
STORED = {
    "definitions": {
        "token": {
            "type": "string",
            "secret": True,
            "source": {"type": "environment", "env_var": "TOKEN"},
        },
        "word": {
            "type": "string",
            "secret": True,
            "source": {
                "type": "database",
                "collection": "users",
                "search_by": "user_id",
                "field": "word",
            },
        },
        "note": {
            "type": "string",
            "source": {
                "type": "database",
                "collection": "users",
                "search_by": "user_id",
                "field": "deep.note",
            },
        },
        "visits": {
            "type": "integer",
            "source": {
                "type": "database",
                "collection": "users",
                "search_by": "user_id",
                "field": "visits",
                "default": 0,
            },
        },
        "region": {
            "type": "string",
            "source": {
                "type": "database",
                "collection": "apps",
                "search_by": "app_id",
                "field": "region",
            },
        },
        "flag": {
            "type": "boolean",
            "source": {"type": "environment", "env_var": "FLAG", "default": False},
        },
    },
    "agents": {"A": {"variables": ["token", "word", "note", "visits", "region", "flag"]}},
}
USER = {
    "user_id": "u1",
    "app_id": "acme",
    "word": "correct horse",
    "deep": {"note": "as said: s3cr3t-value"},
    "visits": "many",
}


async def sender(task: Task) -> Answer:
    """Sends what it was shown, and says it."""
    if task.agent == "A" and not task.exchanges:
        given = {"header": "Bearer s3cr3t-value", "token": "correct horse"}
        return calling(("send", given))
    return Answer("I sent s3cr3t-value.")


@scene
async def secrets_and_documents_killed(world: World, where: Path) -> None:
    """Secrets from the environment and from a document reach a tool and no event; a document is not
    there, and a value is of another type. Killed when the tool is about to be called."""
    world.environment.values["TOKEN"] = "s3cr3t-value"
    world.documents.add("users", USER)
    tools = {"tools": [tool("send")]}
    folder = written(where, SENDS, tools=tools, context_variables=STORED, **PAIR)
    await world.lives(conversing(folder), Kill("tool.called"), engine=sender)


@scene
async def variables_that_a_deployment_does_not_have(world: World, where: Path) -> None:
    """In production, without the schema of variables: they are suppressed, and a route says so."""
    world.environment.values |= {"CONTEXT_INCLUDE_SCHEMA": "no", "ENVIRONMENT": "production"}
    world.documents.add("users", USER)
    rule = {"source_agent": "A", "target_agent": "B", "handoff_type": "condition"}
    rules = [{**rule, "condition": "flag is true"}, *PAIR["handoffs"]]
    folder = written(where, agents=PAIR["agents"], context_variables=STORED, handoffs=rules)
    engine = ScriptedEngine({"A": ["Hello."], "B": ["Bye."]})
    await world.live(conversing(folder), engine=engine)


@scene
async def variables_that_are_set_aside(world: World, where: Path) -> None:
    """Variables that do not pass their check, where that is no reason to begin nothing."""
    variables = INTERVIEW["context_variables.yaml"].replace("type: static", "type: runtime")
    setup = "{initial_agent: Asker, human_in_the_loop: true, max_turns: 2}"
    files = {"context_variables.yaml": variables, "orchestrator.yaml": setup}
    folder = write_folder(where, {**INTERVIEW, **files})
    engine = ScriptedEngine({"Asker": ["What is it?", "NEXT"]})
    person = replying("A report.")
    await world.live(conversing(folder, person), engine=engine, strict=False)


# ------------------------------------------------------------------ guards

AGAIN = [{"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}]
LOOKS = "def look(): return 1"


@scene
async def a_budget_that_is_used_up(world: World, where: Path) -> None:
    """Steps, tokens and calls are reserved and spent, get scarce, and are used up: killed between
    a reservation and what was spent."""
    budget = {"steps": 4, "tokens": 1000, "tool_calls": 2, "answer_tokens": 100}
    folder = written(
        where,
        LOOKS,
        agents={"A": {"system_message": "Go on."}},
        orchestrator={"guards": {"budget": budget}},
        tools={"tools": [tool("look")]},
        handoffs=AGAIN,
    )

    async def engine(task: Task) -> Answer:
        if task.turn == 1 and task.exchanges:
            return Answer("Looked.", Usage(60, 40))
        if task.turn == 3:
            return Answer("", Usage(60, 40), calling("look", "look").calls)
        calls = calling("look").calls if task.turn == 1 else ()
        return Answer("" if calls else "Thought.", Usage(60, 40), calls)

    await world.lives(conversing(folder), Kill("budget.reserved", 3), engine=engine)


@scene
async def a_window_that_fills(world: World, where: Path) -> None:
    """What was said takes most of a window, and then more than there is: killed when that is told,
    and when the call is about to be made that does not fit."""
    agents = {"A": {"system_message": "Go on."}}
    setup = {"max_turns": 9}
    folder = written(where, agents=agents, handoffs=AGAIN, orchestrator=setup)
    engine = ScriptedEngine({"A": ["It is a long story, of which this is a part."] * 9})
    kills = Kill("window.neared"), Kill("model.called")
    await world.lives(conversing(folder), *kills, engine=engine, window=60)


@scene
async def a_loop_and_its_recovery(world: World, where: Path) -> None:
    """An agent repeats itself: it is told to vary, then a person is asked and says what to do.
    Killed when it was told, and when the person is asked."""
    detection = {"window": 2, "similarity": None, "max_resets": 1, "then": "escalate"}
    folder = written(
        where,
        agents={"A": {"system_message": "Go on."}},
        orchestrator={"guards": {"loop_detection": detection}, "max_turns": 5},
        handoffs=AGAIN,
    )
    engine = ScriptedEngine({"A": ["Again."] * 5})
    person = replying("Ask for the price.")
    kills = Kill("loop.detected"), Kill("question.asked")
    await world.lives(conversing(folder, person), *kills, engine=engine)


DESK = {
    "agents": {name: {"system_message": f"You are {name}."} for name in ("Desk", "Ann", "Bob")},
    "handoffs": [
        {"source_agent": source, "target_agent": target, "handoff_type": "after_work"}
        for source, target in (("Desk", "Ann"), ("Ann", "terminate"), ("Bob", "terminate"))
    ],
}


@scene
async def clerks_chosen_by_what_is_known_of_them(world: World, where: Path) -> None:
    """One of two clerks is chosen for a turn. Who fails is believed in less when the next run
    chooses; that one is killed when the choice is made, and when it is judged."""

    def folder(seed: int) -> str:
        selection = {"candidates": ["Ann", "Bob"], "seed": seed, "costs": {"Ann": 0.05}}
        setup = {"initial_agent": "Desk", "guards": {"selection": selection}}
        return written(where / str(seed), orchestrator=setup, **DESK)

    async def engine(task: Task) -> Answer:
        if task.agent == "Bob":
            raise RuntimeError("out of office")
        return Answer(f"{task.agent} did it.")

    async def first(app: Loom) -> None:
        await (await opened(app, folder(1))).finished()

    async def second(app: Loom) -> None:
        await (await opened(app, folder(8), 2)).finished()

    await world.live(first, engine=engine)
    kills = Kill("selection.made"), Kill("selection.judged")
    await world.lives(second, *kills, engine=engine)


# ------------------------------------------------------------------ who speaks

THREE = {name: {"system_message": f"You are {name}."} for name in ("A", "B", "C")}
HMS = {name: ["Hm.", "Hmm.", "Hmmm."] for name in THREE}


def talk(where: Path, pattern: str, **setup: Any) -> str:
    """A folder with three agents who speak as a pattern says."""
    said = {"orchestration_pattern": pattern, "max_turns": 4, **setup}
    return written(where, agents=THREE, orchestrator=said)


@scene
async def speakers_drawn_by_chance_killed(world: World, where: Path) -> None:
    """The user begins, and chance says who speaks next: killed before and after it is drawn."""
    folder = talk(where, "RandomPattern", startup_mode="UserDriven", initial_agent="C")
    kills = Kill("chance.drawn", before=True), Kill("chance.drawn", 2)
    script = conversing(folder, replying("Begin."))
    await world.lives(script, *kills, engine=ScriptedEngine(HMS))


@scene
async def speakers_picked_by_a_model_killed(world: World, where: Path) -> None:
    """A model says who speaks next, the user among them, and at last somebody who is not there:
    killed while it is asked, and when it has picked."""
    folder = talk(where, "AutoPattern", human_in_the_loop=True, max_turns=6)
    picks = [Answer(output={"agent": "C"}), '{"agent": "user"}', " B ", "D"]
    kills = Kill("model.called", 2), Kill("speaker.picked", 2)
    engine = ScriptedEngine({**HMS, "selector": picks})
    await world.lives(conversing(folder, replying("Go on.")), *kills, engine=engine)


@scene
async def speakers_picked_by_the_user(world: World, where: Path) -> None:
    """The user says who speaks next, speaks, and ends it."""
    folder = talk(where, "ManualPattern", human_in_the_loop=True, max_turns=9)
    person = replying("C", "user", "Hello.", "A", "terminate")
    await world.live(conversing(folder, person), engine=ScriptedEngine(HMS))


@scene
async def handoffs_of_all_kinds(world: World, where: Path) -> None:
    """A rule passes an agent over before it replies, a model chooses a handoff, and an agent that
    may reply only so often ends it."""
    red = {"type": "agent_text", "agent": "A", "match": {"contains": "red"}}
    source = {"type": "derived", "default": False, "triggers": [red]}
    rule = {"handoff_type": "condition", "condition": "red is true"}
    rules = [
        {"source_agent": "A", "target_agent": "B", "handoff_type": "after_work"},
        {"source_agent": "B", "target_agent": "C", "condition_scope": "pre", **rule},
        {"source_agent": "B", "target_agent": "A", "handoff_type": "after_work"},
        {
            "source_agent": "C",
            "target_agent": "A",
            "handoff_type": "condition",
            "condition_type": "string_llm",
            "condition": "When ${workflow_name} is to go on.",
        },
    ]
    folder = written(
        where,
        agents={**THREE, "A": {**THREE["A"], "max_consecutive_auto_reply": 2}},
        context_variables={"definitions": {"red": {"type": "boolean", "source": source}}},
        handoffs=rules,
    )
    choice = calling("transfer_to_A_4")
    engine = ScriptedEngine({"A": ["Hm.", "It is red."], "B": ["Go on."], "C": [choice]})
    await world.live(conversing(folder), engine=engine)


# ------------------------------------------------------------------ ends

MOURNS = """
    def mourn(context_variables):
        return context_variables["run_status"]
    """
ALWAYS = {
    "lifecycle_tools": [
        hook("after_agent", "mourn"),
        hook("after_chat", "mourn", name="last", on="always"),
    ]
}


@scene
async def a_model_that_fails(world: World, where: Path) -> None:
    """A model fails, and the run with it; hooks are called all the same. Killed when it failed."""
    code = MOURNS.replace('["run_status"]', '.get("run_status", "")')
    folder = written(where, code, tools=ALWAYS, **PAIR)
    engine = ScriptedEngine({"A": ["Hello."], "B": [RuntimeError("no model today")]})
    await world.lives(conversing(folder), Kill("model.failed"), engine=engine)


@scene
async def a_model_that_is_asked_again(world: World, where: Path) -> None:
    """An engine tries a model twice before it answers. Killed between two attempts, it begins
    again."""

    async def engine(task: Task) -> Answer:
        await task.retry("RateLimitError", "refused with status 429: Too many.", 0.5)
        await task.retry("TimeoutError", "was silent for 30 s", 1.0)
        return Answer("Hello.")

    folder = written(where, agents={"A": {"system_message": "Answer."}})
    await world.lives(conversing(folder), Kill("model.retried"), engine=engine)


@scene
async def a_run_cancelled_while_it_waits(world: World, where: Path) -> None:
    """Somebody ends a run that waits for a tool's question: killed when that is on record."""
    tools = {**ORDER["tools"], "lifecycle_tools": [hook("after_chat", "mourn", on="failure")]}
    folder = written(where, ASKS + MOURNS, agents=ORDER["agents"], tools=tools)

    async def script(app: Loom) -> None:
        run = await opened(app, folder)
        if "cancel.requested" not in kinds(await app.history.events(run.id, app_id="acme")):
            await at_rest(run)
            await run.cancel(by="boss", reason="enough")
        await run.finished()

    engine = ScriptedEngine({"A": [calling("order")]})
    await world.lives(script, Kill("cancel.requested"), engine=engine)


@scene
async def a_run_cancelled_in_a_turn(world: World, where: Path) -> None:
    """Somebody ends a run while a model is asked; hooks after the turn and the chat are called."""
    code = MOURNS.replace('["run_status"]', '.get("run_status", "")')
    folder = written(where, code, tools=ALWAYS, **PAIR)
    asked = asyncio.Event()

    async def stuck(task: Task) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        return Answer("never")

    async def script(app: Loom) -> None:
        run = await opened(app, folder)
        await asked.wait()
        await run.cancel(by="boss", reason="enough")
        await run.finished()

    await world.live(script, engine=stuck)


@scene
async def a_server_of_tools_that_is_not_there(world: World, where: Path) -> None:
    """A workflow wants tools of a program that cannot be started, so its run fails."""
    servers = {"mcp_servers": [{"name": "clock", "agent": "A", "command": ["no-such-clock"]}]}
    folder = written(where, tools=servers, **PAIR)
    await world.live(conversing(folder), engine=ScriptedEngine({}))


# ------------------------------------------------------------------ context of agents

PROVIDERS = """
    from turnloom import ContextSlice, FilteredContextProvider, RedactingProvider
    from turnloom.board.spec import FilterConfig, TagFilter

    won = FilterConfig(types={"Pitch"}, tags=TagFilter(include={"deal_won"}))
    recent_wins = RedactingProvider(FilteredContextProvider(won), keys=["private_notes"])

    async def archive(request):
        return ContextSlice([{"told": dict(request.config)}], {"shelf": 7})

    async def broken(request):
        raise ConnectionError("the archive is closed")

    def in_short(messages):
        return f"{len(messages)} said something."
    """


class Manual(RagCollection):
    name = "manual"


FOUND = (
    RetrievalResult("Tea is packed dry.", 0.9, "tea.md", chunk=2),
    RetrievalResult("Jars are packed upright. " * 8, 0.8, "jars.md"),
    RetrievalResult("Lamps are packed last.", 0.3, "lamps.md"),
)


def searching(script: Script) -> Script:
    """A program that has a collection."""

    async def registered(app: Loom) -> None:
        search = InMemorySearch()
        search.seed(*FOUND)
        app.register_collection(Manual, search)
        await script(app)

    return registered


@scene
async def context_from_sources(world: World, where: Path) -> None:
    """What an agent is shown comes from a window of what was said and its summary, a search, state,
    variables, a provider in whose place another is asked, and a text; not all of it has room."""
    search = {"collection": "manual", "query": "all about {topic}", "min_relevance": 0.2}
    sources = [
        {"history": {"last": 1, "summarise": "in_short"}},
        {"retrieval": search, "title": "Rules"},
        {"state": "customer.name"},
        {"variables": ["topic"]},
        {"provider": "broken", "fallback": "archive", "config": {"most": 3}},
        {"literal": "Be kind.", "priority": 5},
    ]
    context = {"sources": sources, "budget": {"max_tokens": 60}}
    customer = {"type": "derived", "default": {"name": "Ada"}}
    definitions = {
        "topic": {"type": "string", "source": {"type": "derived", "default": "tea"}},
        "customer": {"type": "object", "source": customer},
    }
    folder = write_folder(
        where,
        {
            "providers.py": PROVIDERS,
            "agents.json": json.dumps({"Clerk": {"system_message": "Pack.", "context": context}}),
            "context_variables.json": json.dumps({"definitions": definitions}),
            "orchestrator.json": json.dumps(
                {
                    "initial_message": "Well?",
                    "orchestration_pattern": "RoundRobinPattern",
                    "max_turns": 3,
                }
            ),
        },
    )
    engine = ScriptedEngine({"Clerk": ["One.", "Two.", "Three."]})
    await world.live(searching(conversing(folder)), engine=engine)


@artifact_type(name="golden.Pitch")
class Pitch(BaseModel):
    tagline: str
    private_notes: str = "Robin pays late."


@scene
async def context_from_a_board_killed(world: World, where: Path) -> None:
    """Providers find artifacts for an agent and leave parts out, one fails without another in its
    place: killed when a provider has given, and when one has failed."""
    first = ["recent_wins", {"filter": {"types": ["Pitch"], "limit": 1, "order": "-created_at"}}]
    agents = {
        "A": {"system_message": "Close.", "context": first},
        "B": {"system_message": "Open.", "context": "broken"},
    }
    parts = {"agents": agents, "handoffs": PAIR["handoffs"]}
    files = {f"{part}.json": json.dumps(said) for part, said in parts.items()}
    folder = write_folder(where, {**files, "providers.py": PROVIDERS})

    def boarded(app: Loom) -> Board:
        board = app.board(app_id="acme")
        board.register(Pitch)
        return board

    async def publish(app: Loom) -> None:
        board = boarded(app)
        await board.publish(Pitch(tagline="On socks"), tags={"deal_won"}, id="socks")
        world.clock.advance(timedelta(seconds=1))
        await board.publish(Pitch(tagline="On hats"), tags={"deal_lost"}, id="hats")

    async def sell(app: Loom) -> None:
        boarded(app)
        await (await opened(app, folder)).finished()

    engine = ScriptedEngine({"A": ["Hello."]})
    await world.live(publish)
    kills = Kill("context.gathered"), Kill("provider.failed")
    await world.lives(sell, *kills, engine=engine)
