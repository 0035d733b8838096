"""Edits of conversations: where a backtest is certain, the edited workflow really does the same."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from tests.backtest.truth import Verdict, backtested, lies
from tests.support.folders import as_json, write_folder
from tests.support.world import at_rest
from turnloom import Answer, Event, Loom, Task, ToolCall
from turnloom.adapters.memory import MemoryStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec

SHOP = {
    "orchestrator.yaml": """
        workflow_name: Shop
        initial_agent: Clerk
        initial_message: A customer comes in.
        human_in_the_loop: true
        max_turns: 12
        guards: {budget: {steps: 40, model_calls: 40},
          loop_detection: {window: 6, similarity: null}}
        """,
    "agents.yaml": """
        agents:
          Clerk: {system_message: Serve., context: {sources: [
            {literal: Be polite.}, {variables: [stage, price]}]}}
          Cashier: {system_message: Take the money.}
          Boss: {system_message: Decide.}
        """,
    "context_variables.yaml": """
        definitions:
          shop: {type: string, source: {type: static, value: corner}}
          vip: {type: boolean, source: {type: environment, env_var: VIP, default: false}}
          stage: {type: string, source: {type: derived, default: looking, triggers: [
            {type: agent_text, agent: Clerk, match: {contains: TAKE}, value: paying},
            {type: agent_text, agent: Cashier, match: {contains: PAID}, value: done}]}}
          price: {type: integer, source: {type: derived, default: 0, triggers: [
            {type: tool_response, tool: look_up, from: price}]}}
          asked: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_turn_count, agent: Clerk, count: 2}]}}
          words: {type: integer, source: {type: derived, default: 0, triggers: [
            {type: function, function: count_words}]}}
          greeted: {type: string, source: {type: derived, default: nothing}}
        agents:
          Clerk: {variables: [shop]}
          Cashier: {variables: [price, stage, words, greeted]}
          Boss: {variables: [asked, vip]}
        """,
    "handoffs.yaml": """
        handoff_rules:
          - {source_agent: Clerk, target_agent: Cashier, handoff_type: condition,
             condition: '${stage} == "paying"'}
          - {source_agent: Clerk, target_agent: Boss, handoff_type: condition,
             condition: '${asked} == True'}
          - {source_agent: Clerk, target_agent: user, handoff_type: after_work}
          - {source_agent: Boss, target_agent: Clerk, handoff_type: after_work}
          - {source_agent: Cashier, target_agent: terminate, handoff_type: condition,
             condition: '${stage} == "done"'}
          - {source_agent: Cashier, target_agent: user, handoff_type: after_work}
          - {source_agent: user, target_agent: Clerk, handoff_type: after_work}
        """,
    "tools.yaml": """
        tools:
          - {agent: Clerk, file: code.py, function: look_up, description: Look up a price.}
        lifecycle_tools:
          - {trigger: before_chat, file: code.py, function: greet}
        """,
    "code.py": """
        def look_up(thing: str) -> dict:
            return {"thing": thing, "price": len(thing)}

        def greet(context_variables):
            context_variables["greeted"] = "morning"

        def sing(context_variables):
            context_variables["greeted"] = "a song"
        """,
    "derivations.py": """
        from turnloom.variables.spec import UNCHANGED, derivation

        @derivation
        def count_words(event, values):
            if event.kind != "agent.text":
                return UNCHANGED
            return values["words"] + len(event.data.text.split())
        """,
}
SAID: dict[str, list[Any]] = {
    "Clerk": [
        "What do you want?",
        Answer(calls=(ToolCall("look_up", {"thing": "bread"}),)),
        "It is five.",
        "TAKE it.",
        "Anything else?",
        "Then goodbye.",
    ],
    "Cashier": ["Five, please.", "PAID, thanks.", "PAID again."],
    "Boss": ["Go on.", "Go on.", "Stop."],
}
ANSWERS = ["Bread.", "Good.", "Here.", "No.", "No.", "No.", "No."]


async def answer(task: Task) -> Answer:
    """The next line of an agent, whatever it is shown."""
    lines = SAID[task.agent]
    line = lines[min(task.number, len(lines)) - 1]
    return Answer(line) if isinstance(line, str) else line


async def wary(task: Task) -> Answer:
    """The next line, unless the agent is shown something else than usual."""
    given = await answer(task)
    usual = USUAL.get((task.agent, task.number))
    shown = f"{task.system}{[each.text for each in task.transcript]}"
    if RECORDING:
        USUAL[task.agent, task.number] = shown
        return given
    return given if shown == usual else Answer("TAKE PAID what?")


USUAL: dict[tuple[str, int], str] = {}
RECORDING: list[bool] = []


async def play(folder: str, engine: Any) -> tuple[list[Event], Any]:
    """A run of a folder, with answers of its user; and the folder as it is loaded."""
    store = MemoryStore(codec())
    async with Loom(store=store, engine=engine) as app:
        run = await app.start(folder)
        rest = await at_rest(run)
        for said in ANSWERS:
            question = await run.question()
            if question is None:
                break
            await run.answer(question.id, said)
            rest = await at_rest(run, rest.seq)
        loaded = await app._open().definitions.load(folder)
        return [*await store.log.read(RunKey("local", run.id))], loaded


def changed(files: Mapping[str, str], file: str, before: str, after: str) -> dict[str, str]:
    assert before in files[file], before
    return {**files, file: files[file].replace(before, after)}


EDITS = {
    "nothing": ("code.py", "def sing", "def sing"),
    "trigger": ("context_variables.yaml", "contains: TAKE", "contains: five"),
    "trigger value": ("context_variables.yaml", "value: paying", "value: waiting"),
    "count": ("context_variables.yaml", "count: 2", "count: 1"),
    "source of a tool": ("context_variables.yaml", "from: price", "from: thing"),
    "static": ("context_variables.yaml", "value: corner", "value: market"),
    "default": ("context_variables.yaml", "default: looking", "default: paying"),
    "environment": ("context_variables.yaml", "env_var: VIP", "env_var: GUEST"),
    "type": ("context_variables.yaml", "price: {type: integer", "price: {type: number"),
    "exposure": ("context_variables.yaml", "[price, stage, words, greeted]", "[price]"),
    "exposure of the boss": ("context_variables.yaml", "[asked, vip]", "[vip]"),
    "handoff": ("handoffs.yaml", "target_agent: Boss", "target_agent: Cashier"),
    "condition": ("handoffs.yaml", "${asked} == True", "${asked} == False"),
    "default route": (
        "handoffs.yaml",
        "{source_agent: user, target_agent: Clerk",
        "{source_agent: user, target_agent: Boss",
    ),
    "two terms": ("handoffs.yaml", "'${asked} == True'", "'${asked} == True AND ${words} == 4'"),
    "unknown": ("handoffs.yaml", "${asked} == True", "${vip} == True"),
    "turns": ("orchestrator.yaml", "max_turns: 12", "max_turns: 2"),
    "budget": ("orchestrator.yaml", "steps: 40", "steps: 3"),
    "model calls": ("orchestrator.yaml", "model_calls: 40", "model_calls: 4"),
    "loop": ("orchestrator.yaml", "window: 6", "window: 2"),
    "no loop": (
        "orchestrator.yaml",
        ",\n          loop_detection: {window: 6, similarity: null}",
        "",
    ),
    "instructions": ("agents.yaml", "Decide.", "Decide well."),
    "source": ("agents.yaml", "Be polite.", "Be brief."),
    "source of variables": ("agents.yaml", "variables: [stage, price]", "variables: [price]"),
    "opening": ("orchestrator.yaml", "A customer comes in.", "It rings."),
    "no opening": ("orchestrator.yaml", "initial_message: A customer comes in.", ""),
    "another hook": ("tools.yaml", "function: greet}", "function: sing}"),
    "no hook": ("tools.yaml", "- {trigger: before_chat, file: code.py, function: greet}", "[]"),
    "hook of the cashier": (
        "tools.yaml",
        "lifecycle_tools:",
        "lifecycle_tools:\n          - {trigger: before_agent, agent: Cashier, file: code.py, "
        "function: sing}",
    ),
    "function": ("derivations.py", "+ len(", "+ 2 * len("),
    "tool": ("tools.yaml", "agent: Clerk, file", "agent: Boss, file"),
}


# Edits after which this run goes as it went.
SAME = ("nothing", "type", "loop", "no loop")


async def verdict(where: Path, edits: Sequence[str], engine: Any) -> tuple[Verdict, list[Event]]:
    """A run of the shop, backtested with edits; and the real run of that."""
    files = SHOP
    for edit in edits:
        files = changed(files, *EDITS[edit])
    original = write_folder(where, as_json(SHOP), "Shop")
    edited = write_folder(where, as_json(files), "Edited")
    RECORDING[:] = [True]
    recorded, _ = await play(original, engine)
    RECORDING.clear()
    real, loaded = await play(edited, engine)
    return await to_thread.run_sync(backtested, loaded, recorded), real


@pytest.mark.parametrize("edit", EDITS)
async def test_what_is_certain_is_true(tmp_path: Path, edit: str) -> None:
    found, real = await verdict(tmp_path, [edit], wary)
    assert not lies(found, real)


@pytest.mark.doors
@pytest.mark.parametrize("edit", EDITS)
async def test_what_is_assumed_is_true_if_models_answer_the_same(tmp_path: Path, edit: str) -> None:
    found, real = await verdict(tmp_path, [edit], answer)
    assert not lies(found, real, assumed=True)
    assert (edit in SAME) == (not found.run.counts and found.run.end is None)


# Pairs of edits that exclude each other.
APART = [
    {"trigger value", "default"},
    {"condition", "two terms"},
    {"condition", "unknown"},
    {"two terms", "unknown"},
    {"another hook", "no hook"},
    {"opening", "no opening"},
    {"loop", "no loop"},
]
PAIRS = [pair for pair in combinations(EDITS, 2) if {*pair} not in APART]


@pytest.mark.doors
@pytest.mark.parametrize("pair", PAIRS[::5], ids=" and ".join)
async def test_two_edits(tmp_path: Path, pair: tuple[str, str]) -> None:
    found, real = await verdict(tmp_path, pair, wary)
    assert not lies(found, real)
    found, real = await verdict(tmp_path, pair, answer)
    assert not lies(found, real, assumed=True)
