"""Claims on runs: leases by the clock of the database."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import anyio
from psycopg.abc import QueryNoTemplate as Query

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.connections import Rows
from turnloom.adapters.postgres.database import Database, refusal
from turnloom.errors import LeaseLost, RunBusy, StoreUnavailable, UsageError
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import Holder

# Renewals per lease, so that a late one loses nothing.
RENEWALS = 3

_log = logging.getLogger("turnloom.postgres")


@cache
def _machine() -> str:
    """What tells processes of this machine from others: its boot, and the space of its process
    ids; empty where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process of this machine started; empty if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[19]  # a zombie does nothing any more


def owner_name(number: int) -> str:
    """A name for the claims of a store in this process, with a number that no other one has."""
    pid = os.getpid()
    parts = (str(pid), _started(pid), str(number), _machine(), socket.gethostname())
    return " ".join(part or "-" for part in parts)


def is_dead(owner: str) -> bool:
    """Whether an owner was a process of this machine that has ended. Of others, only their lease
    tells."""
    pid, started, _, machine, *_ = [*owner.split(" "), "", "", "", ""]
    if not _machine() or machine != _machine() or not pid.isdecimal():
        return False
    return _started(int(pid)) != started


def process_of(owner: str) -> str:
    """The process in an owner's name, with its host if that is another machine."""
    pid, _, _, machine, host, *_ = [*owner.split(" ", 4), "", "", "", "", ""]
    return pid if machine == _machine() else f"{pid} on {host or '?'}"


class PostgresClaims:
    """Claims on runs by processes of any machine. A claim that is not renewed ends after `lease`
    seconds, by the clock of the database; that of a dead process of this machine ends at once."""

    def __init__(self, database: Database, lease: float) -> None:
        self._database = database
        self._lease = lease
        self._owner = ""
        self._pid = os.getpid()
        # The open claims; their scope ends when the lease is lost.
        self._held: dict[int, asyncio.Timeout] = {}
        # Fences of claims that could not be released while the store was unavailable.
        self._unreleased: set[int] = set()
        # Claims that are being written; those whose task was cancelled twice have no one else.
        self._taking: set[asyncio.Future[int]] = set()
        self._tickets = 0
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[int, None]:
        """Hold the run while the context is open; yields the claim's fence.

        Raises:
            RunBusy: a process holds the run, and its lease has not expired.
            LeaseLost: the lease expired, or another process took the run, while the context was
                open.
            StoreUnavailable: the claim cannot be written.
        """
        if self._unreleased:
            await self._release()
        until = asyncio.get_running_loop().time() + self._lease
        fence = await self._take(run)
        scope = self._held[fence] = asyncio.timeout_at(until)
        is_away = False
        try:
            async with scope:
                self._keep_renewing()
                yield fence
        except StoreUnavailable:
            is_away = True
            raise
        except TimeoutError as error:
            is_away = scope.expired()
            if is_away:
                raise LeaseLost(run.id) from error
            raise
        finally:
            del self._held[fence]
            if not self._database.closed:  # otherwise it is already released
                self._unreleased.add(fence)
                # A store that was waited for is asked once more, and not waited for again.
                await self._try_release(repeats=not is_away)

    def is_held(self, fence: int) -> bool:
        """Whether the lease of a claim lasts, by the clock of this process: one that was stopped
        learns here that it may have lost its runs."""
        scope = self._held.get(fence)
        until = scope.when() if scope is not None else None
        return until is not None and asyncio.get_running_loop().time() < until

    async def _take(self, run: RunKey) -> int:
        """Claim a run. If the task is cancelled meanwhile, the claim is released once it is
        written."""
        taking = asyncio.ensure_future(self._claim(run))
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._release_later)
            with anyio.CancelScope(shield=True):
                await asyncio.wait({taking})
            if self._unreleased:
                await self._try_release()
            raise

    def _release_later(self, taking: "asyncio.Future[int]") -> None:
        """Mark a written claim for release, even if its task is cancelled again."""
        was_taken = not taking.cancelled() and taking.exception() is None
        if was_taken and not self._database.closed:
            self._unreleased.add(taking.result())

    async def _claim(self, run: RunKey) -> int:
        own = await self._join()
        self._tickets += 1
        ticket, dead = str(self._tickets), ""
        while True:
            values = (*run, own, ticket, self._lease, dead)
            [(fence, owner, seconds, silent)] = await self._call(queries.CLAIM, *values)
            if fence is not None:
                return fence
            if owner == dead or not is_dead(owner):
                break
            dead = owner
        holder = Holder(process_of(owner), max(seconds or 0.0, 0.0), max(silent or 0.0, 0.0))
        raise RunBusy(
            f"Run {run.id!r} is being driven by {holder}. Answer or cancel it with "
            "`turnloom answer`/`turnloom cancel`, or stop that process first."
        )

    async def _join(self) -> str:
        """The name of this owner."""
        if not self._owner:
            [(number,)] = await self._database.write(queries.NEXT_OWNER)
            self._owner = self._owner or owner_name(number)
        return self._owner

    async def _call(
        self, statement: Query, *values: Any, by: Callable[..., Awaitable[Rows]] | None = None
    ) -> Rows:
        """Call a function that requires the schema of this release."""
        call = by or self._database.write
        try:
            return await call(statement, self._database.schema.version, *values)
        except StoreUnavailable as error:
            code, said = refusal(error)
            if code == queries.OTHER_SCHEMA:
                raise self._database.mismatch(int(said)) from error
            raise

    async def held(self, run: RunKey) -> Holder | None:
        """The process that holds the run, and the seconds until its lease expires."""
        for fence, owner, seconds, silent in await self._database.rows(queries.CLAIMANT, *run):
            if fence in self._unreleased or is_dead(owner):
                return None
            return Holder(process_of(owner), max(seconds, 0.0), max(silent, 0.0))
        return None

    async def aclose(self) -> None:
        """Stop renewing, and release every run."""
        if self._timer:
            self._timer.cancel()
        if self._renewing:
            self._renewing.cancel()
        if self._taking:  # one that is written after the release would stay
            await asyncio.wait({*self._taking})
        if self._tickets and os.getpid() == self._pid:
            try:
                repeats = not self._unreleased  # unless the store is away
                await self._database.write(queries.RELEASE_OWNER, self._owner, repeats=repeats)
            except (StoreUnavailable, UsageError) as error:
                _log.warning("Claims end with their lease, as they cannot be released: %s", error)

    # ------------------------------------------------------------------ renewing

    def _keep_renewing(self) -> None:
        """Renew from the event loop, so that a process with a blocked loop loses its claims."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._lease / RENEWALS, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self._held or self._database.closed:
            return
        self._keep_renewing()
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        """Renew the claims, and end the scopes of those that are lost."""
        loop = asyncio.get_running_loop()
        fences, until = set(self._held), loop.time() + self._lease
        clock = self._database.clock
        try:
            rows = await self._call(
                queries.RENEW, self._owner, self._lease, by=self._database.prompt_rows
            )
            renewed = {row[0] for row in rows}
            if clock is not None:
                await self._database.attempt(clock.measure, self._database.timeout, prompt=True)
        except StoreUnavailable as error:
            _log.warning("Cannot renew claims; retrying: %s", error)
            return
        for fence in fences:
            if (scope := self._held.get(fence)) and not scope.expired():
                scope.reschedule(until if fence in renewed else loop.time())
        if self._unreleased:  # they are renewed with the others
            await self._try_release(repeats=False)

    # ------------------------------------------------------------------ releasing

    async def _try_release(self, *, repeats: bool = True) -> None:
        """Release a run; if the store is unavailable, it is released with the next one, or after
        the next renewal."""
        try:
            with anyio.CancelScope(shield=True):
                await self._release(repeats=repeats)
        except StoreUnavailable as error:
            _log.warning("Cannot release a claim; retrying later: %s", error)

    async def _release(self, *, repeats: bool = True) -> None:
        fences = set(self._unreleased)
        await self._database.write(queries.RELEASE, list(fences), repeats=repeats)
        self._unreleased -= fences
