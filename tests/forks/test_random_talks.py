"""Random conversations and boards, forked at every event: they end as their originals did."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.support.folders import as_json, write_folder
from tests.support.forking import ForkingWorld
from turnloom import Answer, Loom, Run, Task, ToolCall, artifact_type

AGENTS = ("A", "B", "C")
WORDS = ("tea", "milk", "NEXT", "DONE now", "more tea")

# What the tool was called with.
sold: list[str] = []

TOOL = """
from tests.forks.test_random_talks import sold

def sell(item: str, context_variables) -> str:
    "Sell an item."
    sold.append(item)
    context_variables.set("sold", len(sold))
    return f"sold {item}"
"""


class Choices:
    """Numbers that are drawn once, and used again and again."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._numbers = numbers
        self._used = 0

    def choose(self, most: int) -> int:
        """A number below `most`."""
        self._used += 1
        return self._numbers[self._used % len(self._numbers)] % most


def talk(choices: Choices) -> dict[str, str]:
    """A conversation of three agents, with rules that depend on what they say."""
    variables = [
        f"  v{number}: {{type: boolean, source: {{type: derived, default: false, triggers: ["
        f"{{type: agent_text, agent: {AGENTS[choices.choose(3)]}, "
        f"match: {{contains: {WORDS[choices.choose(4)]}}}}}]}}}}"
        for number in range(3)
    ]
    rules = [
        f"- {{source_agent: {agent}, target_agent: {(*AGENTS, 'user')[choices.choose(4)]}, "
        f"handoff_type: condition, condition: '${{v{choices.choose(3)}}} == True'}}\n"
        f"- {{source_agent: {agent}, target_agent: {after}, handoff_type: after_work}}"
        for agent, after in zip(AGENTS, ("B", "C", "terminate"), strict=True)
    ]
    return {
        "orchestrator.yaml": "{workflow_name: Talk, initial_agent: A, max_turns: 6, "
        "human_in_the_loop: true}",
        "agents.yaml": "\n".join(f"{agent}: {{system_message: Talk.}}" for agent in AGENTS),
        "tools.yaml": "tools: [{agent: B, file: tools.py, function: sell}]",
        "tools.py": TOOL,
        "handoffs.yaml": "\n".join(rules),
        "context_variables.yaml": "definitions:\n  sold: {type: integer, source: {type: derived, "
        "default: 0}}\n" + "\n".join(variables) + "\nagents: {A: {variables: [v0, v1, sold]}}",
    }


class Talker:
    """An engine whose answers depend on the turn alone."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = choices

    async def __call__(self, task: Task) -> Answer:
        number = self._choices[task.turn % len(self._choices)]
        word = WORDS[number % len(WORDS)]
        if task.tools and not task.exchanges and number % 2:
            return Answer(calls=(ToolCall("sell", {"item": word}),))
        return Answer(f"{task.agent} says {word}")


async def answered(run: Run) -> None:
    """Answer every question, in turn."""
    number = 0
    async for event in run.events():
        if event.kind == "run.paused":
            number += 1
            await run.answer(None, WORDS[number % len(WORDS)])


numbers = st.lists(st.integers(0, 59), min_size=6, max_size=20)


@pytest.mark.doors
@given(numbers)
@settings(max_examples=40, deadline=None)
async def test_random_talks(tmp_path_factory: pytest.TempPathFactory, choices: list[int]) -> None:
    folder = write_folder(Path(tmp_path_factory.mktemp("talk")), as_json(talk(Choices(choices))))
    world = ForkingWorld(engine=Talker(choices))
    sold.clear()
    before: list[str] = []

    async def script(app: Loom) -> None:
        await answered(await app.start(folder))
        before.extend(sold)

    await world.live(script)
    assert world.forks and sold == before


@artifact_type(name="forked.Cup")
class Cup(BaseModel):
    n: int


@artifact_type(name="forked.Pot")
class Pot(BaseModel):
    n: int


@artifact_type(name="forked.Tray")
class Tray(BaseModel):
    n: int


TYPES = (Cup, Pot, Tray)


def declare(app: Loom, choices: Choices) -> Any:
    """A board of four agents, each of which makes things of a later type from some of one."""
    board = app.board(max_turns=30)
    for number in range(4):
        place = choices.choose(2)
        taken, made = TYPES[place], TYPES[place + 1 + choices.choose(2 - place)]
        rest, more = choices.choose(2), 1 + choices.choose(2)

        async def work(task: Task, made: Any = made, more: int = more) -> Any:
            return made(n=task.inputs[0].payload["n"] + more + len(task.context.items) % 2)

        agent = board.agent(f"agent{number}").with_engines(work)
        agent.consumes(taken, where=lambda it, rest=rest: it.n % 2 == rest).publishes(made)
    return board


@pytest.mark.doors
@given(numbers)
@settings(max_examples=40, deadline=None)
async def test_random_boards(choices: list[int]) -> None:
    world = ForkingWorld()

    async def script(app: Loom) -> None:
        board = declare(app, Choices(choices))
        for number, kind in enumerate(TYPES[:2]):
            await board.publish(kind(n=choices[number]), correlation_id=kind.__name__)
        await board.run_until_idle()

    await world.live(script)
    assert world.forks
