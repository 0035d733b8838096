"""A process that adds outcomes to a file that others add to as well."""

import asyncio
import sys
from pathlib import Path

from turnloom.adapters.sqlite import SqliteStore
from turnloom.guards.spec import Observation, Pool
from turnloom.runtime.logic import codec


async def main(path: str, first: int, last: int) -> None:
    """Add each outcome by itself."""
    store = SqliteStore(Path(path), codec(), patience=60.0)
    pool = Pool("local", "Flow", "general")
    for number in range(first, last):
        await store.beliefs.observe([Observation("run", str(number), pool, "Ann", 0.25)])
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
