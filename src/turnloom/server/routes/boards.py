"""Boards: publish and read artifacts, as far as the reader may see them."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import Field, ValidationError

from turnloom.app.view import BoardView
from turnloom.board.spec import Artifact, BoardSummary, Envelope, FilterConfig, TagFilter
from turnloom.board.spec.artifacts import Visibility
from turnloom.errors import InvalidArtifact
from turnloom.server.artifact_feed import ArtifactFeed
from turnloom.server.context import Asking, Limit, State, View, open_stream
from turnloom.server.problems import Refusal
from turnloom.server.replies import replies, reply
from turnloom.server.routes.events import LastEventId
from turnloom.server.routes.runs import Body
from turnloom.server.streams import MEDIA_TYPE

router = APIRouter(tags=["board"])

ArtifactId = Annotated[str, Path(description="The id of an artifact.", max_length=1000)]

_STREAM = (
    "Server-sent events: the `data` of each is an `Artifact`, and its `id` the position. `cut` "
    "says why the stream ends; come back with the last `id`."
)
_CONTENT = {MEDIA_TYPE: {"schema": {"type": "string", "description": _STREAM}}}

# The most artifacts of a lineage.
MOST_RELATED = 200


class ArtifactPage(msgspec.Struct, frozen=True):
    """Artifacts with what became of them. `next` is the cursor of the next page; a page may have
    fewer than the limit, or none, and yet a next one."""

    items: list[Envelope]
    next: str | None = None
    total: int | None = None


class Lineage(msgspec.Struct, frozen=True):
    """What an artifact was made from, and what was made from it, as far as you may see it. `unseen`
    are the ids of parents that you may not see, or that are not there."""

    artifact: Artifact
    ancestors: list[Artifact]
    descendants: list[Artifact]
    unseen: list[str]


class PublishBody(Body):
    """An artifact to publish: of a type of the board, by its full or simple name."""

    board: str = Field("board", max_length=1000, description="The board of this server.")
    type: str = Field(max_length=1000)
    payload: dict[str, Any]
    tags: list[str] = Field([], max_length=100)
    visibility: dict[str, Any] | None = None
    correlation_id: str | None = Field(None, max_length=1000)
    id: str | None = Field(
        None, max_length=1000, description="Publishing the same again under an id does nothing."
    )


def _filter(
    type: Annotated[list[str] | None, Query(description="Types, full or simple.")] = None,
    tag: Annotated[list[str] | None, Query(description="Any of these tags.")] = None,
    produced_by: Annotated[list[str] | None, Query(description="Who made them.")] = None,
    correlation_id: Annotated[str | None, Query(description="What they are about.")] = None,
    run: Annotated[list[str] | None, Query(description="The runs that made them.")] = None,
    since: Annotated[datetime | None, Query(description="Made at this instant or later.")] = None,
    where: Annotated[
        list[str] | None,
        Query(description='Conditions on payloads, as `["price.amount", "gt", 5]`.'),
    ] = None,
) -> FilterConfig:
    """The filter that a request asks for."""
    try:
        conditions = [msgspec.json.decode(each) for each in where or ()]
        return FilterConfig(
            types=None if type is None else frozenset(type),
            tags=None if tag is None else TagFilter(include=frozenset(tag)),
            produced_by=None if produced_by is None else frozenset(produced_by),
            correlation_id=correlation_id,
            runs=None if run is None else frozenset(run),
            since=since,
            where=conditions,
        )
    except (ValidationError, msgspec.DecodeError) as error:
        raise Refusal(422, f"The filter is not valid: {_first(error)}") from None


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        each = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
    return str(error)


Filter = Annotated[FilterConfig, Depends(_filter)]


@router.get(
    "/board/stream",
    operation_id="follow_artifacts",
    summary="Follow artifacts",
    **replies.raw({"content": _CONTENT}),
)
async def follow_artifacts(
    view: View,
    state: State,
    asking: Asking,
    filter: Filter,
    last_event_id: LastEventId = None,
) -> Response:
    """A stream of the artifacts that match a filter and that you may see, those that are there
    first, and those that become visible later when they do. Coming back with the last `id` repeats
    nothing."""
    feed = ArtifactFeed(view.board(), filter, last_event_id, state.limits.look_seconds)
    return open_stream(state, asking, [feed])


@router.get(
    "/board/artifacts",
    operation_id="query_artifacts",
    summary="Query artifacts",
    **replies.of(ArtifactPage),
)
async def query_artifacts(
    view: View,
    filter: Filter,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    count: Annotated[bool, Query(description="Also count all that match.")] = False,
    newest_first: Annotated[bool, Query(description="The newest ones first.")] = False,
) -> Response:
    """One page of the artifacts that match a filter."""
    order = "-created_at" if newest_first else "created_at"
    asked = filter.model_copy(update={"limit": limit, "order": order})
    items, total = await view.board().query_artifacts(
        asked, embed_meta=True, cursor=cursor, count=count
    )
    return reply(ArtifactPage([*items], items.cursor, total))  # type: ignore[list-item]


@router.post(
    "/board/artifacts",
    operation_id="publish_artifact",
    summary="Publish an artifact",
    **replies.of(Artifact, 201),
)
async def publish_artifact(view: View, body: PublishBody) -> Response:
    """Publish an artifact: it triggers the agents that subscribe to its type."""
    view.principal.need("runs:write")
    on = view.board(body.board)
    made = await on.publish(
        on.value(body.type, body.payload),
        tags=body.tags,
        visibility=_visibility(body.visibility),
        correlation_id=body.correlation_id,
        id=body.id,
    )
    return reply(made, 201, {"Location": f"/api/v1/board/artifacts/{quote(made.id)}"})


@router.get(
    "/board/artifacts/{id}",
    operation_id="read_artifact",
    summary="Read an artifact",
    **replies.of(Artifact),
)
async def read_artifact(id: ArtifactId, view: View) -> Response:
    """One artifact."""
    return reply(await _found(view.board(), id))


@router.get(
    "/board/artifacts/{id}/lineage",
    operation_id="trace_artifact",
    summary="The lineage of an artifact",
    **replies.of(Lineage),
)
async def trace_artifact(id: ArtifactId, view: View) -> Response:
    """What an artifact was made from, and what was made from it."""
    on = view.board()
    artifact = await _found(on, id)
    ancestors, unseen = await _ancestors(on, artifact)
    return reply(Lineage(artifact, ancestors, await _descendants(on, artifact), unseen))


@router.get(
    "/board/summary",
    operation_id="summarise_board",
    summary="Count artifacts",
    **replies.of(BoardSummary),
)
async def summarise_board(view: View, filter: Filter) -> Response:
    """The number of artifacts, by type, producer, visibility and tag."""
    return reply(await view.board().summary(filter))


async def _found(board: BoardView, id: str) -> Artifact:
    found = await board.get(id)
    if found is None:
        raise Refusal(404, f"Unknown artifact {id!r}.", "TURNLOOM-UNKNOWN-ARTIFACT")
    return found


async def _ancestors(board: BoardView, artifact: Artifact) -> tuple[list[Artifact], list[str]]:
    """What an artifact was made from, the nearest first, and the ids that are not seen."""
    found: dict[str, Artifact] = {}
    unseen: list[str] = []
    waiting = [*artifact.parents]
    while waiting and len(found) < MOST_RELATED:
        id = waiting.pop(0)
        if id in found or id in unseen or id == artifact.id:
            continue
        parent = await board.get(id)
        if parent is None:
            unseen.append(id)
        else:
            found[id] = parent
            waiting += parent.parents
    return [*found.values()], unseen


async def _descendants(board: BoardView, artifact: Artifact) -> list[Artifact]:
    """What was made from an artifact, as far as it is about the same."""
    if artifact.correlation_id is None:
        return []
    asked = FilterConfig(
        correlation_id=artifact.correlation_id, since=artifact.created_at, limit=1000
    )
    items, _ = await board.query_artifacts(asked)
    known, found = {artifact.id}, list[Artifact]()
    for each in items:
        if each.id not in known and known.intersection(each.parents):
            known.add(each.id)
            found.append(each)
    return found[:MOST_RELATED]


def _visibility(given: dict[str, Any] | None) -> Visibility | None:
    try:
        return None if given is None else msgspec.convert(given, Visibility)
    except msgspec.ValidationError as error:
        raise InvalidArtifact(f"`visibility` is not valid: {error}.") from None
