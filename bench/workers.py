"""Workers on one PostgreSQL: drives per second, time to start, takeover, and memory."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.measures import Measure, Size
from bench.worker_app import SECONDS, Nap, naps, waits
from tests.support.servers import PostgresServer
from turnloom import Flow, Loom

ROOT = Path(__file__).parents[1]
CORES = os.cpu_count() or 1
SLOTS = 10
LEASE = 5.0

# Two workers drive 1.8 times as much as one, where each of them, the server and the program that
# starts the runs have a core of their own.
SPEEDUP = 1.8
ENOUGH_CORES = 4


class DurableServer(PostgresServer):
    """A server that writes to the disk before it says so, as in production."""

    def command(self) -> list[str]:
        settings = (
            "fsync=on",
            "full_page_writes=on",
            "max_connections=200",
            "shared_buffers=128MB",
        )
        return [*super().command(), *(word for each in settings for word in ("-c", each))]


def measure(size: Size, root: Path) -> Iterator[Measure]:
    """Measure with one, two and four worker processes on a server of their own."""
    server = DurableServer()
    server.start()
    try:
        yield from asyncio.run(_measure(server, size, root))
    finally:
        server.discard()


async def _measure(server: PostgresServer, size: Size, root: Path) -> list[Measure]:
    found: list[Measure] = []
    rates: dict[int, float] = {}
    for count in (1, 2, 4):
        with server.database() as name:
            rates[count] = await _rate(server.url(name), count, size.drives, root)
        is_judged = count == 2 and CORES >= ENOUGH_CORES
        cores = "" if is_judged or count == 1 else f", {CORES} cores: not judged"
        found.append(
            Measure(
                "workers",
                f"{count} x {SLOTS} slots, {1000 * SECONDS:.0f} ms each{cores}",
                rates[count],
                "drives/s",
                "one worker",
                rates[1] / rates[count],
                1 / SPEEDUP if is_judged else None,
            )
        )
    with server.database() as name:
        found += await _starts(server.url(name), size, root)
    with server.database() as name:
        found.append(await _takeover(server.url(name), root))
    with server.database() as name:
        found.append(await _memory(server.url(name), size.parked_elsewhere, root))
    return found


@contextmanager
def working(url: str, count: int, root: Path) -> Generator[list[subprocess.Popen[bytes]]]:
    """Worker processes, which are killed at last."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TURNLOOM_STORE": url,
        "TURNLOOM_SCHEDULER": "procrastinate",
        "TURNLOOM_LEASE": str(LEASE),
    }
    words = ("worker", "--app", "bench.worker_app:app", "--slots", str(SLOTS))
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "turnloom", *words],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _loom(url: str) -> Loom:
    return Loom(store=url, scheduler="procrastinate", lease=LEASE)


async def _start(app: Loom, flow: Flow[Nap], count: int, seconds: float = SECONDS) -> None:
    for first in range(0, count, 50):
        some = min(50, count - first)
        await asyncio.gather(*(app.start(flow, Nap(seconds=seconds)) for _ in range(some)))


async def _rest(
    app: Loom, status: str, count: int, workers: Sequence[subprocess.Popen[bytes]]
) -> None:
    """Wait until so many runs have a status; seldom, since a look at all of them takes the server's
    time."""
    while len(await app.runs(count, status=status)) < count:
        assert all(each.poll() is None for each in workers), "A worker has ended."
        await asyncio.sleep(max(0.5, count / 1000))


async def _rate(url: str, workers: int, drives: int, root: Path) -> float:
    """Drives per second between the first and the last end of waiting runs."""
    async with _loom(url) as app:
        await _start(app, naps, drives)
        with working(url, workers, root) as started:
            await _rest(app, "finished", drives, started)
        ends = sorted(each.latest for each in await app.runs(drives))
    # The beginning, in which workers start one after the other, and the end do not count.
    first, last = drives // 5, drives - drives // 10 - 1
    return (last - first) / (ends[last] - ends[first]).total_seconds()


async def _starts(url: str, size: Size, root: Path) -> list[Measure]:
    """Milliseconds from the start of a run to that of its first step, while workers are idle."""
    waited: list[float] = []
    async with _loom(url) as app:
        with working(url, 1, root):
            for number in range(size.wakes + 5):
                run = await app.start(naps, Nap(seconds=0.0))
                await run.finished()
                events = {each.kind: each.at for each in await app.history.events(run.id)}
                if number >= 5:
                    took = events["step.started"] - events["run.started"]
                    waited.append(1000 * took.total_seconds())
    waited.sort()
    half, most = waited[len(waited) // 2], waited[int(len(waited) * 0.99)]
    nap = 1000 * SECONDS
    return [
        Measure("workers", "wake to start, p50", half, "ms", "a drive", half / nap),
        Measure("workers", "wake to start, p99", most, "ms", "a drive", most / nap),
    ]


async def _takeover(url: str, root: Path) -> Measure:
    """Seconds from the death of a worker until another one continues its run."""
    async with _loom(url) as app:
        with working(url, 1, root) as (doomed,):
            run = await app.start(naps, Nap(seconds=60.0))
            position = 0
            async for event in run.events():
                position = event.seq
                if event.kind == "step.started":
                    break
            with working(url, 1, root):
                await asyncio.sleep(3)  # the other one has started
                doomed.send_signal(signal.SIGKILL)
                killed = asyncio.get_running_loop().time()
                async for event in run.events(position):
                    if event.kind == "run.resumed":
                        break
                seconds = asyncio.get_running_loop().time() - killed
    case = f"takeover of a killed worker, lease {LEASE:.0f} s"
    return Measure("workers", case, seconds, "s", "the lease", seconds / LEASE, 2.0)


async def _memory(url: str, parked: int, root: Path) -> Measure:
    """Memory of a worker that parked many runs."""
    async with _loom(url) as app:
        with working(url, 1, root) as (worker,):
            await _start(app, waits, 300, 0.0)  # as many as a worker keeps in memory
            await _rest(app, "waiting", 300, [worker])
            before = _resident(worker.pid)
            await _start(app, waits, parked - 300, 0.0)
            await _rest(app, "waiting", parked, [worker])
            after = _resident(worker.pid)
    case = f"memory of a worker with {parked:,} parked runs"
    return Measure("workers", case, after / 2**20, "MB", "with 300", after / before)


def _resident(pid: int) -> int:
    text = Path(f"/proc/{pid}/statm").read_text("ascii")
    return int(text.split()[1]) * os.sysconf("SC_PAGESIZE")
