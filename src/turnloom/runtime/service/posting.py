"""What goes on between the runs of boards, and how much of it."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from turnloom.board.ports import ArtifactStore
from turnloom.board.service.rebuilding import index
from turnloom.errors import RunBusy
from turnloom.log.events import RunStarted
from turnloom.log.spec import Event, RunKey
from turnloom.runs.actions import Forward, OpenRun
from turnloom.runtime.service.activity import NOTED, Activity
from turnloom.runtime.service.boards import BoardRuns
from turnloom.runtime.service.driver import Driver
from turnloom.runtime.service.journal import Tell


class Posting:
    """The boards of a program: what one run has for another, and which of their runs are busy."""

    def __init__(self, artifacts: ArtifactStore) -> None:
        self.activities: dict[RunKey, Activity] = {}
        self._artifacts = artifacts
        self._boards: dict[str, BoardRuns] = {}

    def add(self, board: BoardRuns) -> BoardRuns:
        """Know a board."""
        self._boards[board.name] = board
        return board

    async def deliver(self, board: str, what: Forward) -> None:
        """Bring an artifact to the run that collects for a subscription."""
        await self._boards[board].deliver(what)

    async def open(self, board: str, opening: OpenRun, parent: str) -> None:
        """Begin the run of a set that was collected."""
        await self._boards[board].open(opening, parent)

    def serves(self, started: RunStarted) -> bool:
        """Whether a board of this program attends to all of its runs, and this is one of them."""
        board = self._boards.get(started.workflow)
        return board is not None and board.is_served and board.has(started)

    @contextmanager
    def busy(self, run: RunKey, driver: Driver) -> Generator[None]:
        """Let the board of a run know that it is busy."""
        activity = self.activities.get(run)
        if activity is None:
            yield
            return
        begun, is_resting = activity.begin(run.id), True
        try:
            yield
            is_resting = not driver.continues(run)
        except (RunBusy, asyncio.CancelledError):
            is_resting = False  # another drive follows
            raise
        except Exception as error:
            activity.fail(error)
            raise
        finally:
            activity.end(run.id, begun, is_resting=is_resting)
            if not (driver.keeps(run) or activity.is_wanted(run.id)):
                self.activities.pop(run, None)

    def watch(self, run: RunKey) -> Tell | None:
        """What is told of everything that is stored of a run, if anything has to be."""
        is_told = run in self.activities or not self._artifacts.follows_log
        return self._note if is_told else None

    async def _note(self, run: RunKey, batch: Sequence[Event]) -> None:
        """Take notice of what is stored of a run, and bring the index of artifacts up to it."""
        if not self._artifacts.follows_log:
            await index(self._artifacts, run.tenant, batch)
        activity = self.activities.get(run)
        if activity is not None:
            for event in batch:
                if event.kind in NOTED:
                    activity.note(event)
            activity.change()

    def stop(self) -> None:
        """Let the boards know that nothing is driven any more."""
        for board in self._boards.values():
            board.activity.stop()

    def attends(self, run: RunKey) -> bool:
        """Whether the board of a run is told what becomes of it."""
        return run in self.activities
