"""Runs in PostgreSQL: the cost of a turn and of a crowd, and how soon other processes see appends.

Times are those of the clock, since the server works too. The server is the one of the URL in
`TURNLOOM_BENCH_POSTGRES`, or one that is started here, which waits for the disk at each commit.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Generator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from urllib.parse import quote

import psycopg

from bench.baselines import RECORD
from bench.board import SERVER
from bench.measures import Measure, Rounds, Size
from bench.workload import PATIENCE, PLAIN, write_talk
from tests.support.servers import PostgresServer
from turnloom import Answer, Loom, Task
from turnloom.adapters.postgres import PostgresStore
from turnloom.agents.events import UserText
from turnloom.log.spec import Event, RunKey
from turnloom.ports import codec

NAME = "postgres"
ROUNDS = 2

# Seconds for all turns of a crowd: each waits for the disk.
CROWDED = 5 * PATIENCE

# Appends per second while a stream is measured, and the target for its 99th percentile in seconds.
RATE, SOON = 500, 0.1


class DurableServer(PostgresServer):
    """The server of the tests, which waits for the disk at each commit."""

    def command(self) -> list[str]:
        given = super().command()
        return [
            "full_page_writes=on"
            if each.startswith("full_page")
            else each.replace("fsync=off", "fsync=on")
            for each in given
        ]


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Compare turns to a bare commit on the same server, and measure streams of other processes."""
    with _server() as url:
        yield from _turns(url, size, root)
        yield from _streams(url, size)


@contextmanager
def _server() -> Generator[str]:
    """The URL of an empty schema of a server."""
    started: PostgresServer | None = None
    url = os.environ.get(SERVER)
    if url is None:
        started = DurableServer()
        started.start()
        url = started.url()
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA IF EXISTS turnloom_bench_runs CASCADE")
            connection.execute("CREATE SCHEMA turnloom_bench_runs")
        path = quote("-c search_path=turnloom_bench_runs")
        yield f"{url}{'&' if '?' in url else '?'}options={path}"
    finally:
        if started is not None:
            started.discard()


# ------------------------------------------------------------------ turns


def _turns(url: str, size: Size, root: Path) -> Iterator[Measure]:
    bare, alone, crowd = "a bare commit", "a run alone", f"{size.crowd:,} runs at once"
    turns = size.window
    workflow = write_talk(root / "Talk", max(turns, size.crowd_turns) + 1, 0)
    rounds = Rounds()
    for _ in range(ROUNDS):
        rounds.add(bare, asyncio.run(_commits(url, turns)))
        rounds.add(alone, asyncio.run(_driven(url, workflow, 1, turns)))
        rounds.add(crowd, asyncio.run(_driven(url, workflow, size.crowd, size.crowd_turns)))
    for case, against in ((alone, bare), (crowd, alone)):
        value, ratio = rounds.least(case) * 1e6, rounds.ratio(case, against)
        yield Measure(NAME, case, value, "µs/turn", against, ratio)


async def _commits(url: str, count: int) -> float:
    """Seconds per commit of one row."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS bare (n serial PRIMARY KEY, d bytea)")
        begin = perf_counter()
        for _ in range(count):
            await connection.execute("INSERT INTO bare (d) VALUES (%s)", (RECORD,))
        return (perf_counter() - begin) / count


class Relay:
    """An engine that measures from the first turn of the last run to the given turn of all."""

    def __init__(self, runs: int, turns: int) -> None:
        self._turns = turns
        self._missing = self._under_way = runs
        self._start, self._end = asyncio.Event(), asyncio.Event()
        self.spent = 0.0

    async def __call__(self, task: Task) -> Answer:
        if task.turn == 1:
            self._missing -= 1
            if not self._missing:
                self.spent = -perf_counter()
                self._start.set()
            await self._start.wait()
        elif task.turn == self._turns:
            self._under_way -= 1
            if not self._under_way:
                self.spent += perf_counter()
                self._end.set()
        return PLAIN

    async def done(self) -> None:
        """Wait for the last run."""
        async with asyncio.timeout(CROWDED):
            await self._end.wait()


async def _driven(url: str, workflow: str, runs: int, turns: int) -> float:
    """Seconds per turn."""
    relay = Relay(runs, turns)
    async with Loom(store=url, engine=relay, slots=runs) as app:
        for _ in range(runs):
            await app.start(workflow)
        await relay.done()
        return relay.spent / (runs * (turns - 1))


# ------------------------------------------------------------------ streams


def _streams(url: str, size: Size) -> Iterator[Measure]:
    """Seconds from an append in another process until a follower has it."""
    seconds = max(size.window / 20, 1.0)
    delays, appends = asyncio.run(_follow(url, int(RATE * seconds)))
    case = f"streams at {RATE:,} appends/s"
    for what, found in (("seen", delays), ("of that the append itself", appends)):
        middle, last = median(found), quantiles(found, n=100)[98]
        for name, value in (("median", middle), ("99 %", last)):
            yield Measure(
                NAME, f"{case}, {what}, {name}", value * 1e3, "ms", "100 ms", value / SOON, 1.0
            )


async def _follow(url: str, count: int) -> tuple[list[float], list[float]]:
    """Follow ten runs that another process appends to: seconds from before an append until it is
    seen, and those that the append itself takes."""
    runs = [RunKey("local", f"streamed{n}") for n in range(10)]
    delays: list[float] = []
    async with aclosing(PostgresStore(url, codec())) as store:
        await store.log.ends(runs[0])
        following = [asyncio.create_task(_delays(store, run, count // 10, delays)) for run in runs]
        command = (sys.executable, "-m", "bench.postgres", url, str(count))
        writer = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*following)
            said, _ = await writer.communicate()
    return delays, json.loads(said)


async def _delays(store: PostgresStore, run: RunKey, count: int, delays: list[float]) -> None:
    async with aclosing(store.log.subscribe(run)) as events:
        async for event in events:
            delays.append((datetime.now(UTC) - event.at).total_seconds())
            if event.seq == count:
                return


async def append(url: str, count: int) -> list[float]:
    """Append events to ten runs in turns, at an even rate, each with the time before its append;
    returns how long each takes."""
    took: list[float] = []
    async with aclosing(PostgresStore(url, codec())) as store, asyncio.TaskGroup() as tasks:
        begin = perf_counter()
        for n in range(10):
            tasks.create_task(_append(store, n, count // 10, begin, took))
    return took


async def _append(
    store: PostgresStore, n: int, count: int, begin: float, took: list[float]
) -> None:
    run = RunKey("local", f"streamed{n}")
    for seq in range(1, count + 1):
        due = begin + ((seq - 1) * 10 + n) / RATE
        await asyncio.sleep(max(due - perf_counter(), 0))
        at = datetime.now(UTC)
        fact = UserText("bench", "x" * 200)
        event = Event(f"{seq}", run.id, seq, at, kind=fact.kind, actor="bench", data=fact)
        before = perf_counter()
        await store.log.append(run, [event], seq - 1)
        took.append(perf_counter() - before)


def main(arguments: Sequence[str]) -> None:
    url, count = arguments
    sys.stdout.write(json.dumps(asyncio.run(append(url, int(count)))))


if __name__ == "__main__":
    main(sys.argv[1:])
