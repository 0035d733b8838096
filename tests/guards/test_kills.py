"""Guards and kills: wherever a process dies, nothing is charged twice, and nothing is forgotten."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guards.runs import endless
from tests.reaction.scenes import Order, Parcel, Receipt
from tests.support.boards import Place, begin_process, live, tales
from tests.support.folders import write_folder
from tests.support.lives import Lives
from tests.support.logs import essence
from tests.support.plays import answering, every, last
from turnloom import Answer, Board, Task, ToolCall
from turnloom.testing import Fuse

pytestmark = [pytest.mark.repeats, pytest.mark.doors]


CODE = """
from tests.support import stage
from turnloom import Answer, Context, ToolCall, Usage

async def speak(task):
    stage.point()
    calls = (ToolCall("look", {"n": 1}),) if task.turn in LOOKS and not task.exchanges else ()
    answer = Answer("" if calls else "Again.", Usage(60, 40), calls)
    stage.point()
    return answer

async def look(context_variables: Context, n: int = 0):
    await stage.enter(context_variables)
    stage.point()
    return n

async def note(context_variables: Context):
    await stage.enter(context_variables)
    stage.point()
"""


def mortal(where: Path, guards: dict[str, Any], *looks: int, **setup: Any) -> str:
    """A folder whose only agent repeats itself, uses its tool in some turns, and whose turns end
    with a hook; its code may be killed around everything that it does."""
    files = endless(guards, **setup)
    agents = {"A": {"system_message": "You are A.", "tools": ["look"], "engine": SPEAKS}}
    hook = {"agent": None, "file": "code.py", "function": "note"}
    tools = {
        "tools": [{"file": "code.py", "function": "look"}],
        "lifecycle_tools": [{"trigger": each, **hook} for each in ("after_agent", "after_chat")],
    }
    code = f"LOOKS = {looks!r}\n{CODE}"
    written = {"agents.json": json.dumps(agents), "tools.json": json.dumps(tools), "code.py": code}
    return write_folder(where, files | written)


SPEAKS = {"type": "functions", "file": "code.py", "function": "speak"}


async def test_a_kill_at_every_single_point_charges_nothing_twice(tmp_path: Path) -> None:
    budget = {"steps": 9, "model_calls": 4, "tool_calls": 9}
    folder = mortal(tmp_path, {"budget": budget}, 2)
    lives = Lives(folder, answering())
    undisturbed = await lives.live()
    assert last(undisturbed, "run.failed").error == "budget exceeded"
    assert len(every(undisturbed, "scarcity.changed")) == 3
    assert lives.passed > 30
    for points in range(lives.passed):
        events = await Lives(folder, answering()).live(points)
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


async def test_a_kill_at_every_single_point_forgets_no_loop(tmp_path: Path) -> None:
    """Hints, a question to a person, and the end: each is there once, wherever it is killed."""
    detection = {"window": 2, "similarity": None, "max_resets": 1}
    folder = mortal(tmp_path, {"loop_detection": detection}, max_turns=9)

    def person() -> Any:
        return lambda question: {"t4/loop.1/ask": "Vary.", "t8/loop.1/ask": "stop"}[
            question.question
        ]

    lives = Lives(folder, person())
    undisturbed = await lives.live()
    strategies = [each.strategy for each in every(undisturbed, "loop.detected")]
    assert strategies == ["inject_variation", "escalate", "inject_variation", "escalate"]
    assert last(undisturbed, "run.failed").error == "loop detected"
    for points in range(lives.passed):
        events = await Lives(folder, person()).live(points)
        assert essence(events) == essence(undisturbed), f"killed after {points} points"


class Shop:
    """A board with two agents side by side, one of which calls a tool, and a third after them."""

    def declare(self, board: Board, mortal: Any) -> None:
        board.agent("pack").consumes(Order).publishes(Parcel).with_engines(
            mortal(self.pack)
        ).with_tools(self.weigh)
        board.agent("count").consumes(Order).publishes(Receipt).with_engines(mortal(self.count))
        board.agent("file").consumes(Parcel).publishes(Receipt).with_engines(mortal(self.count))

    async def weigh(self) -> int:
        """Weigh it."""
        return 3

    async def pack(self, task: Task) -> Any:
        return Parcel() if task.exchanges else Answer(calls=(ToolCall("weigh", {}),))

    async def count(self, task: Task) -> Any:
        return Receipt(total=1)

    async def trade(self, board: Board) -> None:
        await board.resume()
        await board.publish(Order(), correlation_id="c1", id="o1")
        await board.run_until_idle(10, raise_errors=False)


async def trade(*kills: int) -> tuple[Place, Fuse]:
    place, shop = Place(), Shop()
    for points in (*kills, None):
        fuse = Fuse(points)
        process = begin_process(place, fuse, guards={"budget": {"steps": 2, "tool_calls": 1}})
        shop.declare(process.board, process.mortal)
        if await live(process, shop.trade) or points is None:
            break
    return place, fuse


async def test_a_kill_of_a_board_charges_nothing_twice() -> None:
    undisturbed, fuse = await trade()
    events = [event for log in (await undisturbed.logs()).values() for event in log]
    assert last(events, "run.failed").error == "budget exceeded"
    for points in range(fuse.passed):
        place, _ = await trade(points)
        assert tales(await place.logs()) == tales(await undisturbed.logs()), f"killed at {points}"
