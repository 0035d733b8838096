"""A board whose program is killed, and which continues when the program is restarted."""

import asyncio
import os
import signal

from pydantic import BaseModel

from turnloom import FilterConfig, Loom, Task, artifact_type


@artifact_type
class Song(BaseModel):
    title: str


@artifact_type
class Line(BaseModel):
    text: str


async def write(task: Task) -> list[Line]:
    print("the poet writes", flush=True)
    title = task.inputs[0].payload["title"]
    return [Line(text=f"{title}, {title},"), Line(text="so long ago.")]


async def sing(task: Task) -> None:
    if "CRASH" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
    print("the singer sings:", task.inputs[0].payload["text"])


async def main() -> None:
    async with Loom() as app:
        board = app.board("stage")
        board.agent("poet").consumes(Song).publishes(Line, fan_out=2).with_engines(write)
        board.agent("singer").consumes(Line).max_concurrency(1).with_engines(sing)
        print("resumed:", len(await board.resume()))
        await board.publish(Song(title="Harbour"), id="the song")
        await board.run_until_idle()
        lines, _ = await board.query_artifacts(FilterConfig(types={"Line"}))
        print(len(lines), "lines")


asyncio.run(main())
