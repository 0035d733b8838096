"""The default: what belongs to the run."""

from turnloom.assembly.logic.items import described
from turnloom.assembly.service.providers.reading import check_count, read_last
from turnloom.assembly.service.trail import traced
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.board.spec import Artifact, FilterConfig


class DefaultCorrelationProvider:
    """Gives what has the correlation id of the run or of one of the inputs, oldest first; with a
    limit the last ones."""

    def __init__(self, limit: int | None = None) -> None:
        check_count(limit, "limit")
        self._limit = limit

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        ids = (request.correlation_id, *(each.correlation_id for each in request.inputs))
        found: list[Artifact] = []
        for id in dict.fromkeys(ids):
            if id is not None:
                found += await read_last(
                    request, FilterConfig(correlation_id=id, limit=self._limit)
                )
        found.sort(key=lambda each: each.created_at)
        last = found if self._limit is None else found[-self._limit :]
        return ContextSlice([described(each) for each in last])
