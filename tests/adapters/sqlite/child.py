"""What other processes do to a store in these tests. Run as: child.py DEED FILE."""

import asyncio
import resource
import sys
from pathlib import Path

from turnloom.adapters.sqlite import SqliteStore
from turnloom.errors import LeaseLost, StoreUnavailable
from turnloom.runtime.spec import Stop
from turnloom.testing.contracts import CODEC, Noted, event, events
from turnloom.testing.contracts.facts import key

LINE = 7


def say(word: object) -> None:
    print(word, flush=True)


async def append_forever(store: SqliteStore) -> None:
    async with store.claims.claim(key("a")):
        position = 0
        while True:
            await store.log.append(key("a"), events("a", LINE, after=position), position)
            position += LINE
            say(position)


async def branch_forever(store: SqliteStore) -> None:
    position = number = 0
    while True:
        await store.log.append(key("a"), events("a", LINE, after=position), position)
        position, number = position + LINE, number + 1
        own = events(f"branch {number}", LINE, after=position)
        await store.log.branch(key(f"branch {number}"), "a", position, own)
        say(number)


async def append_many(store: SqliteStore) -> None:
    for position in range(0, 200, 2):
        run = f"run of {sys.argv[3]}"
        await store.log.append(key(run), events(run, 2, after=position), position)


async def append_and_offer(store: SqliteStore) -> None:
    await store.log.append(key("a"), events("a", 3), 0)
    await store.inbox.offer(key("b"), "m1", Stop("child"))


async def hold(store: SqliteStore) -> None:
    async with store.claims.claim(key("a")):
        say("held")
        await asyncio.to_thread(sys.stdin.readline)
    say("free")
    await asyncio.to_thread(sys.stdin.readline)


async def lose(store: SqliteStore) -> None:
    """Hold two runs until one is lost, write to both, and hold the other one to the end."""
    async with store.claims.claim(key("kept")) as kept:
        try:
            async with store.claims.claim(key("a")) as fence:
                await store.log.append(key("a"), events("a", 1), 0, fence)
                say("held")
                await asyncio.Event().wait()
        except LeaseLost:
            say("lost")
        try:
            await store.log.append(key("a"), events("a", 1, after=2), 2, fence)
        except LeaseLost:
            say("refused")
        await store.log.append(key("kept"), events("kept", 1), 0, kept)
        say("kept")
        await asyncio.to_thread(sys.stdin.readline)


async def fill_the_disk(store: SqliteStore) -> None:
    """Meet a limit on the size of files, stand it, and go on when it is lifted."""
    await store.log.append(key("a"), events("a", 2), 0)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    position = 2
    try:
        while True:
            batch = [event("a", position + n, Noted("x" * 5000)) for n in range(1, 8)]
            await store.log.append(key("a"), batch, position)
            position += 7
    except StoreUnavailable as error:
        say(error)
    assert len(await store.log.read(key("a"))) == position
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await store.log.append(key("a"), batch, position)
    assert len(await store.log.read(key("a"))) == position + 7
    say("went on")


async def main() -> None:
    lease = {"lease": float(sys.argv[3])} if sys.argv[1] == "lose" else {}
    store = SqliteStore(Path(sys.argv[2]), CODEC, **lease)
    try:
        await globals()[sys.argv[1]](store)
    finally:
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
