"""The default: what belongs to the run."""

from collections.abc import Mapping

from turnloom.assembly.logic.items import described
from turnloom.assembly.service.providers.reading import check_count, read
from turnloom.assembly.service.trail import traced
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.board.spec import Artifact, FilterConfig


class DefaultCorrelationProvider:
    """Gives what has the correlation id of the run or of one of the inputs, oldest first; with a
    limit the last ones."""

    stateless = True

    def __init__(self, limit: int | None = None) -> None:
        check_count(limit, "limit")
        self._limit = limit
        self.declared: Mapping[str, object] = {} if limit is None else {"limit": limit}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        found, _ = await self.find(request)
        return ContextSlice([described(each) for each in found])

    async def find(self, request: ContextRequest) -> tuple[list[Artifact], bool]:
        """The artifacts that it shows for this request, each as it is, and whether the limit leaves
        older ones out."""
        ids = (request.correlation_id, *(each.correlation_id for each in request.inputs))
        found: list[Artifact] = []
        one_more = None if self._limit is None else self._limit + 1
        for id in dict.fromkeys(ids):
            if id is not None:
                newest = FilterConfig(correlation_id=id, limit=one_more, order="-created_at")
                found += (await read(request, newest))[::-1]
        found.sort(key=lambda each: each.created_at)
        if self._limit is None or len(found) <= self._limit:
            return found, False
        return found[-self._limit :], True
