"""The inbox in a SQLite file."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import ids_of, page_after
from turnloom.adapters.sqlite.database import Database
from turnloom.adapters.sqlite.writer import MAIL, Write, Writer
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import Message

PAGE_ROWS = 200


class _Offer(Write[bool]):
    __slots__ = ("_id", "_message", "_run")

    def __init__(self, run: RunKey, id: str, message: bytes) -> None:
        super().__init__(MAIL, len(message))
        self._run = run
        self._id = id
        self._message = message

    def apply(self, writer: Writer) -> bool:
        run, position, ids = self._run, 0, set[str]()
        place = writer.locate(run)
        if place:
            position, ids = place.position, writer.ids(run, place)
        for (id,) in writer.execute(queries.MAIL_IDS, run).fetchall():
            if id in ids:
                writer.execute(queries.DROP_MAIL, (*run, id))
        if self._id in ids:
            return False
        added = writer.execute(queries.ADD_MAIL, (*run, self._id, position, self._message))
        return added.rowcount > 0


class SqliteInbox:
    """Messages to runs, kept in the log's file until their event is in the log."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder[Message](Message).decode

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Keep a message for a run; whether it is the first under this id. Another is dropped."""
        return await self._database.write(_Offer(run, id, self._encode(message)))

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """The messages of a run whose id is not in its log, oldest first."""
        await self._database.ready()
        mail = self._database.rows(queries.MAIL_OF, *run)
        if not mail:
            return ()
        consumed = await self._ids_behind(run, min(position for _, position, _ in mail))
        return [(id, self._decode(message)) for id, _, message in mail if id not in consumed]

    def arrivals(self) -> AsyncIterator[RunKey]:
        """The runs of all tenants that get mail from now on, from this or another process; a run
        may come again."""
        last = self._database.rows(queries.LAST_MAIL)
        return _Arrivals(self._database, last[0][0] if last else 0)

    async def _ids_behind(self, run: RunKey, position: int) -> set[str]:
        """The ids of the events behind a position: mail is consumed by events that came later."""
        ids: set[str] = set()
        async with aclosing(self._database.pages(partial(page_after, run=run), position)) as pages:
            async for lines in pages:
                ids.update(ids_of(b"\n".join(lines)))
        return ids


class _Arrivals:
    """One reader's view of arriving mail: the rows behind the last one it saw."""

    def __init__(self, database: Database, after: int) -> None:
        self._database = database
        self._after = after
        self._runs: deque[RunKey] = deque()

    def __aiter__(self) -> "_Arrivals":
        return self

    async def __anext__(self) -> RunKey:
        while not self._runs:
            rows = self._database.rows(queries.MAIL_AFTER, self._after, PAGE_ROWS)
            if rows:
                self._after = rows[-1][0]
                self._runs.extend(dict.fromkeys(RunKey(tenant, run) for _, tenant, run in rows))
            else:
                await self._database.signals.wait(MAIL)
        return self._runs.popleft()
