"""Explanations are values: the frame of a turn, segment by segment."""

import asyncio

from turnloom import Loom
from turnloom.explain.spec.turn import TurnExplained


async def main() -> None:
    async with Loom(store="memory") as app:
        run = await app.start("examples/Relay")
        await run.finished()
        turn = await app.explain.turn(run.id, 2)
        assert isinstance(turn, TurnExplained)
        for segment in turn.segments:
            print(segment.kind, segment.origin, f"{segment.share} %")
        print("the whole prompt:", turn.prompt == "".join(each.text for each in turn.segments))
        print("sound:", turn.verified)


asyncio.run(main())
