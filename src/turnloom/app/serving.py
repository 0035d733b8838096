"""What a process does that serves an app: pick up runs, say how it is, stop in order."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING

from turnloom.errors import PlanChanged, RunBusy, TurnloomError
from turnloom.log.spec import LOCAL, RunKey

if TYPE_CHECKING:
    from turnloom.app.board import Board
    from turnloom.app.workflows import Workflows
    from turnloom.log.events import RunStarted
    from turnloom.runtime.runs import Runs
    from turnloom.wiring import Parts

log = logging.getLogger("turnloom.runs")

# Runs that are looked at together.
PAGE = 200

# Answers of checks that found nothing wrong.
OK = "ok"


class Serving:
    """An app as a long-lived process serves it. It picks up runs that others left."""

    def __init__(
        self,
        parts: "Callable[[], Parts]",
        serve: "Callable[[], Runs]",
        workflows: "Workflows",
        boards: "Callable[[], list[Board]]",
        *,
        is_driving: Callable[[], bool],
    ) -> None:
        self._parts = parts
        self._serve = serve
        self._workflows = workflows
        self._boards = boards
        self._is_driving = is_driving

    async def pick_up(self) -> int:
        """Continue the unfinished runs of the served workflows, of all tenants, and drive such runs
        from now on when other processes send them messages or give them back. Returns how many are
        continued."""
        runs = self._serve()
        runs.also_serves = self._workflows.serves
        count = 0
        for board in self._boards():
            try:
                count += len(await board.resume())
            except PlanChanged as error:
                log.warning("board %s: %s", board.name, error)
        async for run, started in self._unfinished():
            if started.form == "reaction" or not self._workflows.serves(started):
                continue
            try:
                await runs.resume(run)
                count += 1
            except RunBusy:
                log.info("run %s is driven by another process", run.id)
            except TurnloomError as error:
                log.warning("run %s was not picked up: %s", run.id, error)
        return count

    async def _unfinished(self) -> "AsyncGenerator[tuple[RunKey, RunStarted]]":
        """The unfinished runs of all tenants."""
        from turnloom.log.events import RunStarted

        store = self._parts().store
        stored, tenants = store.log, getattr(store, "tenants", None)
        for tenant in await tenants.names() if tenants else [LOCAL]:
            before: str | None = None
            while True:
                ends = await stored.runs(tenant, PAGE, before=before, unfinished=True)
                for first, last in ends:
                    if isinstance(first.data, RunStarted):
                        yield RunKey(tenant, last.run), first.data
                if len(ends) < PAGE:
                    break
                before = ends[-1][1].run

    async def health(self) -> Mapping[str, str]:
        """Whether the store can be read, and whether runs are driven here, or what is wrong."""
        try:
            await self._parts().store.log.runs(LOCAL, 1)
            store = OK
        except TurnloomError as error:
            log.warning("the store is not ready: %s", error)
            store = error.code
        return {"store": store, "scheduler": OK if self._is_driving() else "stopped"}

    async def drain(self, seconds: float) -> int:
        """Wait until no run is driven here, at most so long; returns how many still are."""
        runs = self._parts().runs
        try:
            async with asyncio.timeout(seconds):
                await runs.drives.quiet()
        except TimeoutError:
            return len(runs.drives)
        return 0
