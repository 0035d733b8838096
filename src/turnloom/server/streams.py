"""Server-sent events: the log of runs, live, and the text of answers in progress."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing, suppress
from typing import Any, Protocol

import anyio
import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from turnloom.errors import TurnloomError
from turnloom.runtime.spec import Delta
from turnloom.server.limits import Limits
from turnloom.server.problems import Problem, problem_of
from turnloom.server.signals import StopSignals

MEDIA_TYPE = "text/event-stream"

# Milliseconds after which a client comes back.
RETRY = 2_000

# Seconds without an event after which a reader has caught up.
CAUGHT_UP = 0.1

# Bytes that wait for a client: events then wait in the store, and text is sent again as a whole.
ROOM = 262_144

HEADERS = {
    "Content-Type": f"{MEDIA_TYPE}; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}

log = logging.getLogger("turnloom.server")


class StreamedEvent(msgspec.Struct, frozen=True):
    """An event of a run in a stream; `id:` of the stream is the position after it."""

    run: str
    event: Any


class StreamedText(msgspec.Struct, frozen=True):
    """A piece of an answer in progress: `delta` adds it at `offset`, and `reset` replaces all text
    of the answer. `call` is the model call of the turn, and `attempt` the try of that call."""

    run: str
    turn: int
    agent: str
    call: int
    attempt: int
    offset: int
    text: str


class StreamEnd(msgspec.Struct, frozen=True):
    """Why a stream ends: `end` when the runs have ended, `cut` otherwise. After a `cut`, come back
    with the last `id`."""

    reason: str
    problem: Problem | None = None


class Followed(Protocol):
    """A run that can be followed."""

    id: str

    def events(self, after: int = 0) -> AsyncGenerator[Any]:
        """Its events after a position, live, up to its end."""
        ...

    def listening(self, listener: Callable[[Delta], None]) -> AbstractContextManager[None]:
        """Call a listener with deltas, from the beginning of the answer in progress."""
        ...


def frame(data: bytes, event: str = "", id: str = "") -> bytes:
    """A server-sent event. JSON has no line breaks."""
    name = b"event: " + event.encode() + b"\n" if event else b""
    position = b"id: " + id.encode() + b"\n" if id else b""
    return name + position + b"data: " + data + b"\n\n"


class Outbox:
    """Frames that wait to be sent to one client."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._size = 0
        self._changed = asyncio.Event()
        self._emptied = asyncio.Event()
        self.is_closed = False

    async def put(self, made: bytes) -> None:
        """Add a frame, once there is room."""
        while self._size > ROOM:
            self._emptied.clear()
            await self._emptied.wait()
        self._add(made)

    def offer(self, made: bytes) -> bool:
        """Add a frame if there is room."""
        if self._size > ROOM:
            return False
        self._add(made)
        return True

    def close(self, last: bytes) -> None:
        """Add the last frame."""
        if not self.is_closed:
            self._add(last)
            self.is_closed = True

    def _add(self, made: bytes) -> None:
        if not self.is_closed:
            self._frames.append(made)
            self._size += len(made)
            self._changed.set()

    async def take(self, seconds: float) -> bytes:
        """All frames that wait, at least one; after so many seconds of silence, a comment, so that
        proxies keep the connection."""
        if not self._frames:
            self._changed.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                return b": ping\n\n"
        taken = b"".join(self._frames)
        self._frames.clear()
        self._size = 0
        self._emptied.set()
        return taken


class TextDeltas:
    """The text deltas of one run for one client. Deltas for which there is no room are dropped, and
    the whole text is sent instead, once there is room."""

    def __init__(self, run: Followed, outbox: Outbox) -> None:
        self._run = run
        self._outbox = outbox
        self._listening = ExitStack()
        self._replayed: list[Delta] | None = None
        self._is_behind = False
        self.has_begun = False

    def begin(self) -> None:
        """Send the answers in progress as a whole, and listen from now on."""
        self.end()
        self.has_begun = True
        self._replayed = []
        self._listening.enter_context(self._run.listening(self._hear))
        replayed, self._replayed = self._replayed, None
        whole: dict[int, StreamedText] = {}
        for delta in replayed:
            before = whole[delta.turn].text[: delta.offset] if delta.offset else ""
            whole[delta.turn] = self._text(delta, before + delta.text, 0)
        for each in whole.values():
            made = frame(msgspec.json.encode(each), "reset")
            self._is_behind = not self._outbox.offer(made) or self._is_behind

    def end(self) -> None:
        """Stop listening."""
        self._listening.close()

    def catch_up(self) -> None:
        """Begin again if deltas were dropped."""
        if self._is_behind:
            self._is_behind = False
            self.begin()

    def _hear(self, delta: Delta) -> None:
        if self._replayed is not None:
            self._replayed.append(delta)
        elif not self._is_behind:
            made = msgspec.json.encode(self._text(delta, delta.text, delta.offset))
            self._is_behind = not self._outbox.offer(frame(made, "delta"))

    def _text(self, delta: Delta, text: str, offset: int) -> StreamedText:
        return StreamedText(
            self._run.id,
            delta.turn,
            delta.agent,
            delta.call,
            attempt=delta.attempt,
            offset=offset,
            text=text,
        )


class Streams:
    """The open streams of a server. A signal that stops the process cuts them off."""

    def __init__(self) -> None:
        self._open: set[EventStream] = set()
        self._is_stopping = False
        self._signals = StopSignals(self._cut)

    def add(self, stream: "EventStream") -> None:
        """Note that a stream opens."""
        self._open.add(stream)
        self._signals.listen()
        if self._is_stopping:
            stream.cut("stopping")

    def remove(self, stream: "EventStream") -> None:
        """Note that a stream ended."""
        self._open.discard(stream)
        if not self._open:
            self._signals.rest()

    def stop(self) -> None:
        """End all streams: the server stops. Their clients come back to the next one."""
        self._is_stopping = True
        self._cut()

    def _cut(self) -> None:
        for each in self._open:
            each.cut("stopping")

    def __len__(self) -> int:
        return len(self._open)


class StreamFeed(Protocol):
    """What a stream sends, from one source."""

    async def pump(self, outbox: Outbox) -> None:
        """Put frames into the outbox until the source ends."""
        ...

    def sent(self) -> None:
        """Note that the outbox was emptied."""
        ...


async def look_again(
    commits: AsyncGenerator[None] | None,
    look: Callable[[], Awaitable[None]],
    patience: Callable[[], Awaitable[float]],
    pause: float,
) -> None:
    """Look whenever something may have been stored, until the stream ends: after a commit, at least
    `pause` seconds after the last look, and without one after the seconds of `patience`, as signals
    can be lost."""
    changed = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_listen(commits, changed))
        while True:
            changed.clear()
            await look()
            await asyncio.sleep(pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(await patience()):
                    await changed.wait()


async def _listen(commits: AsyncGenerator[None] | None, changed: asyncio.Event) -> None:
    """Note that something may have been stored."""
    if commits is not None:
        async with aclosing(commits):
            async for _ in commits:
                changed.set()


# The position of a stream after an event: of its run alone, or of each of its runs.
Position = Callable[[Mapping[str, int]], str]


class RunFeed:
    """The events of a run after the position in `after`, up to its end, and the text in progress.
    Events up to the position `stored` are there already; `after` is shared by the runs of a
    stream."""

    def __init__(
        self, run: Followed, after: dict[str, int], stored: int, position: Position
    ) -> None:
        self._run = run
        self._after = after
        self._stored = stored
        self._position = position
        self._texts: TextDeltas | None = None

    async def pump(self, outbox: Outbox) -> None:
        """Put the events into the outbox. The text in progress follows what is stored already,
        which some readers see only a part of."""
        run, stored, loop = self._run, self._stored, asyncio.get_running_loop()
        texts = self._texts = TextDeltas(run, outbox)
        after = self._after[run.id]
        begins = loop.call_later(CAUGHT_UP if after < stored else 0, texts.begin)
        try:
            async with aclosing(run.events(after)) as events:
                async for event in events:
                    begins.cancel()
                    self._after[run.id] = event.seq
                    made = msgspec.json.encode(StreamedEvent(run.id, event))
                    await outbox.put(frame(made, id=self._position(self._after)))
                    if not texts.has_begun:
                        wait = CAUGHT_UP if event.seq < stored else 0
                        begins = loop.call_later(wait, texts.begin)
        finally:
            begins.cancel()
            texts.end()

    def sent(self) -> None:
        """Send text that was dropped again."""
        if self._texts is not None:
            self._texts.catch_up()


class EventStream(Response):
    """A response that sends what its feeds give until all of them have ended."""

    def __init__(
        self,
        feeds: Sequence[StreamFeed],
        *,
        limits: Limits,
        streams: Streams,
        counting: AbstractContextManager[None],
    ) -> None:
        super().__init__(status_code=200, headers=HEADERS)
        del self.headers["content-length"]  # it is not known
        self._feeds = feeds
        self._limits = limits
        self._streams = streams
        self._counting = counting
        self._outbox = Outbox()

    def cut(self, reason: str, problem: Problem | None = None) -> None:
        """End the stream early."""
        self._outbox.close(frame(msgspec.json.encode(StreamEnd(reason, problem)), "cut"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send frames until the end, the client's or that of the runs."""
        with self._counting:
            self._streams.add(self)
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._pump)
                    group.start_soon(self._watch, receive, group.cancel_scope)
                    await self._send(send)
                    group.cancel_scope.cancel()
            finally:
                self._streams.remove(self)

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        """Stop when the client leaves."""
        while (await receive())["type"] != "http.disconnect":
            continue
        scope.cancel()

    async def _pump(self) -> None:
        """Pump all feeds, and say why the stream ends."""
        try:
            async with anyio.create_task_group() as group:
                for feed in self._feeds:
                    group.start_soon(feed.pump, self._outbox)
        except* TurnloomError as failed:
            error = failed.exceptions[0]
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            assert isinstance(error, TurnloomError)
            self.cut("failed", problem_of(error))
        else:
            ended = frame(msgspec.json.encode(StreamEnd("ended")), "end")
            self._outbox.close(ended)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send(_piece(f"retry: {RETRY}\n\n".encode()))
        loop = asyncio.get_running_loop()
        is_last = False
        while not is_last:
            made = await self._outbox.take(self._limits.ping_seconds)
            is_last, begun = self._outbox.is_closed, loop.time()
            try:
                async with asyncio.timeout(self._limits.stalled_seconds):
                    await send(_piece(made))
            except TimeoutError:
                log.info("a stream was cut off: its client does not read")
                return  # an incomplete response closes the connection
            if loop.time() - begun > self._limits.slow_seconds and not is_last:
                self.cut("slow")
            for feed in self._feeds:
                feed.sent()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _piece(body: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": True}
