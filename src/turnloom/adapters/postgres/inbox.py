"""The inbox in PostgreSQL."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from weakref import WeakValueDictionary

import msgspec

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.database import Database
from turnloom.adapters.postgres.log import key_of
from turnloom.adapters.postgres.signals import MAIL, PostgresSignals
from turnloom.board.logic.rows import instant_of
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import MOST_MAIL, Message, Stop, refuse_flood

PAGE_ROWS = 200

# Seconds for which a number is expected that others have overtaken: numbers are given before the
# commit. No transaction takes longer.
OVERTAKEN = 30.0

_log = logging.getLogger("turnloom.postgres")
_decode = msgspec.json.Decoder[Message](Message).decode


def _read(data: bytes) -> Message | None:
    """The stored message; None if it cannot be read."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class PostgresInbox:
    """Messages to runs, stored beside the log until their events are in it."""

    def __init__(self, database: Database, signals: PostgresSignals) -> None:
        self._database = database
        self._signals = signals
        self._encode = msgspec.json.Encoder().encode
        self._turns: WeakValueDictionary[RunKey, asyncio.Lock] = WeakValueDictionary()
        # The highest number of a message that this store offered.
        self._last = 0

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Store a message for a run, and return whether its id is new. Duplicates are dropped.

        Raises:
            UsageError: too many wait for the run, or the store is closed.
            StoreUnavailable: the server fails or does not answer in time.
        """
        most = None if isinstance(message, Stop) else MOST_MAIL  # stopping is always possible
        key, data = key_of(id), self._encode(message)
        turns = self._turns.setdefault(run, asyncio.Lock())
        async with turns:  # messages of this process to a run keep their order
            [(outcome, number, kept)] = await self._database.write(
                queries.OFFER, *run, key, id, data, most
            )
        if outcome == "full":
            refuse_flood(run.id, number)
        if outcome == "kept" and kept is not None and _read(kept) is None:
            values = (data, *run, key, kept)  # unreadable: it would block its id
            outcome = "new" if await self._database.write(queries.REPLACE_MAIL, *values) else "kept"
        if outcome != "new":
            return False
        if number is not None:
            self._last = max(self._last, number)
        self._signals.notify(MAIL)
        return True

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """The messages of a run that are not in its log, oldest first."""
        pending: list[tuple[str, Message]] = []
        for id, data in await self._database.rows(queries.PENDING, *run):
            if (message := _read(data)) is None:
                _log.warning("Message %r to run %r is unreadable and ignored.", id, run.id)
            else:
                pending.append((id, message))
        return pending

    def arrivals(self) -> AsyncIterator[RunKey]:
        """The runs of all tenants that receive messages from now on, from any process. A run may be
        reported again."""
        return _Arrivals(self._database, self._signals, self._last)


class _Arrivals:
    """One reader's position in the arriving messages, and the numbers below it that may still
    appear."""

    def __init__(self, database: Database, signals: PostgresSignals, offered: int) -> None:
        self._database = database
        self._signals = signals
        self._offered = offered
        self._called = asyncio.get_running_loop().time()
        self._last: int | None = None
        self._missing: dict[int, float] = {}
        self._runs: deque[RunKey] = deque()

    def __aiter__(self) -> "_Arrivals":
        return self

    async def __anext__(self) -> RunKey:
        while not self._runs:
            waiter = self._signals.expect(MAIL)
            try:
                if not await self._more():
                    await waiter.wait()
            finally:
                waiter.forget()
        return self._runs.popleft()

    async def _begin(self) -> int:
        """The last message before this reader was made. Its age is known here and the time of the
        messages there, so that the clocks need not agree; what came just before may come again."""
        [(now,)] = await self._database.rows(queries.CLOCK)
        age = timedelta(seconds=asyncio.get_running_loop().time() - self._called)
        [(last,)] = await self._database.rows(queries.LAST_MAIL, instant_of(now) - age)
        return max(last or 0, self._offered)

    async def _more(self) -> bool:
        """Collect the runs that got mail; whether there are some."""
        last = await self._begin() if self._last is None else self._last
        missing = [*self._missing]
        found = await self._database.rows(queries.MAIL_AFTER, last, missing, PAGE_ROWS)
        now = asyncio.get_running_loop().time()
        for n, tenant, run in found:
            self._missing.pop(n, None)
            self._missing |= dict.fromkeys(range(last + 1, n), now)
            last = max(last, n)
            self._runs.append(RunKey(tenant, run))
        self._last = last
        self._missing = {n: at for n, at in self._missing.items() if at + OVERTAKEN > now}
        return bool(found)
