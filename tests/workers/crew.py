"""Workers in processes of their own, over one database."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from tests.workers.effects import executions, recorded
from turnloom import Loom
from turnloom.log.events import ENDS

ROOT = Path(__file__).parents[2]
FOLDERS = ROOT / "tests" / "workers" / "folders"
LEASE = 3.0


@dataclass
class Crew:
    """Workers that share a database, and the file in which their effects are written down."""

    url: str
    folder: Path
    lease: float = LEASE
    slots: int = 4
    seconds: float = 0.03
    options: tuple[str, ...] = ()
    app: str = "tests.workers.shop:app"
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def effects(self) -> Path:
        return self.folder / "effects"

    def environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name[:3] != "COV"},
            "PYTHONPATH": str(ROOT),
            "TURNLOOM_STORE": self.url,
            "TURNLOOM_SCHEDULER": "procrastinate",
            "TURNLOOM_LEASE": str(self.lease),
            "TURNLOOM_SWEEP": "5.0",
            "EFFECTS": str(self.effects),
            "EFFECT_SECONDS": str(self.seconds),
        }

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """Start another worker."""
        words = ("--slots", str(self.slots), "--workflows", str(FOLDERS), "--app", self.app)
        log = (self.folder / f"worker-{len(self.workers)}.log").open("wb")
        with log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "turnloom", "worker", *words, *self.options, *options],
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.workers.append(worker)
        return worker

    def loom(self) -> Loom:
        """An app that hands its drives to the workers."""
        return Loom(store=self.url, scheduler="procrastinate", lease=self.lease)

    def logs(self) -> str:
        """What the workers said."""
        return "\n".join(
            f"--- {each.name}\n{each.read_text(errors='replace')[-3000:]}"
            for each in sorted(self.folder.glob("worker-*.log"))
        )

    def stop(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()


@contextmanager
def crew_of(count: int, url: str, folder: Path, **settings: object) -> Generator[Crew]:
    """A number of workers, which are killed at last."""
    crew = Crew(url, folder, **settings)  # type: ignore[arg-type]
    try:
        for _ in range(count):
            crew.start()
        yield crew
    finally:
        crew.stop()


async def all_ended(app: Loom, seconds: float = 120) -> dict[str, list[str]]:
    """The log of every run as texts, once all have ended."""
    async with asyncio.timeout(seconds):
        while await app.runs(unfinished=True):  # noqa: ASYNC110 - workers change it
            await asyncio.sleep(0.2)
    logs: dict[str, list[str]] = {}
    for each in await app.runs(10_000):
        events = await app.history.events(each.run)
        assert events[-1].kind in ENDS
        logs[each.run] = [msgspec.json.encode(event).decode() for event in events]
    return logs


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - workers change it
            await asyncio.sleep(0.02)


def repeated(crew: Crew, logs: dict[str, list[str]]) -> list[str]:
    """The keys of completed effects that were carried out again: an execution began after the one
    on record."""
    known, began = recorded(line for log in logs.values() for line in log), executions(crew.effects)
    assert all(len(each) == 1 for each in known.values()), known
    return [key for key, (one,) in known.items() if began[key][-1] != one]


def lost(crew: Crew, logs: dict[str, list[str]]) -> list[str]:
    """The keys of effects that were carried out and are on no record."""
    known = recorded(line for log in logs.values() for line in log)
    return [key for key in executions(crew.effects) if key not in known]
