"""The inbox in a SQLite file."""

from collections import deque
from collections.abc import AsyncIterator, Sequence

import msgspec

from weft.adapters.sqlite import queries
from weft.adapters.sqlite.database import Database
from weft.adapters.sqlite.writer import Write, Writer
from weft.runtime.spec import Message

# What readers of arrivals wait for. Runs are waited for under their id, which has no NUL in front.
MAIL = "\0mail"
PAGE_ROWS = 200


class _Offer(Write[None]):
    __slots__ = ("_id", "_message", "_run")

    def __init__(self, run: str, id: str, message: bytes) -> None:
        super().__init__(MAIL, len(message))
        self._run = run
        self._id = id
        self._message = message

    def apply(self, writer: Writer) -> None:
        writer.execute(queries.DROP_CONSUMED_MAIL, (self._run,))
        writer.execute(queries.ADD_MAIL, (self._run, self._id, self._message))


class SqliteInbox:
    """Messages to runs, kept in the log's file until their event is in the log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder[Message](Message).decode

    async def offer(self, run: str, id: str, message: Message) -> None:
        """Keep a message for a run; one that was offered before under this id changes nothing."""
        await self._database.write(_Offer(run, id, self._encode(message)))

    async def pending(self, run: str) -> Sequence[tuple[str, Message]]:
        """The messages of a run whose id is not in its log, oldest first."""
        await self._database.ready()
        rows = self._database.rows(queries.PENDING_MAIL, run)
        return [(id, self._decode(message)) for id, message in rows]

    def arrivals(self) -> AsyncIterator[str]:
        """The ids of runs that got mail from now on, from this or another process; may repeat."""
        last = self._database.rows(queries.LAST_MAIL)
        return _Arrivals(self._database, last[0][0] if last else 0)


class _Arrivals:
    """One reader's view of arriving mail: the rows behind the last one it saw."""

    def __init__(self, database: Database, after: int) -> None:
        self._database = database
        self._after = after
        self._runs: deque[str] = deque()

    def __aiter__(self) -> "_Arrivals":
        return self

    async def __anext__(self) -> str:
        while not self._runs:
            rows = self._database.rows(queries.MAIL_AFTER, self._after, PAGE_ROWS)
            if rows:
                self._after = rows[-1][0]
                self._runs.extend(dict.fromkeys(run for _, run in rows))
            else:
                await self._database.signals.wait(MAIL)
        return self._runs.popleft()
