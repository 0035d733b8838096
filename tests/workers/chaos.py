"""Disturb workers at random under a load of all three forms, and look at what is left.

As a program: `python -m tests.workers.chaos [SECONDS] [WORKERS]`.
"""

import asyncio
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from tests.support.servers import PostgresServer
from tests.workers.crew import FOLDERS, Crew, all_ended, crew_of, lost, repeated
from tests.workers.effects import plain
from tests.workers.shop import Order, Ticket, declare, orders
from turnloom import Loom
from turnloom.adapters.system import SystemEntropy
from turnloom.errors import TurnloomError

LEASE = 2.0
KINDS = ("flow", "board", "conversation")

CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND pid % 3 = %s"
)


class RoomyServer(PostgresServer):
    """A server for many workers."""

    def command(self) -> list[str]:
        return [*super().command(), "-c", "max_connections=200"]


@dataclass
class Report:
    """What a disturbed load came to."""

    runs: int = 0
    disturbances: Counter[str] = field(default_factory=Counter[str])
    unlike: list[str] = field(default_factory=list[str])
    repeated: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    differing: list[str] = field(default_factory=list[str])
    damaged: list[str] = field(default_factory=list[str])

    @property
    def is_clean(self) -> bool:
        return not (self.unlike or self.repeated or self.lost or self.differing or self.damaged)

    def __str__(self) -> str:
        done = ", ".join(f"{name}: {count}" for name, count in sorted(self.disturbances.items()))
        return (
            f"{self.runs} runs; {done}. Ended unlike their twin: {len(self.unlike)}; completed "
            f"effects repeated: {len(self.repeated)}; lost: {len(self.lost)}; replays that differ: "
            f"{len(self.differing)}; damaged logs: {len(self.damaged)}."
        )


class Chaos:
    """A load, and what disturbs it."""

    def __init__(self, server: PostgresServer, crew: Crew, seconds: float) -> None:
        self._server = server
        self._crew = crew
        self._seconds = seconds
        self._below = SystemEntropy().below
        self._stopped: set[subprocess.Popen[bytes]] = set()
        self.report = Report()

    async def run(self) -> Report:
        """Disturb for some seconds, then let everything end."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._seconds
        async with self._crew.loom() as app:
            board = declare(app)
            disturbing = asyncio.ensure_future(self._disturb(until))
            number = 0
            while loop.time() < until:
                await _insistently(partial(_start, app, board, KINDS[number % 3], number))
                number += 1
                await asyncio.sleep(0.1)
            await disturbing
            await self._judge(app)
        return self.report

    async def _disturb(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        acts = (
            self._kill,
            self._kill,
            self._pause,
            self._pause,
            self._cut,
            self._cut,
            self._restart,
        )
        while loop.time() < until:
            await asyncio.sleep(1 + self._below(2000) / 1000)
            act = acts[self._below(len(acts))]
            self.report.disturbances[act.__name__.strip("_")] += 1
            await act()
        for worker in self._stopped:
            worker.send_signal(signal.SIGCONT)

    def _any(self) -> subprocess.Popen[bytes]:
        alive = [each for each in self._crew.workers if each.poll() is None]
        return alive[self._below(len(alive))]

    async def _kill(self) -> None:
        worker = self._any()
        worker.kill()
        await asyncio.to_thread(worker.wait)
        self._crew.start()

    async def _pause(self) -> None:
        """Stop a worker for up to twice its lease."""
        worker = self._any()
        worker.send_signal(signal.SIGSTOP)
        self._stopped.add(worker)
        await asyncio.sleep(self._below(int(2000 * self._crew.lease)) / 1000)
        worker.send_signal(signal.SIGCONT)
        self._stopped.discard(worker)

    async def _cut(self) -> None:
        def cut() -> None:
            with psycopg.connect(self._server.url(), autocommit=True) as connection:
                connection.execute(CUT.replace("% 3", "%% 3"), (self._below(3),))

        await asyncio.to_thread(cut)

    async def _restart(self) -> None:
        await asyncio.to_thread(self._server.stop, signal.SIGQUIT)
        await asyncio.sleep(self._below(1500) / 1000)
        await asyncio.to_thread(self._server.start)

    async def _judge(self, app: Loom) -> None:
        logs = await all_ended(app, 300)
        report, twins = self.report, await _twins()
        report.runs = len(logs)
        for run, log in logs.items():
            if _end(log) not in twins:
                report.unlike.append(f"{run}: {log[-1]}")
            if (await app.history.replay(run)).divergence is not None:
                report.differing.append(run)
        async for verified in app.history.verify():
            if verified.problems:
                report.damaged.append(verified.run)
        report.repeated, report.lost = repeated(self._crew, logs), lost(self._crew, logs)


async def _insistently(act: Callable[[], Awaitable[Any]]) -> None:
    """Do it again while the store is unavailable."""
    while True:
        try:
            await act()
            return
        except TurnloomError:
            await asyncio.sleep(0.2)


async def _start(app: Loom, board: Any, kind: str, number: int) -> None:
    if kind == "flow":
        await app.start(orders, Order(number=number))
    elif kind == "board":
        await board.publish(Ticket(number=number), id=f"ticket {number}")
    else:
        await app.start(FOLDERS / "Relay")


def _end(log: list[str]) -> tuple[str, ...]:
    """How a run ended, without keys: the kind of its last event, and every effect on record."""
    kind = log[-1].partition('"kind":"')[2].partition('"')[0]
    effects = sorted({plain(part) for line in log for part in line.split('"') if "<<" in part})
    return (kind, *effects)


async def _twins() -> set[tuple[str, ...]]:
    """How undisturbed runs of the same load end."""
    async with Loom(store="memory", scheduler="inline") as app:
        board = declare(app)
        for kind in KINDS:
            await _start(app, board, kind, 0)
        await board.run_until_idle(60)
        return {_end(log) for log in (await all_ended(app)).values()}


async def unleash(seconds: float, workers: int, folder: Path) -> Report:
    """Disturb a load for some seconds, and judge what is left."""
    server = await asyncio.to_thread(RoomyServer)
    await asyncio.to_thread(server.start)
    try:
        with crew_of(workers, server.url(), folder, lease=LEASE, seconds=0.05) as crew:
            try:
                return await Chaos(server, crew, seconds).run()
            except TimeoutError:
                print(crew.logs(), file=sys.stderr)
                raise
    finally:
        await asyncio.to_thread(server.discard)


if __name__ == "__main__":
    import os

    given = [float(word) for word in sys.argv[1:]] + [60.0, 4.0][len(sys.argv) - 1 :]
    with tempfile.TemporaryDirectory() as place:
        os.environ["EFFECTS"] = f"{place}/twins"
        result = asyncio.run(unleash(given[0], int(given[1]), Path(place)))
    print(result)
    for name in ("unlike", "repeated", "lost", "differing", "damaged"):
        for line in getattr(result, name)[:10]:
            print(f"  {name}: {line[:300]}")
    sys.exit(0 if result.is_clean else 1)
