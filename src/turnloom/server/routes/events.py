"""Events of runs: in pages, and live."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from turnloom.app import Run
from turnloom.errors import UsageError
from turnloom.events import RunEvent
from turnloom.log.events import ENDS
from turnloom.runs.chat import ChatEvent
from turnloom.server.context import Asking, Limit, State, View, open_stream
from turnloom.server.replies import JSON, replies, reply
from turnloom.server.routes.runs import RunId
from turnloom.server.streams import (
    MEDIA_TYPE,
    Followed,
    Position,
    RunFeed,
    StreamedEvent,
    StreamedText,
    StreamEnd,
)

router = APIRouter(tags=["events"])

# Between the runs of a position of several, and between a run and its position.
_AND, _AT = ",", "="


class EventPage(msgspec.Struct, frozen=True):
    """Events of a run in order. `next` is the position of the next page; None at the end of the
    log."""

    items: list[Any]
    next: int | None = None


class ChatPage(msgspec.Struct, frozen=True):
    """The chat of a run in order. `next` is the position of the next page; None at the end."""

    items: list[ChatEvent]
    next: int | None = None


_PAGE = {
    "type": "object",
    "required": ["items", "next"],
    "properties": {
        "items": {"type": "array", "items": replies.schema(RunEvent)},
        "next": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
}
_STREAM = {
    "schema": {
        "type": "string",
        "description": "Server-sent events. Unnamed ones are events of the log: their `data` is a "
        "`StreamedEvent`, and their `id` the position. `delta` and `reset` are pieces of an answer "
        "in progress (`StreamedText`) and have no `id`. `end` and `cut` say why the stream ends "
        "(`StreamEnd`); after a `cut`, come back with the last `id`.",
        "x-frames": {
            "message": replies.schema(StreamedEvent),
            "delta": replies.schema(StreamedText),
            "reset": replies.schema(StreamedText),
            "end": replies.schema(StreamEnd),
            "cut": replies.schema(StreamEnd),
        },
    }
}

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="The last `id` that was received.")
]
After = Annotated[int, Query(ge=0, le=2**53, description="The position after which to begin.")]


def _whole(run: Run) -> Followed:
    return run


class FollowedChat:
    """The chat of a run, as something to follow."""

    def __init__(self, run: Run) -> None:
        self.id = run.id
        self.events = run.chat
        self.listening = run.listening


def _opening(view: View, state: State, asking: Asking) -> "OpenStream":
    """Opens a stream for the one who asks, unless they have as many as they may."""

    async def opening(
        after: Mapping[str, int],
        position: Position,
        followed: Callable[[Run], Followed] = _whole,
    ) -> Response:
        found = {run: await view.handle(run).summary() for run in after}
        positions = dict(after)
        feeds = [
            RunFeed(followed(view.handle(run)), positions, each.events, position)
            for run, each in found.items()
            if after[run] < each.events or f"run.{each.status}" not in ENDS
        ]
        return open_stream(state, asking, feeds) if feeds else Response(status_code=204)

    return opening


OpenStream = Callable[..., Awaitable[Response]]
Opening = Annotated[OpenStream, Depends(_opening)]


@router.get(
    "/runs/{run}/events",
    operation_id="read_events",
    summary="Read or follow the events of a run",
    **replies.stream({JSON: {"schema": _PAGE}, MEDIA_TYPE: _STREAM}),
)
async def read_events(
    run: RunId,
    request: Request,
    view: View,
    opening: Opening,
    after: After = 0,
    limit: Limit = 500,
    last_event_id: LastEventId = None,
) -> Response:
    """Events after a position: a page, or with `Accept: text/event-stream` a stream up to the end
    of the run. A stream that has nothing left to give is answered with 204, which ends it."""
    if MEDIA_TYPE not in request.headers.get("accept", ""):
        events = (await view.history.events(run))[after : after + limit + 1]
        page = EventPage([*events[:limit]], after + limit if len(events) > limit else None)
        return reply(page)
    since = after if last_event_id is None else _count(last_event_id)
    return await opening({run: since}, _alone)


@router.get(
    "/runs/{run}/chat",
    operation_id="read_chat",
    summary="Read or follow the chat of a run",
    **replies.stream({JSON: {"schema": replies.schema(ChatPage)}, MEDIA_TYPE: _STREAM}),
)
async def read_chat(
    run: RunId,
    request: Request,
    view: View,
    opening: Opening,
    after: After = 0,
    limit: Limit = 500,
    last_event_id: LastEventId = None,
) -> Response:
    """What the user of a run sees of it: messages, questions put to them, its status. A page, or
    with `Accept: text/event-stream` a stream, whose events are `ChatEvent`s."""
    if MEDIA_TYPE in request.headers.get("accept", ""):
        since = after if last_event_id is None else _count(last_event_id)
        return await opening({run: since}, _alone, FollowedChat)
    found: list[ChatEvent] = []
    async with aclosing(view.handle(run).chat(after, live=False)) as shown:
        async for each in shown:
            if len(found) == limit:
                return reply(ChatPage(found, found[-1].seq))
            found.append(each)
    return reply(ChatPage(found))


@router.get(
    "/events",
    operation_id="follow_runs",
    summary="Follow several runs",
    **replies.stream({MEDIA_TYPE: _STREAM}),
)
async def follow_runs(
    view: View,
    state: State,
    opening: Opening,
    run: Annotated[
        list[str],
        Query(min_length=1, max_length=200, description="A run, or `RUN=POSITION` to begin after."),
    ],
    chat: Annotated[bool, Query(description="Follow the chats of the runs.")] = False,
    last_event_id: LastEventId = None,
) -> Response:
    """One stream of several runs; `id` has the position of each."""
    after = _positions(run)
    if len(after) > state.limits.runs_per_stream:
        raise UsageError(f"A stream follows at most {state.limits.runs_per_stream} runs.")
    if last_event_id is not None:
        known = _positions(last_event_id.split(_AND))
        after |= {each: at for each, at in known.items() if each in after}
    return await opening(after, _joined, FollowedChat if chat else _whole)


def _alone(positions: Mapping[str, int]) -> str:
    return str(next(iter(positions.values())))


def _joined(positions: Mapping[str, int]) -> str:
    return _AND.join(f"{run}{_AT}{at}" for run, at in positions.items())


def _positions(words: Sequence[str]) -> dict[str, int]:
    """Runs with their positions."""
    pairs = (word.partition(_AT) for word in words)
    return {run: _count(at) if at else 0 for run, _, at in pairs}


def _count(word: str) -> int:
    if not word.isdecimal() or len(word) > 15:
        raise UsageError(f"{word[:40]!r} is not a position. Give the last `id` of the stream.")
    return int(word)
