"""What a process does that serves an app: pick up runs, say how it is, stop in order."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from turnloom.app.arguments import as_path
from turnloom.errors import PlanChanged, RunBusy, StoreUnavailable, TurnloomError, UsageError
from turnloom.kernel.arguments import as_count, as_seconds
from turnloom.log.spec import LOCAL, RunKey

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike

    from turnloom.app.board import Board
    from turnloom.app.workflows import Workflows
    from turnloom.jobs.ports import JobStore
    from turnloom.log.events import RunStarted
    from turnloom.runtime.ports import Migrator
    from turnloom.runtime.runs import Runs
    from turnloom.wiring import Parts

log = logging.getLogger("turnloom.runs")

# Runs that are looked at together.
PAGE = 200

# Answers of checks that found nothing wrong.
OK = "ok"

# Seconds that the checks may take.
HEALTH = 3.0


class Serving:
    """An app as a long-lived process serves it. It picks up runs that others left.

    Attributes:
        closing: What is called, in order, before the app closes.
    """

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
        self.closing: list[Callable[[], Awaitable[None]]] = []

    async def work(
        self,
        slots: int | None = None,
        *,
        workflows: "str | PathLike[str] | None" = None,
        grace: float = 30.0,
    ) -> None:
        """Be a worker: drive the runs that programs hand over, at most `slots` at once (by default
        as the setting says), until cancelled. Then take nothing new, and give back what neither
        ends nor parks within `grace` seconds.

        The code of runs comes from the flows and boards that are declared here, and from
        `workflows`: a folder with workflow folders and code files, found by their names.

        Raises:
            UsageError: the scheduler drives runs where they are started, or there is no folder
                `workflows`.
            StoreUnavailable: the store cannot be used, or has the schema of another release.
        """
        most = None if slots is None else as_count(slots, "`slots`")
        seconds = as_seconds(grace, "`grace`") or 0.0
        parts = self._parts()
        if workflows is not None:
            parts.definitions.look_in(as_path(workflows, "`workflows`"))
        if not parts.runs.is_shared:
            raise UsageError(
                f"Scheduler {parts.settings.scheduler!r} drives runs in the process that starts "
                'them, and has no workers. Set `scheduler = "procrastinate"`.'
            )
        await parts.store.log.runs(LOCAL, 1)  # refused before anything is taken
        await parts.runs.serve(most or parts.settings.slots, parts.limits.tenants, seconds)

    async def pick_up(self) -> int:
        """Continue the unfinished runs of the served workflows, of all tenants, and drive such runs
        from now on when other processes send them messages or give them back. Returns how many are
        continued: none if workers drive."""
        runs = self._serve()
        if runs.is_shared:
            return 0
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
        """Whether the store can be read and has the schema of this release, and whether runs are
        driven here or can be handed to workers, or what is wrong."""
        scheduler = OK if self._is_driving() else "stopped"
        try:
            parts = self._parts()
            async with asyncio.timeout(HEALTH):
                await parts.store.log.runs(LOCAL, 1)
                if parts.runs.is_shared:
                    await parts.world.scheduler.status(RunKey(LOCAL, "health"))
                    scheduler = OK
                schema = await _schema(parts)
        except (TurnloomError, TimeoutError) as error:
            log.warning("the store is not ready: %s", error or "it does not answer in time")
            code = error.code if isinstance(error, TurnloomError) else StoreUnavailable.code
            return {"store": code, "scheduler": scheduler}
        return {"store": OK, "schema": schema, "scheduler": scheduler}

    @property
    def has_audit(self) -> bool:
        """Whether what principals do is recorded: the store has the port `audit`."""
        return getattr(self._parts().store, "audit", None) is not None

    @property
    def jobs(self) -> "JobStore":
        """Where work on many runs is kept; its calls are refused if the store has no `jobs`."""
        from turnloom.wiring.doors import port_of

        return port_of(self._parts().store, "jobs")

    def now(self) -> "datetime":
        """The present instant, as the store has it."""
        return self._parts().clock.now()

    def new_id(self) -> str:
        """A name that is not taken."""
        return self._parts().world.entropy.token()

    async def drain(self, seconds: float) -> int:
        """Wait until no run is driven here, at most so long; returns how many still are."""
        runs = self._parts().runs
        try:
            async with asyncio.timeout(seconds):
                await runs.drives.quiet()
        except TimeoutError:
            return len(runs.drives)
        return 0


async def _schema(parts: "Parts") -> str:
    """Whether the tables of the store and of the scheduler are those of this release; another
    process may have changed them since they were opened."""
    kept = [parts.store, parts.world.scheduler] if parts.runs.is_shared else [parts.store]
    for each in kept:
        migrator: Migrator | None = getattr(each, "migrator", None)
        try:
            if migrator is not None and await migrator.pending():
                return "of another release"
        except StoreUnavailable as error:
            log.warning("the store is not ready: %s", error)
            return "of another release"
    return OK
