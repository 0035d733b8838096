"""Claims on runs: leases held by live processes, and a lock file per process."""

import asyncio
import fcntl
import logging
import os
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from weakref import WeakSet

import anyio

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.writer import StoreWrite, Writer
from turnloom.errors import LeaseLost, RunBusy, StoreUnavailable
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import Holder

# Owner names: the process id, and a random part per store. A name is read from a file that others
# may have written, and becomes part of a path.
_NAME = re.compile(r"\d+-\w+")

# The owners in this process.
_owners: "WeakSet[Owner]" = WeakSet()


class Owner:
    """A store that drives runs of one file. Its lock is held until it is closed."""

    def __init__(self, folder: Path) -> None:
        """Take a new lock.

        Raises:
            StoreUnavailable: the lock file cannot be created.
        """
        try:
            self._path, self._file = _take_lock(folder)
        except OSError as error:
            raise StoreUnavailable(
                f"Cannot create a lock file in {str(folder)!r}: {error.strerror}. Driving runs "
                "needs a lock. Make the folder writable, or free some space."
            ) from error
        self.name = self._path.name
        _detach_in_forks()
        _owners.add(self)

    def close(self) -> None:
        """Release the lock, and with it all claims of this owner."""
        _owners.discard(self)
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def detach(self) -> None:
        """In a forked child: close the inherited lock file, and leave the lock to the parent."""
        os.close(self._file)


@cache
def _detach_in_forks() -> None:
    """Detach forked children from the locks of their parent, which they would keep alive."""
    os.register_at_fork(after_in_child=_detach_locks)


def _detach_locks() -> None:
    for owner in list(_owners):
        owner.detach()
    _owners.clear()


def is_alive(folder: Path, name: str) -> bool:
    """Whether the owner with this name holds its lock; the file of a dead owner is removed."""
    if not _NAME.fullmatch(name):
        return False  # not the name of an owner
    path = folder / name
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return _is_running(pid_of(name))  # another user's folder: the lock cannot be tested
    try:
        # A shared lock, so that two concurrent checks do not mistake each other for the owner.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with suppress(PermissionError):  # a file of another user
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _is_running(pid: str) -> bool:
    """Whether a process with this id exists, of any user."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def pid_of(name: str) -> str:
    """The process id in an owner's name."""
    return name.partition("-")[0]


def sweep(folder: Path, own: str) -> list[str]:
    """Remove the files of dead owners, and return their names."""
    found = [entry.name for entry in folder.iterdir() if entry.name != own]
    names = [name for name in found if _NAME.fullmatch(name)]
    return [name for name in names if not is_alive(folder, name)]


def _take_lock(folder: Path) -> tuple[Path, int]:
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.fchmod(file, 0o644)  # it is empty: anyone with access to the folder may test the lock
        # A concurrent sweep may have removed the file before it was locked. Then create another.
        if os.fstat(file).st_nlink:
            return Path(name), file
        os.close(file)


# Renewals per lease, so that a late one loses nothing.
RENEWALS = 3

_log = logging.getLogger("turnloom.sqlite")


class _Claim(StoreWrite[int]):
    """Claim a run for one lease, unless a live process holds it."""

    __slots__ = ("_folder", "_lease", "_now", "_owner", "_run")

    def __init__(self, run: RunKey, owner: str, folder: Path, now: float, lease: float) -> None:
        super().__init__()
        self._run = run
        self._owner = owner
        self._folder = folder
        self._now = now
        self._lease = lease

    def apply(self, writer: Writer) -> int:
        found = writer.execute(queries.CLAIMANT, self._run).fetchone()
        if found and (holder := _holder(self._folder, self._owner, found[1:], self._now)):
            raise RunBusy(
                f"Run {self._run.id!r} is being driven by {holder}. Answer or cancel it with "
                "`turnloom answer`/`turnloom cancel`, or stop that process first."
            )
        taken = (*self._run, self._owner, self._now, self._now + self._lease)
        fence = writer.execute(queries.CLAIM, taken).lastrowid
        assert fence is not None
        return fence


class _Renew(StoreWrite[set[int]]):
    """Renew all claims of an owner for another lease; returns their fences."""

    __slots__ = ("_now", "_owner", "_until")

    def __init__(self, owner: str, now: float, until: float) -> None:
        super().__init__()
        self._owner = owner
        self._now = now
        self._until = until

    def apply(self, writer: Writer) -> set[int]:
        writer.execute(queries.RENEW, (self._now, self._until, self._owner))
        return {fence for (fence,) in writer.execute(queries.FENCES_OF, (self._owner,))}


class _Release(StoreWrite[None]):
    """Release claims, and delete those of dead owners."""

    __slots__ = ("_dead", "_fences")

    def __init__(self, fences: set[int], dead: list[str] | None = None) -> None:
        super().__init__()
        self._fences = fences
        self._dead = dead or []

    def apply(self, writer: Writer) -> None:
        for fence in self._fences:
            writer.execute(queries.RELEASE_CLAIM, (fence,))
        for owner in self._dead:
            writer.execute(queries.RELEASE_OWNER, (owner,))


class SqliteClaims:
    """Claims on runs by processes. A claim that is not renewed ends after `lease` seconds."""

    def __init__(self, database: DatabaseFile, lease: float) -> None:
        self._database = database
        self._lease = lease
        self._folder = database.path.with_name(f"{database.path.name}.drivers")
        self._owner: Owner | None = None
        # The open claims; their scope ends when another process takes the run.
        self._held: dict[int, asyncio.Timeout] = {}
        # Fences of claims that could not be released while the store was unavailable.
        self._unreleased: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[int, None]:
        """Hold the run while the context is open; yields the claim's fence.

        Raises:
            RunBusy: a live process holds the run, and its lease has not expired.
            LeaseLost: another process took the run while the context was open.
            StoreUnavailable: the claim cannot be written.
        """
        owner = await self._join()
        self._database.check_schema()
        if self._unreleased:
            await self._release()
        fence = await self._take(run, owner)
        scope = self._held[fence] = asyncio.timeout(None)
        try:
            async with scope:
                self._keep_renewing(owner)
                yield fence
        except TimeoutError as error:
            if scope.expired():
                raise LeaseLost(run.id) from error
            raise
        finally:
            del self._held[fence]
            if not self._database.closed:  # otherwise its lock is already released
                self._unreleased.add(fence)
                await self._try_release()

    async def _take(self, run: RunKey, owner: str) -> int:
        """Claim a run. If the task is cancelled meanwhile, the claim is released once it is
        written."""
        now = asyncio.get_running_loop().time()
        claim = _Claim(run, owner, self._folder, now, lease=self._lease)
        taking = asyncio.ensure_future(self._database.write(claim))
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

    async def held(self, run: RunKey) -> Holder | None:
        """The process that holds the run, and the seconds until its lease expires."""
        await self._database.ready()
        found = self._database.rows(queries.CLAIMANT, *run)
        if not found or found[0][0] in self._unreleased:
            return None
        own = self._owner.name if self._owner else ""
        return _holder(self._folder, own, found[0][1:], asyncio.get_running_loop().time())

    def stop_renewing(self) -> None:
        """Stop renewing claims before the file is closed."""
        if self._timer:
            self._timer.cancel()
        if self._renewing:
            self._renewing.cancel()

    def close(self) -> None:
        """Release every run."""
        if self._owner:
            self._owner.close()
            self._owner = None  # closing may be interrupted and repeated

    async def _join(self) -> str:
        await self._database.ready()
        if self._owner is None:
            self._owner = Owner(self._folder)
            dead = sweep(self._folder, self._owner.name)
            if dead:
                await self._database.write(_Release(set(), dead))
        return self._owner.name

    # ------------------------------------------------------------------ renewing

    def _keep_renewing(self, owner: str) -> None:
        """Renew from the event loop, so that a process with a blocked loop loses its claims."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._lease / RENEWALS, self._on_timer, owner)

    def _on_timer(self, owner: str) -> None:
        self._timer = None
        if not self._held or self._database.closed:
            return
        self._keep_renewing(owner)
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.ensure_future(self._renew(owner))

    async def _renew(self, owner: str) -> None:
        """Renew the claims, and end the scopes of those that are lost."""
        loop = asyncio.get_running_loop()
        fences = set(self._held)
        try:
            self._database.check_schema()
            now = loop.time()
            renewed = await self._database.write(_Renew(owner, now, now + self._lease))
        except StoreUnavailable as error:
            _log.warning("Cannot renew claims; retrying: %s", error)
            return
        for fence in fences - renewed:
            if (scope := self._held.get(fence)) and not scope.expired():
                scope.reschedule(loop.time())

    # ------------------------------------------------------------------ releasing

    async def _try_release(self) -> None:
        """Release a run; if the store is unavailable, it is released with the next one."""
        try:
            with anyio.CancelScope(shield=True):
                await self._release()
        except StoreUnavailable as error:
            _log.warning("Cannot release a claim; retrying later: %s", error)

    async def _release(self) -> None:
        fences = set(self._unreleased)
        await self._database.write(_Release(fences))
        self._unreleased -= fences


def _holder(folder: Path, own: str, claim: tuple[str, float, float], now: float) -> Holder | None:
    """The holder of a claim if it is valid: its owner is alive and its lease has not expired. Our
    own claims are valid until another process takes them."""
    owner, renewed, until = claim
    seconds = max(until - now, 0.0)
    if owner == own or (seconds and is_alive(folder, owner)):
        return Holder(pid_of(owner), seconds, max(now - renewed, 0.0))
    return None
