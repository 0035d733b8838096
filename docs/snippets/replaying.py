"""A replay is a value: how much of a run is decided as it was, and the first difference."""

import asyncio

from turnloom import Loom


async def main() -> None:
    async with Loom(store="memory") as app:
        run = await app.start("examples/Relay")
        await run.finished()
        replay = await app.history.replay(run.id)
        print(f"{replay.same} of {replay.events} events are the same")
        print("the first difference:", replay.divergence)


asyncio.run(main())
