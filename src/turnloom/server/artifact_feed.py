"""The artifacts of a board as a stream."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec

from turnloom.app.view import BoardView
from turnloom.board.spec import Artifact, FilterConfig
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest
from turnloom.server.streams import Outbox, frame

# Seconds between two looks at a board.
PAUSE = 0.25

# Artifacts of other processes may arrive this late, as their clocks and commits differ.
LATE = timedelta(seconds=2)

# The most artifacts that a position names: those of the last seconds.
MOST_NAMED = 64

PAGE = 200


class ArtifactPosition:
    """A position on a board: an instant, and what was seen of the seconds before it."""

    def __init__(self, seen: dict[str, datetime], since: datetime | None = None) -> None:
        self._seen = seen
        self._since = since

    @classmethod
    def read(cls, word: str | None) -> "ArtifactPosition":
        """The position that a client came to.

        Raises:
            UsageError: it is not a position.
        """
        if word is None:
            return cls({})
        at, _, names = word.partition(".")
        if not at.isdecimal() or len(at) > 17:
            raise UsageError(f"{word[:40]!r} is not a position. Give the last `id` of the stream.")
        since = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(at))
        return cls(dict.fromkeys(names.split("-") if names else (), since), since)

    def __str__(self) -> str:
        since = self._since or datetime.fromtimestamp(0, UTC)
        micro = (since - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
        return f"{micro}.{'-'.join(self._seen)}"

    @property
    def since(self) -> datetime | None:
        """Where to look from; None: from the beginning."""
        return self._since

    def add(self, artifact: Artifact) -> bool:
        """Note an artifact; returns whether it was not seen before."""
        name = digest(artifact.id)[:8]
        if name in self._seen:
            return False
        self._seen[name] = artifact.created_at
        latest = max(self._seen.values())
        floor = latest - LATE
        kept = sorted(((at, each) for each, at in self._seen.items() if at >= floor), reverse=True)[
            :MOST_NAMED
        ]
        self._since = max(self._since or floor, min(kept)[0] if len(kept) == MOST_NAMED else floor)
        self._seen = {each: at for at, each in reversed(kept)}
        return True


class ArtifactFeed:
    """The artifacts that match a filter and that a reader may see, from a position on."""

    def __init__(self, board: BoardView, filter: FilterConfig, after: ArtifactPosition) -> None:
        self._board = board
        self._filter = filter
        self._after = after

    async def pump(self, outbox: Outbox) -> None:
        """Put artifacts into the outbox, and look again, until the stream ends."""
        while True:
            await self._look(outbox)
            await asyncio.sleep(PAUSE)

    async def _look(self, outbox: Outbox) -> None:
        wanted = max(filter(None, (self._filter.since, self._after.since)), default=None)
        asked = self._filter.model_copy(update={"since": wanted, "limit": PAGE})
        cursor: str | None = None
        while True:
            items, _ = await self._board.query_artifacts(asked, cursor=cursor)
            for artifact in items:
                if self._after.add(artifact):
                    made = msgspec.json.encode(artifact)
                    await outbox.put(frame(made, id=str(self._after)))
            cursor = items.cursor
            if cursor is None:
                return

    def sent(self) -> None:
        """Nothing to do: artifacts are never dropped."""
