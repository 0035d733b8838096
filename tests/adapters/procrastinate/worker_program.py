"""A worker process: it says which drives it begins and ends. A drive takes as long as its run says.

The name of a run is its own, a dash, and the seconds of its first drive.
"""

import asyncio
import sys
from datetime import datetime

from turnloom.adapters.procrastinate import ProcrastinateScheduler
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import LimitWait


async def drive(run: RunKey, held: LimitWait | None = None, /) -> datetime | None:
    print("begins", run.id, flush=True)
    await asyncio.sleep(float(run.id.partition("-")[2] or 0))
    print("ends", run.id, flush=True)
    return None


async def main(url: str, lease: float, slots: int) -> None:
    scheduler = ProcrastinateScheduler(url, lease=lease)
    print("serves", flush=True)
    await scheduler.serve(drive, slots=slots, limits={})


asyncio.run(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
