"""Claims on runs: leases held by live processes, and the lock file of each process."""

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

# What owners are called: the process, and what tells its stores apart. A name comes out of a file
# that somebody else may have written, and is part of a path.
_NAME = re.compile(r"\d+-\w+")

# The owners of this process.
_owners: "WeakSet[Owner]" = WeakSet()


class Owner:
    """This store among those that drive runs of one file: a lock that lasts until it is closed."""

    def __init__(self, folder: Path) -> None:
        """Take a lock of our own.

        Raises:
            StoreUnavailable: the lock file cannot be made.
        """
        try:
            self._path, self._file = _take_lock(folder)
        except OSError as error:
            raise StoreUnavailable(
                f"No lock file can be made in {str(folder)!r}: {error.strerror}. "
                "Runs are driven only under a lock; make the folder writable or free some space."
            ) from error
        self.name = self._path.name
        _watch_forks()
        _owners.add(self)

    def close(self) -> None:
        """Let go of everything that is held under this name."""
        _owners.discard(self)
        self._path.unlink(missing_ok=True)
        os.close(self._file)

    def part(self) -> None:
        """Leave the lock to the process that took it: this one is a child of it."""
        os.close(self._file)


@cache
def _watch_forks() -> None:
    """Let children part from the locks of their parent, which would outlive it with them."""
    os.register_at_fork(after_in_child=_part)


def _part() -> None:
    for owner in list(_owners):
        owner.part()
    _owners.clear()


def is_alive(folder: Path, name: str) -> bool:
    """Whether the owner of that name still holds its lock; the file of a dead one is removed."""
    if not _NAME.fullmatch(name):
        return False  # no owner is called that
    path = folder / name
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return _is_running(pid_of(name))  # the folder of another user: the lock cannot be tried
    try:
        # Shared, so that two who look at once do not take each other for the owner.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with suppress(PermissionError):  # another user's file may have to stay
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _is_running(pid: str) -> bool:
    """Whether there is a process of that number, whoever started it."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def pid_of(name: str) -> str:
    """The process that an owner's name tells."""
    return name.partition("-")[0]


def sweep(folder: Path, own: str) -> list[str]:
    """Remove the files of dead owners, and give their names."""
    found = [entry.name for entry in folder.iterdir() if entry.name != own]
    names = [name for name in found if _NAME.fullmatch(name)]
    return [name for name in names if not is_alive(folder, name)]


def _take_lock(folder: Path) -> tuple[Path, int]:
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.fchmod(file, 0o644)  # it is empty: whoever may enter the folder may try the lock
        # Somebody who swept between these two lines has removed the file: make another.
        if os.fstat(file).st_nlink:
            return Path(name), file
        os.close(file)


# How often claims are renewed within the time of a lease: one that comes late loses nothing.
RENEWALS = 3

_log = logging.getLogger("turnloom.sqlite")


class _Claim(StoreWrite[int]):
    """Takes a run for the time of a lease, unless somebody who is alive has it."""

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
    """Makes all claims of an owner last for another lease, and gives the fences of those."""

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
    """Gives claims back, and forgets what dead owners had."""

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
    """Which process drives which run; `lease` is how long it may leave a claim without renewal."""

    def __init__(self, database: DatabaseFile, lease: float) -> None:
        self._database = database
        self._lease = lease
        self._folder = database.path.with_name(f"{database.path.name}.drivers")
        self._owner: Owner | None = None
        # What is held here: ended when another process took the run.
        self._held: dict[int, asyncio.Timeout] = {}
        # Claims that were let go while the store could not be written.
        self._loose: set[int] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[int, None]:
        """Hold the run while the context is open; gives the claim's fence.

        Raises:
            RunBusy: a process that is alive, and whose lease is not over, holds it.
            LeaseLost: another process took the run while the context was open.
            StoreUnavailable: the claim cannot be written down.
        """
        owner = await self._join()
        self._database.check_schema()
        if self._loose:
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
            if not self._database.closed:  # else its lock is gone already
                self._loose.add(fence)
                await self._let_go()

    async def _take(self, run: RunKey, owner: str) -> int:
        """Take a run. A task that is interrupted meanwhile has it all the same once it is written
        down, so it is given back then."""
        now = asyncio.get_running_loop().time()
        claim = _Claim(run, owner, self._folder, now, lease=self._lease)
        taking = asyncio.ensure_future(self._database.write(claim))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._loosen)
            with anyio.CancelScope(shield=True):
                await asyncio.wait({taking})
            if self._loose:
                await self._let_go()
            raise

    def _loosen(self, taking: "asyncio.Future[int]") -> None:
        """Have a run given back that was taken, also if its task is interrupted again."""
        was_taken = not taking.cancelled() and taking.exception() is None
        if was_taken and not self._database.closed:
            self._loose.add(taking.result())

    async def held(self, run: RunKey) -> Holder | None:
        """Which process holds the run, and for how many seconds if it renews its claim no more."""
        await self._database.ready()
        found = self._database.rows(queries.CLAIMANT, *run)
        if not found or found[0][0] in self._loose:
            return None
        own = self._owner.name if self._owner else ""
        return _holder(self._folder, own, found[0][1:], asyncio.get_running_loop().time())

    def stop_renewing(self) -> None:
        """Leave the claims to their leases: the file is about to be closed."""
        if self._timer:
            self._timer.cancel()
        if self._renewing:
            self._renewing.cancel()

    def close(self) -> None:
        """Let go of every run."""
        if self._owner:
            self._owner.close()
            self._owner = None  # closing may be interrupted, and is done again then

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
        """Renew on the loop, so that a process whose loop stands still cannot."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._lease / RENEWALS, self._look_after, owner)

    def _look_after(self, owner: str) -> None:
        self._timer = None
        if not self._held or self._database.closed:
            return
        self._keep_renewing(owner)
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.ensure_future(self._renew(owner))

    async def _renew(self, owner: str) -> None:
        """Make the claims last, and end what is done under those that are lost."""
        loop = asyncio.get_running_loop()
        fences = set(self._held)
        try:
            self._database.check_schema()
            now = loop.time()
            renewed = await self._database.write(_Renew(owner, now, now + self._lease))
        except StoreUnavailable as error:
            _log.warning("Claims cannot be renewed yet: %s", error)
            return
        for fence in fences - renewed:
            if (scope := self._held.get(fence)) and not scope.expired():
                scope.reschedule(loop.time())

    # ------------------------------------------------------------------ giving back

    async def _let_go(self) -> None:
        """Give a run back; if that cannot be written now, it is given back with the next one."""
        try:
            with anyio.CancelScope(shield=True):
                await self._release()
        except StoreUnavailable as error:
            _log.warning("A claim cannot be given back yet: %s", error)

    async def _release(self) -> None:
        fences = set(self._loose)
        await self._database.write(_Release(fences))
        self._loose -= fences


def _holder(folder: Path, own: str, claim: tuple[str, float, float], now: float) -> Holder | None:
    """Who has a claim, if it is in force: its owner lives and its lease lasts. One's own lasts as
    long as it is not taken."""
    owner, renewed, until = claim
    seconds = max(until - now, 0.0)
    if owner == own or (seconds and is_alive(folder, owner)):
        return Holder(pid_of(owner), seconds, max(now - renewed, 0.0))
    return None
