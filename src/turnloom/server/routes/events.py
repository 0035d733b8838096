"""Events of runs: in pages, and live."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from turnloom.app.view import LoomView
from turnloom.errors import UsageError
from turnloom.events import RunEvent
from turnloom.log.events import ENDS
from turnloom.server.context import Asking, Limit, State, View
from turnloom.server.replies import JSON, replies, reply
from turnloom.server.routes.runs import RunId
from turnloom.server.streams import MEDIA_TYPE, EventStream, Followed, Position

router = APIRouter(tags=["events"])

# Between the runs of a position of several, and between a run and its position.
_AND, _AT = ",", "="


class EventPage(msgspec.Struct, frozen=True):
    """Events of a run in order. `next` is the position of the next page; None at the end of the
    log."""

    items: list[Any]
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
    }
}

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="The last `id` that was received.")
]
After = Annotated[int, Query(ge=0, le=2**53, description="The position after which to begin.")]


def _opening(state: State, asking: Asking) -> "OpenStream":
    """Opens a stream for the one who asks, unless they have as many as they may."""

    def opening(
        runs: Sequence[Followed], after: Mapping[str, int], position: Position
    ) -> EventStream:
        state.open_streams.check(asking.key)
        counting = state.open_streams.one(asking.key)
        return EventStream(runs, after, position, state.streams, counting=counting)

    return opening


OpenStream = Callable[[Sequence[Followed], Mapping[str, int], Position], EventStream]
Opening = Annotated[OpenStream, Depends(_opening)]


@router.get(
    "/runs/{run}/events",
    operation_id="read_events",
    summary="Read or follow the events of a run",
    **replies.raw({"content": {JSON: {"schema": _PAGE}, MEDIA_TYPE: _STREAM}}),
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
    if await _is_over(view, run, since):
        return Response(status_code=204)
    return opening([view.handle(run)], {run: since}, lambda positions: str(positions[run]))


@router.get(
    "/events",
    operation_id="follow_runs",
    summary="Follow several runs",
    **replies.raw({"content": {MEDIA_TYPE: _STREAM}}),
)
async def follow_runs(
    view: View,
    state: State,
    opening: Opening,
    run: Annotated[
        list[str],
        Query(min_length=1, max_length=200, description="A run, or `RUN=POSITION` to begin after."),
    ],
    last_event_id: LastEventId = None,
) -> Response:
    """One stream of several runs; `id` has the position of each."""
    after = _positions(run)
    if len(after) > state.limits.runs_per_stream:
        raise UsageError(f"A stream follows at most {state.limits.runs_per_stream} runs.")
    if last_event_id is not None:
        known = _positions(last_event_id.split(_AND))
        after |= {each: at for each, at in known.items() if each in after}
    going = [each for each, at in after.items() if not await _is_over(view, each, at)]
    if not going:
        return Response(status_code=204)
    return opening([view.handle(each) for each in going], after, _joined)


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


async def _is_over(view: LoomView, run: str, after: int) -> bool:
    """Whether a run has ended, and has no events after a position."""
    found = await view.handle(run).summary()
    return found.events <= after and f"run.{found.status}" in ENDS
