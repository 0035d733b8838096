"""Processes killed or stopped at every await of an operation: another one finishes their runs."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGCONT
from tempfile import TemporaryFile
from typing import IO, Any

import pytest

from tests.runtime import dying
from tests.runtime.dying import Play
from tests.support.interruptions import until_asked
from tests.support.warm import Process, Warm
from tests.support.world import PATIENCE
from turnloom import Loom, Run, StoreUnavailable, UsageError
from turnloom.events import StepCompleted, ToolReturned

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


FORMS = ("flow", "conversation", "board")


def effects(folder: Path) -> Counter[str]:
    """How often each effect was done."""
    file = folder / "effects"
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(line.split()[0] for line in lines)


async def prepare(form: str, folder: Path) -> None:
    """Leave a run that waits for an answer."""
    play = Play(form, folder)
    async with play.app:
        await until_asked(await play.begin())


async def completed(app: Loom) -> set[str]:
    """The steps and tools whose completion is on record."""
    logs = [await app.history.events(each.run) for each in await app.runs()]
    facts = [event.data for log in logs for event in log]
    steps = {fact.step for fact in facts if isinstance(fact, StepCompleted)}
    return steps | {fact.tool for fact in facts if isinstance(fact, ToolReturned)}


async def until_free(run: Run[Any]) -> None:
    """Wait until the lease of the process that holds a run is over."""
    holder = await run.holder()
    if holder is not None:
        await asyncio.sleep(holder.seconds or 0)
        await until_free(run)


async def finish(run: Run[Any]) -> None:
    """Finish a run that was taken up."""
    if await until_asked(run):
        with suppress(UsageError):  # it was told to end before
            await run.answer(None, "approve")
    assert (await run.finished()).kind in ("run.finished", "run.cancelled")


async def take_up(form: str, folder: Path) -> dict[str, int]:
    """Finish what is there once it is free, and verify it; how many events each run has then."""
    play = Play(form, folder)
    async with play.app as app, asyncio.timeout(PATIENCE):
        done, before = await completed(app), effects(folder)
        runs = [app.handle(each.run) for each in await app.runs()]
        for run in runs:
            await until_free(run)
        await play.resume()
        for run in runs:
            await finish(run)
        after = effects(folder)
        assert all(after[step] == before[step] for step in done), "an effect was done twice"
        verified = [each async for each in app.history.verify()]
    assert not [each for each in verified if each.problems]
    return {each.run: each.events for each in verified}


async def lengths(folder: Path, runs: Iterable[str]) -> dict[str, int]:
    async with Loom(store=folder / "runs.db") as app:
        return {run: len(await app.history.events(run)) for run in runs}


class Child:
    """A process that does an operation, and is killed or stopped meanwhile."""

    def __init__(self, process: Process, out: int, errors: IO[bytes]) -> None:
        self.process = process
        self._out = out
        self._errors = errors

    def is_met(self) -> bool:
        """Wait for its signal or its end; whether the signal came first."""
        return os.read(self._out, 64) != b""

    def halt(self) -> None:
        """Wait until it is stopped."""
        state = Path(f"/proc/{self.process.pid}/stat")
        while state.read_text().rpartition(")")[2].split()[0] != "T":
            os.sched_yield()

    def end(self) -> tuple[int, str]:
        """Wait for its end; its exit code, and what it complained about."""
        code = self.process.wait()
        self._errors.seek(0)
        return code, self._errors.read().decode()


@contextmanager
def begin(warm: Warm, folder: Path, *words: str) -> Iterator[Child]:
    """A process in a folder, which does not outlive the context."""
    read, write = os.pipe()
    script = [dying.__file__, *words]
    with open(os.devnull) as nothing, TemporaryFile() as errors:
        process = warm.start(script, folder, ENVIRONMENT, nothing, write, errors, program="python")
        os.close(write)
        try:
            yield Child(process, read, errors)
        finally:
            process.kill()
            process.wait()
            os.close(read)


class Stage:
    """Folders with what an operation needs, one for each await."""

    def __init__(self, folder: Path, warm: Warm, form: str, operation: str) -> None:
        self._form = form
        self._folder = folder
        self._warm = warm
        self._operation = operation
        self.locked = 0
        self._first = folder / "first"
        self._first.mkdir()
        if operation in ("resume", "answer", "cancel"):
            asyncio.run(prepare(form, self._first))

    def kill(self, n: int) -> bool:
        """Kill a process at its n-th await, and take over; whether it came so far."""
        place = self._place(n)
        with begin(self._warm, place, self._form, self._operation, str(n), "SIGKILL") as child:
            is_met = child.is_met()
            code, errors = child.end()
        assert code == (-9 if is_met else 0), errors
        asyncio.run(take_up(self._form, place))
        return is_met

    def stop(self, n: int) -> bool:
        """Stop a process at its n-th await, take over, and continue it; whether it came so far."""
        place = self._place(n)
        with begin(self._warm, place, self._form, self._operation, str(n), "SIGSTOP") as child:
            if not child.is_met():
                return False
            child.halt()
            taken = self._take_up(place)
            done = effects(place)
            os.kill(child.process.pid, SIGCONT)
            _, errors = child.end()
        assert "Traceback" not in errors, errors
        assert asyncio.run(lengths(place, taken)) == taken, f"it stored something: {errors}"
        if taken:
            assert (effects(place) - done).total() <= 1, "more than what was in flight was repeated"
        else:
            asyncio.run(take_up(self._form, place))
        return True

    def _take_up(self, place: Path) -> dict[str, int]:
        """Take over from a process that is stopped, unless it was stopped while it closed the
        file: SQLite's lock stays with it then, and the store says so."""
        try:
            return asyncio.run(take_up(self._form, place))
        except StoreUnavailable:
            self.locked += 1
            return {}

    def _place(self, n: int) -> Path:
        return Path(shutil.copytree(self._first, self._folder / str(n)))


@pytest.mark.parametrize("operation", dying.OPERATIONS)
def test_a_killed_process_leaves_its_run_to_another(
    operation: str, tmp_path: Path, warm: Warm
) -> None:
    assert Stage(tmp_path, warm, "flow", operation).kill(3)


@pytest.mark.parametrize("form", FORMS)
def test_a_stopped_process_leaves_its_run_to_another(form: str, tmp_path: Path, warm: Warm) -> None:
    assert Stage(tmp_path, warm, form, "answer").stop(8)


@pytest.mark.doors
@pytest.mark.timeout(600)  # dozens of processes
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", dying.OPERATIONS)
def test_processes_killed_at_every_await(
    form: str, operation: str, tmp_path: Path, warm: Warm
) -> None:
    stage = Stage(tmp_path, warm, form, operation)
    assert not all(stage.kill(n) for n in range(300))


@pytest.mark.doors
@pytest.mark.timeout(600)  # dozens of processes
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("operation", dying.OPERATIONS)
def test_processes_stopped_at_every_await(
    form: str, operation: str, tmp_path: Path, warm: Warm
) -> None:
    stage = Stage(tmp_path, warm, form, operation)
    assert not all(stage.stop(n) for n in range(300))
    assert stage.locked <= 2, "only closing keeps the file locked"
