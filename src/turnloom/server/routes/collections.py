"""Collections: search in what was ingested."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Response
from pydantic import Field

from turnloom.assembly.spec.retrieval import RetrievalResult
from turnloom.server.context import View
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import Body

router = APIRouter(tags=["collections"])


class SearchResults(msgspec.Struct, frozen=True):
    """Chunks of documents, the best first."""

    items: list[RetrievalResult]


class SearchBody(Body):
    """What to search for."""

    query: str = Field(max_length=10_000)
    top_k: int = Field(5, ge=1, le=100)
    min_relevance: float | None = Field(None, ge=0, le=1)
    filters: dict[str, Any] | None = None


@router.post(
    "/collections/{name}/search",
    operation_id="search_collection",
    summary="Search a collection",
    **replies.of(SearchResults),
)
async def search_collection(
    name: Annotated[str, Path(description="The name of a collection.", max_length=1000)],
    view: View,
    body: SearchBody,
) -> Response:
    """The chunks that match a query best."""
    search = view.collection(name)
    found = await search.search(body.query, body.top_k, body.min_relevance, body.filters)
    return reply(SearchResults([*found]))
