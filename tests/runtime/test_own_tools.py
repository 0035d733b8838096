"""Engines with tools of their own: what these did is on record, and comes back with the task."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Task, ToolCall
from turnloom.agents.spec import Exchange, ToolResult

FILES = {
    "agents.yaml": "Adder: {system_message: Add., max_tool_rounds: 2}",
    "tools.yaml": "tools: [{agent: Adder, file: sums.py, function: add}]",
    "sums.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
}
LOOKED = Exchange("Hm.", (ToolCall("look", {"at": "sky"}, "1"),), (ToolResult("blue"),))
ADD = ToolCall("add", {"a": 2, "b": 3})
ADDED = Exchange("", (ADD,), (ToolResult(5),))


async def test_what_they_did_is_among_the_exchanges_and_in_what_is_explained(
    tmp_path: Path,
) -> None:
    given: list[tuple[Exchange, ...]] = []

    async def engine(task: Task) -> Answer:
        given.append(task.exchanges)
        if len(given) < 3:
            return Answer(calls=(ADD,), before=(LOOKED, LOOKED))
        return Answer("Five.", before=(LOOKED,))

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(write_folder(tmp_path, FILES))
        assert (await run.finished()).kind == "run.finished"
        explained = await app.explain.turn(run.id, 1)
    once = (LOOKED, LOOKED, ADDED)
    assert given == [(), once, once + once]
    assert [each.given for each in explained.steps if hasattr(each, "given")] == [0, 3, 6]
    assert explained.exchanges == once + once
    assert not explained.doubts


@pytest.mark.parametrize(
    "before",
    [
        [LOOKED],
        ("looked",),
        (Exchange("", LOOKED.calls),),
        (Exchange("", LOOKED.calls, (ToolResult({1, 2}),)),),
    ],
)
async def test_what_cannot_be_written_down_is_refused(before: Any, tmp_path: Path) -> None:
    async def engine(task: Task) -> Answer:
        return Answer("Five.", before=before)

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(write_folder(tmp_path, FILES))
        failed = await run.finished()
    assert "`Exchange`" in failed.data.message
