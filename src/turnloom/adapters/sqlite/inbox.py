"""The inbox in a SQLite file."""

import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import partial

import msgspec

from turnloom.adapters.sqlite import queries
from turnloom.adapters.sqlite.batches import ids_of, page_after
from turnloom.adapters.sqlite.database import DatabaseFile
from turnloom.adapters.sqlite.writer import MAIL, StoreWrite, Writer
from turnloom.agents.events import AnswerRefused, QuestionAnswered
from turnloom.board.events import ArtifactPublished, ArtifactRefused
from turnloom.log.events import ENDS, CancelRequested, RunResumed
from turnloom.log.spec import Event, RunKey
from turnloom.reaction.events import ArtifactReceived, BatchClosed, RetryAsked
from turnloom.runtime.spec import Message, Stop, refuse_flood

PAGE_ROWS = 200

# The kinds of events that record messages.
MAIL_KINDS = frozenset(
    fact.kind
    for fact in (
        QuestionAnswered,
        AnswerRefused,
        CancelRequested,
        RunResumed,
        ArtifactPublished,
        ArtifactRefused,
        ArtifactReceived,
        BatchClosed,
        RetryAsked,
    )
)


_log = logging.getLogger("turnloom.sqlite")
_decode = msgspec.json.Decoder[Message](Message).decode


def _read(data: bytes) -> Message | None:
    """The stored message; None if it cannot be read."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class _Offer(StoreWrite[bool]):
    __slots__ = ("_id", "_is_limited", "_message", "_run")

    def __init__(self, run: RunKey, id: str, message: bytes, *, is_limited: bool) -> None:
        super().__init__(MAIL)
        self._is_limited = is_limited
        self._run = run
        self._id = id
        self._message = message

    def apply(self, writer: Writer) -> bool:
        run, position, ids = self._run, 0, set[str]()
        waiting = [id for (id,) in writer.execute(queries.MAIL_IDS, run).fetchall()]
        run_end = writer.locate(run)
        if run_end:
            position = run_end.position
            ids = writer.taken(run, run_end, {*waiting, self._id})
        for id in waiting:
            if id in ids:
                writer.execute(queries.DROP_MAIL, (*run, id))
        if self._id in ids:
            return False
        if self._is_limited:
            refuse_flood(run.id, sum(id not in ids for id in waiting))
        mail = (*run, self._id)
        kept = writer.execute(queries.MAIL_WITH_ID, mail).fetchone()
        if kept and _read(kept[0]) is None:
            writer.execute(queries.DROP_MAIL, mail)  # unreadable: it would block its id
        added = writer.execute(queries.ADD_MAIL, (*mail, position, self._message))
        return added.rowcount > 0


class ClearMail(StoreWrite[None]):
    """Clears messages whose events are stored; may run inside another write.

    The content of a message is erased. Its row stays for readers that have not seen it yet, until
    the next message arrives or the run ends.
    """

    __slots__ = ("_ids", "_is_finished", "_run")

    def __init__(self, run: RunKey, ids: Sequence[str], *, is_finished: bool) -> None:
        super().__init__()
        self._run = run
        self._ids = ids
        self._is_finished = is_finished

    def apply(self, writer: Writer) -> None:
        """Clear the messages, or delete all messages of a finished run."""
        if self._is_finished:
            writer.execute(queries.DROP_MAIL_OF, self._run)
            return
        for id in self._ids:
            writer.execute(queries.CLEAR_MAIL, (*self._run, id))


def clear_mail_of(run: RunKey, events: Sequence[Event]) -> ClearMail | None:
    """The write that clears the messages that events record, if any."""
    is_finished = events[-1].kind in ENDS
    ids = [event.id for event in events if event.kind in MAIL_KINDS]
    return ClearMail(run, ids, is_finished=is_finished) if ids or is_finished else None


class SqliteInbox:
    """Messages to runs, stored in the log's file until their events are in the log."""

    def __init__(self, database: DatabaseFile) -> None:
        self._database = database
        self._encode = msgspec.json.Encoder().encode

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Store a message for a run, and return whether its id is new. Duplicates are dropped."""
        is_limited = not isinstance(message, Stop)  # stopping a run is always possible
        offer = _Offer(run, id, self._encode(message), is_limited=is_limited)
        return await self._database.write(offer)

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """The messages of a run that are not in its log, oldest first."""
        await self._database.ready()
        mail = self._database.rows(queries.MAIL_OF, *run)
        if not mail:
            return ()
        clear_mail_of = await self._ids_behind(run, min(position for _, position, _ in mail))
        pending: list[tuple[str, Message]] = []
        for id, _, data in mail:
            if id in clear_mail_of:
                continue
            if (message := _read(data)) is None:
                _log.warning("Message %r to run %r is unreadable and ignored.", id, run.id)
            else:
                pending.append((id, message))
        return pending

    def arrivals(self) -> AsyncIterator[RunKey]:
        """The runs of all tenants that receive messages from now on, from any process. A run may be
        reported again."""
        last = self._database.rows(queries.LAST_MAIL)
        return _Arrivals(self._database, last[0][0] if last else 0)

    async def _ids_behind(self, run: RunKey, position: int) -> set[str]:
        """The ids of the events after a position: a message is recorded by a later event."""
        ids: set[str] = set()
        async with aclosing(self._database.pages(partial(page_after, run=run), position)) as pages:
            async for lines in pages:
                ids.update(ids_of(b"\n".join(lines)))
        return ids


class _Arrivals:
    """One reader's position in the arriving messages."""

    def __init__(self, database: DatabaseFile, after: int) -> None:
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
