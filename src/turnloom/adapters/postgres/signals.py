"""Notices between processes: what others appended, and runs that got mail.

A process tells others what it stored after the commit, at most once per interval for all of it:
inside the transaction, NOTIFY would take one lock for the whole server. Notices can be lost, so
waiters are also polled for.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import anyio
import psycopg

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.connections import connect, time_limit
from turnloom.adapters.postgres.database import Database
from turnloom.adapters.postgres.faults import locate
from turnloom.errors import StoreUnavailable, UsageError
from turnloom.kernel.cancels import heeding_cancels
from turnloom.log.spec import RunKey

# Seconds between two notices of a process.
INTERVAL = 0.02
# Seconds between two polls, with a listener that hears and without one.
POLL, POLL_DEAF = 1.0, 0.1
# Seconds before a lost listener connects again, and within which it must hear itself.
RECONNECT, ECHO = 0.5, 5.0

# The topic of readers of arriving messages; others wait for a run.
MAIL = "mail"
# The topic of readers of all runs.
COMMITS = "commits"
Topic = RunKey | str

# The size of a topic in a notice in bytes, and the number of topics that fit into one: 8000 bytes
# at most. A notice without topics is about all.
_SIZE, _MOST = 8, 400

_log = logging.getLogger("turnloom.postgres")


def _word(topic: Topic) -> str:
    """A topic as a short word."""
    text = "\0".join(topic) if isinstance(topic, RunKey) else topic
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_SIZE).hexdigest()


class Waiter:
    """Waits for news of a topic behind a position."""

    __slots__ = ("_forget", "_future", "after")

    def __init__(self, after: int, forget: "Callable[[Waiter], None]") -> None:
        self.after = after
        self._forget = forget
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self) -> None:
        """Wait until there may be news since the waiter was made."""
        await self._future

    def wake(self) -> None:
        """End the wait."""
        if not self._future.done():
            self._future.set_result(None)

    def forget(self) -> None:
        """Wait for nothing any more."""
        self._forget(self)


class PostgresSignals:
    """Waiters by topic. Writes of this process notify them at once, those of others by notices and
    polls. `listen_url` is a direct connection, where a pooler stands between."""

    def __init__(self, database: Database, listen_url: str) -> None:
        self._database = database
        self._url = listen_url
        self._server = locate(listen_url, "listener")
        self._waiting: dict[Topic, list[Waiter]] = {}
        self._words: dict[str, Topic] = {}
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_listening = False
        self._hears = asyncio.Event()
        self._is_deaf = False
        self._telling: asyncio.Task[None] | None = None
        self._told_at = 0.0

    # ------------------------------------------------------------------ waiting

    def expect(self, topic: Topic, after: int = 0) -> Waiter:
        """A waiter for news behind a position. Make it before you look for news, so that none is
        missed; forget it at last."""
        self._listen()
        waiter = Waiter(after, partial(self._forget, topic))
        self._waiting.setdefault(topic, []).append(waiter)
        self._words[_word(topic)] = topic
        return waiter

    def _forget(self, topic: Topic, waiter: Waiter) -> None:
        waiters = self._waiting.get(topic, [])
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._waiting.pop(topic, None)
            self._words.pop(_word(topic), None)

    def notify(self, topic: Topic) -> None:
        """Wake the waiters of a topic in this process, and tell the others soon."""
        self._wake(topic)
        self._told.add(_word(topic))
        if self._telling is None or self._telling.done():
            self._telling = self._start(self._tell())

    def _wake(self, topic: Topic) -> None:
        for waiter in self._waiting.get(topic, ()):
            waiter.wake()

    def _wake_all(self) -> None:
        for topic in [*self._waiting]:
            self._wake(topic)

    # ------------------------------------------------------------------ telling

    async def _tell(self) -> None:
        """Send what was told since the last notice; a lost notice is found by polls."""
        loop = asyncio.get_running_loop()
        while self._told:
            await asyncio.sleep(max(self._told_at + INTERVAL - loop.time(), 0))
            self._told_at = loop.time()
            words, self._told = self._told, set()
            payload = " ".join(words) if len(words) <= _MOST else ""
            try:
                await self._database.prompt_rows(queries.NOTIFY, queries.CHANNEL, payload)
            except (StoreUnavailable, UsageError) as error:
                _log.debug("a notice was lost: %s", error)

    # ------------------------------------------------------------------ listening

    def _listen(self) -> None:
        if not self._is_listening:
            self._is_listening = True
            self._start(self._keep_listening())
            self._start(self._keep_polling())

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _keep_listening(self) -> None:
        while True:
            try:
                with heeding_cancels():
                    await self._hear()
            except Exception as error:  # noqa: BLE001 - whatever it is, others wait for what it hears
                _log.debug("listening ended, and begins again: %s", error)
            self._hears.clear()
            self._wake_all()
            await asyncio.sleep(RECONNECT)

    async def _hear(self) -> None:
        """Listen on a connection of its own until it breaks."""
        try:
            session = await connect(self._url)
        except psycopg.Error as error:
            reason = self._server.store_unavailable(error)
            self._warn(f"{reason} If `listen_url` is set, check it.")
            raise
        try:
            async with time_limit(session, self._database.timeout):
                await session.execute(queries.LISTEN)
            echo = f"echo {id(self)}"
            testing = self._start(self._test(echo))
            self._wake_all()  # what was told before
            async for notice in session.notifies():
                if notice.payload == echo:
                    self._is_deaf = False
                    self._hears.set()
                elif not notice.payload:
                    self._wake_all()
                else:
                    self._heed(notice.payload.split(" "))
            testing.cancel()
        finally:
            await session.close()

    def _heed(self, words: Sequence[str]) -> None:
        for word in words:
            if topic := self._words.get(word):
                self._wake(topic)

    async def _test(self, echo: str) -> None:
        """Say so if the listener does not hear its own notice: a pooler hands its notices on to
        another session."""
        try:
            with anyio.fail_after(ECHO):
                await self._database.rows(queries.NOTIFY, queries.CHANNEL, echo)
                await self._hears.wait()
        except (StoreUnavailable, UsageError) as error:
            _log.debug("listening is not tested: %s", error)
        except TimeoutError:
            self._warn(
                f"{self._server} does not pass notices on, perhaps because a pooler stands "
                "between. Set `listen_url` to its direct URL."
            )

    def _warn(self, reason: str) -> None:
        """Say once why this process hears nothing, until it does."""
        if not self._is_deaf:
            self._is_deaf = True
            _log.warning(
                "Notices of other processes do not arrive, so this one looks for their events "
                "every %g s: %s",
                POLL_DEAF,
                reason,
            )

    async def _keep_polling(self) -> None:
        """Wake the waiters whose runs went on unnoticed."""
        while True:
            await asyncio.sleep(POLL if self._hears.is_set() else POLL_DEAF)
            if not self._waiting:
                continue
            runs = [topic for topic in self._waiting if isinstance(topic, RunKey)]
            self._wake(MAIL)
            self._wake(COMMITS)
            try:
                for run, last in await self._positions(runs):
                    if any(last > each.after for each in self._waiting.get(run, ())):
                        self._wake(run)
            except Exception:  # noqa: BLE001 - as above
                self._wake_all()  # they read for themselves, and get the error

    async def _positions(self, runs: Sequence[RunKey]) -> list[tuple[RunKey, int]]:
        if not runs:
            return []
        tenants, ids = [run.tenant for run in runs], [run.id for run in runs]
        rows = await self._database.rows(queries.POSITIONS, tenants, ids)
        return [(RunKey(tenant, id), last) for tenant, id, last in rows]

    async def aclose(self) -> None:
        """Send the last notice, and stop listening."""
        if self._telling is not None and not self._telling.done():
            await asyncio.wait({self._telling})
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._wake_all()
