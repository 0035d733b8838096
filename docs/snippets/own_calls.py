"""An engine that calls a tool, and reports its result."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from turnloom import Answer, Loom, Task, ToolCall

TOOLS = "tools: [{ agent: Adder, file: sums.py, function: add }]\n"
SUMS = "def add(a: int, b: int) -> int:\n    return a + b\n"


async def engine(task: Task) -> Answer:
    """Call the tool first, then report its result."""
    if not task.exchanges:
        (tool,) = task.tools
        return Answer(calls=(ToolCall(tool.name, {"a": 2, "b": 3}),))
    (result,) = task.exchanges[-1].results
    pieces = ["The sum ", "is ", f"{result.value}."]
    for piece in pieces:
        task.say(piece)
    return Answer("".join(pieces))


async def main(folder: str) -> None:
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder)
        with run.listening(lambda piece: print(f"{piece.agent}, call {piece.call}: {piece.text}")):
            print((await run.finished()).kind)


with TemporaryDirectory() as folder:
    Path(folder, "agents.yaml").write_text("Adder: { system_message: Add. }\n", "utf-8")
    Path(folder, "tools.yaml").write_text(TOOLS, "utf-8")
    Path(folder, "sums.py").write_text(SUMS, "utf-8")
    asyncio.run(main(folder))
