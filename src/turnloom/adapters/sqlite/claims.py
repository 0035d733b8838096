"""Claims on runs in a SQLite file, held by owners that are alive."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import Database
from turnloom.adapters.sqlite.owners import Owner, is_alive, pid_of, sweep
from turnloom.adapters.sqlite.writer import Write, Writer
from turnloom.errors import RunBusy, StoreUnavailable
from turnloom.log.spec import RunKey

_log = logging.getLogger("turnloom.sqlite")


class _Claim(Write[None]):
    """Takes a run, unless somebody who is alive has it."""

    __slots__ = ("_folder", "_owner", "_run")

    def __init__(self, run: RunKey, owner: str, folder: Path) -> None:
        super().__init__()
        self._run = run
        self._owner = owner
        self._folder = folder

    def apply(self, writer: Writer) -> None:
        found = writer.execute(queries.CLAIMANT, self._run).fetchone()
        if found and (found[0] == self._owner or is_alive(self._folder, found[0])):
            raise RunBusy(
                f"Run {self._run.id!r} is being driven by process {pid_of(found[0])}. "
                "Answer or cancel it with `turnloom answer`/`turnloom cancel`, or stop that "
                "process first."
            )
        writer.execute(queries.CLAIM, (*self._run, self._owner))


class _Release(Write[None]):
    """Gives runs back, and forgets what dead owners had."""

    __slots__ = ("_dead", "_owner", "_runs")

    def __init__(self, runs: set[RunKey], owner: str, dead: list[str] | None = None) -> None:
        super().__init__()
        self._runs = runs
        self._owner = owner
        self._dead = dead or []

    def apply(self, writer: Writer) -> None:
        for run in self._runs:
            writer.execute(queries.RELEASE_CLAIM, (*run, self._owner))
        for owner in self._dead:
            writer.execute(queries.RELEASE_OWNER, (owner,))


class SqliteClaims:
    """Which process drives which run."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._folder = database.path.with_name(f"{database.path.name}.drivers")
        self._owner: Owner | None = None
        # Runs that were let go while the store could not be written.
        self._loose: set[RunKey] = set()

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[None, None]:
        """Hold the run while the context is open.

        Raises:
            RunBusy: somebody who is alive holds it.
            StoreUnavailable: the claim cannot be written down.
        """
        owner = await self._join()
        if self._loose:
            await self._release(owner)
        await self._take(run, owner)
        try:
            yield
        finally:
            if not self._database.closed:  # else its lock is gone already
                self._loose.add(run)
                await self._let_go(owner)

    async def _take(self, run: RunKey, owner: str) -> None:
        """Take a run. A task that is interrupted meanwhile has it all the same once it is written
        down, so it is given back then."""
        taking = asyncio.ensure_future(self._database.write(_Claim(run, owner, self._folder)))
        try:
            await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(partial(self._loosen, run))
            with anyio.CancelScope(shield=True):
                await asyncio.wait({taking})
            if run in self._loose:
                await self._let_go(owner)
            raise

    def _loosen(self, run: RunKey, taking: "asyncio.Future[None]") -> None:
        """Have a run given back that was taken, also if its task is interrupted again."""
        was_taken = not taking.cancelled() and taking.exception() is None
        if was_taken and not self._database.closed:
            self._loose.add(run)

    async def held(self, run: RunKey) -> bool:
        """Whether somebody who is alive holds the run."""
        await self._database.ready()
        found = self._database.rows(queries.CLAIMANT, *run)
        return bool(found) and run not in self._loose and is_alive(self._folder, found[0][0])

    def close(self) -> None:
        """Let go of every run."""
        if self._owner:
            self._owner.close()

    async def _join(self) -> str:
        await self._database.ready()
        if self._owner is None:
            self._owner = Owner(self._folder)
            dead = sweep(self._folder, self._owner.name)
            if dead:
                await self._database.write(_Release(set(), self._owner.name, dead))
        return self._owner.name

    async def _let_go(self, owner: str) -> None:
        """Give a run back; if that cannot be written now, it is given back with the next one."""
        try:
            with anyio.CancelScope(shield=True):
                await self._release(owner)
        except StoreUnavailable as error:
            _log.warning("A claim cannot be given back yet: %s", error)

    async def _release(self, owner: str) -> None:
        runs = set(self._loose)
        await self._database.write(_Release(runs, owner))
        self._loose -= runs
