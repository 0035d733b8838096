"""A process that fires what is due until it is told to stop."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

from tests.schedules.flows import report
from turnloom import Loom


async def main(store: str) -> None:
    async with Loom(store=store) as app:
        app.register_flow(report)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        until = datetime.now(UTC) + timedelta(seconds=60)  # noqa: TID251 - a process of its own
        while datetime.now(UTC) < until:  # noqa: TID251
            for each in await app.schedules.fire_due():
                print(each.run, each.error, flush=True)
                await app.schedules.rested(each)
            if not await app.schedules.planned() and not await app.runs(unfinished=True):
                return
            await asyncio.sleep(0.01)  # reads of a file do not yield to the drives


asyncio.run(main(sys.argv[1]))
