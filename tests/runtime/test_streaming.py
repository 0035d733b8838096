"""Answers while they are made: in pieces, beside the log, and only what may be seen."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from tests.support.programs import Program, begin, drive, make_world
from turnloom import Loom
from turnloom.adapters.functions import FunctionEngine
from turnloom.adapters.scripted import ScriptedEngine
from turnloom.agents.spec import Answer, Engine, Task, ToolCall
from turnloom.runtime.spec import Delta

# An agent with a tool, one whose word may be hidden, one that knows a secret, one nobody sees, and
# one whose words a hook changes.
FILES = {
    "orchestrator.yaml": "initial_agent: Open",
    "agents.yaml": """
        Open: {system_message: Speak.}
        Hider: {system_message: Say NEXT.}
        Knower: {system_message: Keep it.}
        Unseen: {system_message: Think.}
        Polite: {system_message: Curse.}
        """,
    "tools.yaml": "tools: [{agent: Open, file: tick.py, function: tick}]",
    "tick.py": "def tick(): return 1",
    "hooks.yaml": """
        - {hook_type: process_message_before_send, hook_agent: Polite, filename: mend.py,
           function: mend}
        """,
    "mend.py": "def mend(sender, message, recipient, silent): return 'Dear me.'",
    "context_variables.yaml": """
        definitions:
          token: {type: string, secret: true, source: {type: environment, env_var: TOKEN}}
          done: {type: boolean, source: {type: derived, default: false, triggers: [
            {type: agent_text, agent: Hider, match: {equals: NEXT}, hide: true}]}}
        agents: {Knower: {variables: [token]}}
        """,
    "handoffs.yaml": """
        - {source_agent: Open, target_agent: Hider, handoff_type: after_work}
        - {source_agent: Hider, target_agent: Knower, handoff_type: after_work}
        - {source_agent: Knower, target_agent: Unseen, handoff_type: after_work}
        - {source_agent: Unseen, target_agent: Polite, handoff_type: after_work}
        """,
    "ui_config.yaml": "visual_agents: [Open, Hider, Knower, Polite]",
}


async def heard(tmp_path: Path, engine: Engine) -> Sequence[Delta]:
    """What a listener hears of a run to its end."""
    folder = write_folder(tmp_path, FILES)
    world = make_world(engine, env={"TOKEN": "secret-word"})
    pieces: list[Delta] = []
    here = threading.get_ident()

    def hear(delta: Delta) -> None:
        assert threading.get_ident() == here
        pieces.append(delta)

    async with Program(world) as program:
        run = await program.start(folder)
        with program.app.handle(run).listening(hear):
            await program.drive(run)
    assert (await world.read(run))[-1].kind == "run.finished"
    return pieces


def script(**lines: Any) -> ScriptedEngine:
    unheard = {"Hider": ["NEXT"], "Knower": ["It is secret-word."], "Unseen": ["Hm."]}
    return ScriptedEngine({**unheard, "Polite": ["Damn."], **lines})


async def test_a_script_is_said_word_by_word_and_each_call_begins_again(tmp_path: Path) -> None:
    calling = Answer("Let me see.", calls=(ToolCall("tick"),))
    pieces = await heard(tmp_path, script(Open=[calling, "It is\none."]))
    assert [(each.call, each.offset, each.text) for each in pieces] == [
        (1, 0, "Let "),
        (1, 4, "me "),
        (1, 7, "see."),
        (2, 0, "It "),
        (2, 3, "is\n"),
        (2, 6, "one."),
    ]


async def test_what_may_be_hidden_and_what_may_hold_a_secret_is_not_streamed(
    tmp_path: Path,
) -> None:
    pieces = await heard(tmp_path, script(Open=["Hello."]))
    assert {each.agent for each in pieces} == {"Open"}


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_is_heard_in_the_loop_wherever_it_goes_on(
    tmp_path: Path, is_async: bool
) -> None:
    threads: list[int] = []

    def speak(task: Task) -> str:
        threads.append(threading.get_ident())
        for piece in ("", "a", "bc", ""):  # what says nothing is not heard
            task.say(piece)
        return "abc"

    async def speak_async(task: Task) -> str:
        return speak(task)

    pieces = await heard(tmp_path, FunctionEngine(speak_async if is_async else speak))
    assert [(each.offset, each.text) for each in pieces] == [(0, "a"), (1, "bc")]
    assert (set(threads) == {threading.get_ident()}) is is_async


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_answer_that_is_made_again_is_heard_from_its_beginning(
    tmp_path: Path, is_async: bool
) -> None:
    def speak(task: Task) -> str:
        for piece in ("Half ", None, None, "The ", "whole."):
            task.say(piece)
        return "The whole."

    async def speak_async(task: Task) -> str:
        return speak(task)

    pieces = await heard(tmp_path, FunctionEngine(speak_async if is_async else speak))
    assert [(each.offset, each.text) for each in pieces] == [
        (0, "Half "),
        (0, "The "),
        (4, "whole."),
    ]


async def test_who_comes_late_hears_the_answer_from_its_beginning(tmp_path: Path) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def speak(task: Task) -> Answer:
        task.say("Half ")
        begun.set()
        await go.wait()
        task.say("and half.")
        return Answer("Half and half.")

    pieces: list[str] = []
    async with Loom(store="memory", engine=speak) as app:
        run = await app.start(write_folder(tmp_path, {"agents.yaml": "A: {system_message: Hi.}"}))
        await begun.wait()
        with run.listening(lambda delta: pieces.append(delta.text)):
            assert pieces == ["Half "]
            go.set()
            await run.finished()
        assert pieces == ["Half ", "and half."]


async def test_without_a_listener_nothing_is_different(tmp_path: Path) -> None:
    world = make_world(script(Open=["Hello."]), env={"TOKEN": "secret-word"})
    run = await begin(world, write_folder(tmp_path, FILES))
    await drive(world, run)
    assert (await world.read(run))[-1].kind == "run.finished"
