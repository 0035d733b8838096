"""A process that drives a run until it is killed. Run as: hooked_child.py FOLDER STORE [RUN]."""

import asyncio
import sys

from turnloom import Loom


async def main(folder: str, store: str, *run: str) -> None:
    async with Loom(store=store) as app:
        going = await app.resume(run[0]) if run else await app.start(folder, user_id="u1")
        print(f"run={going.id}.", flush=True)
        async for event in going.events():
            if event.kind == "run.paused":
                await going.answer(event.data.waiting_for, "Yes.")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
