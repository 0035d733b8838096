"""The artifacts of a board as a stream."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import msgspec

from turnloom.app.view import BoardView
from turnloom.board.spec import Artifact, FilterConfig
from turnloom.errors import UsageError
from turnloom.kernel.digests import digest
from turnloom.server.streams import Outbox, frame, look_again

# Seconds between two looks at a board, at least.
PAUSE = 0.05

# Artifacts of other processes may arrive this late, as their clocks and commits differ.
LATE = timedelta(seconds=2)

# The most artifacts that a position names: those of the last seconds.
MOST_NAMED = 64

PAGE = 200

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)


class ArtifactPosition:
    """A position on a board: an instant, and what was seen of the seconds before it; the instant up
    to which openings of visibilities were seen, and what was seen of those that opened then."""

    def __init__(
        self, seen: dict[str, datetime], since: datetime | None = None, *, opened: datetime
    ) -> None:
        self._seen = seen
        self._since = since
        self.opened = opened
        self._names: list[str] = []

    @classmethod
    def read(cls, word: str | None, now: datetime) -> "ArtifactPosition":
        """The position that a client came to; without one, the beginning.

        Raises:
            UsageError: it is not a position.
        """
        if word is None:
            return cls({}, opened=now)
        at, _, rest = word.partition(".")
        names, _, opened = rest.partition(".")
        until, _, named = opened.partition("-")
        if not all(each.isdecimal() and len(each) <= 17 for each in (at, until)):
            raise UsageError(f"{word[:40]!r} is not a position. Give the last `id` of the stream.")
        since = _EPOCH + int(at) * _MICROSECOND
        made = cls(
            dict.fromkeys(names.split("-") if names else (), since),
            since,
            opened=_EPOCH + int(until) * _MICROSECOND,
        )
        made._names = named.split("-") if named else []
        return made

    def __str__(self) -> str:
        since, opened = (
            (each - _EPOCH) // _MICROSECOND for each in (self._since or _EPOCH, self.opened)
        )
        return f"{since}.{'-'.join(self._seen)}.{'-'.join([str(opened), *self._names])}"

    @property
    def since(self) -> datetime | None:
        """Where to look from; None: from the beginning."""
        return self._since

    def add(self, artifact: Artifact) -> bool:
        """Note an artifact; returns whether it was not seen before."""
        name = _name(artifact)
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

    def open(self, artifact: Artifact, at: datetime) -> bool:
        """Note an artifact that became visible at an instant, in the order of these; returns
        whether it was not seen before."""
        if self.has_opened(artifact, at):
            return False
        name = _name(artifact)
        self._names = [*self._names, name] if at == self.opened else [name]
        self.opened = at
        return self.add(artifact)

    def has_opened(self, artifact: Artifact, at: datetime) -> bool:
        """Whether an artifact is among those that were seen to become visible at an instant."""
        return at == self.opened and _name(artifact) in self._names


def _name(artifact: Artifact) -> str:
    return digest(artifact.id)[:8]


class ArtifactFeed:
    """The artifacts that match a filter and that a reader may see, from a position on. Without a
    signal of the store, it looks again after `longest` seconds, as signals can be lost."""

    def __init__(
        self, board: BoardView, filter: FilterConfig, after: str | None, longest: float
    ) -> None:
        self._longest = longest
        self._board = board
        self._filter = filter
        self._after = ArtifactPosition.read(after, board.now())
        self._looked = self._after.opened - _MICROSECOND

    async def pump(self, outbox: Outbox) -> None:
        """Put artifacts into the outbox whenever there may be further ones, until the stream
        ends."""
        look = partial(self._look, outbox)
        await look_again(self._board.commits(), look, self._patience, PAUSE)

    async def _look(self, outbox: Outbox) -> None:
        """Send what is there since the last look, and what became visible since."""
        now, position = self._board.now(), self._after
        wanted = max(filter(None, (self._filter.since, position.since)), default=None)
        has_opened = False
        async for artifact in self._found(wanted):
            opening = self._board.opening_of(artifact)
            if opening is not None and opening >= position.opened:
                has_opened = has_opened or not position.has_opened(artifact, opening)
            elif position.add(artifact):
                await self._send(artifact, outbox)
        following = await self._board.next_opening(self._looked)
        if has_opened or (following is not None and following <= now):
            await self._send_opened(outbox, now)
        self._looked = now

    async def _send_opened(self, outbox: Outbox, now: datetime) -> None:
        """Send what became visible since the position, in that order."""
        found: list[tuple[datetime, Artifact]] = []
        async for artifact in self._found(self._filter.since):
            opening = self._board.opening_of(artifact)
            if opening is not None and self._after.opened <= opening <= now:
                found.append((opening, artifact))
        for opening, artifact in sorted(found, key=lambda each: each[0]):
            if self._after.open(artifact, opening):
                await self._send(artifact, outbox)

    async def _send(self, artifact: Artifact, outbox: Outbox) -> None:
        await outbox.put(frame(msgspec.json.encode(artifact), id=str(self._after)))

    async def _found(self, since: datetime | None) -> AsyncIterator[Artifact]:
        asked = self._filter.model_copy(update={"since": since, "limit": PAGE})
        cursor: str | None = None
        while True:
            items, _ = await self._board.query_artifacts(asked, cursor=cursor)
            for artifact in items:
                yield artifact
            cursor = items.cursor
            if cursor is None:
                return

    async def _patience(self) -> float:
        """Seconds until the next look, if there is no signal before."""
        following = await self._board.next_opening(self._looked)
        if following is None:
            return self._longest
        return min(max((following - self._board.now()).total_seconds(), 0.0), self._longest)

    def sent(self) -> None:
        """Nothing to do: artifacts are never dropped."""
