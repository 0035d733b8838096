"""What another package adds to Turnloom: a store, an engine and a scheduler."""

from pathlib import Path
from typing import Any

from turnloom import Answer, Task
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.sqlite import SqliteStore
from turnloom.adapters.system import SystemClock
from turnloom.runtime.logic import codec


def open_crate(url: str) -> SqliteStore:
    """The store `crate:FOLDER`: a folder with everything in it."""
    folder = Path(url.removeprefix("crate:"))
    return SqliteStore(folder / "runs.db", codec())


class Parrot:
    """An engine that says which model it was made for."""

    def __init__(self, model: str) -> None:
        self._model = model

    async def __call__(self, task: Task) -> Answer:
        return Answer(f"{task.agent} by {self._model or 'heart'}")


class Ledger(InlineScheduler):
    """Drives runs in this process, and writes down which were woken."""

    def __init__(self, file: Path) -> None:
        super().__init__(SystemClock())
        self._file = file

    async def wake(self, *run: Any, **more: Any) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write("woken\n")
        await super().wake(*run, **more)


def open_ledger(url: str) -> Ledger:
    """The scheduler `ledger:FILE`."""
    return Ledger(Path(url.removeprefix("ledger:")))
