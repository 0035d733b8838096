"""The default: what belongs to the run."""

from turnloom.assembly.logic.items import described
from turnloom.assembly.service.providers.reading import check_count, read
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
        return ContextSlice([described(each) for each in await self.find(request)])

    async def find(self, request: ContextRequest) -> list[Artifact]:
        """The artifacts that it shows for this request, each as it is."""
        ids = (request.correlation_id, *(each.correlation_id for each in request.inputs))
        found: list[Artifact] = []
        for id in dict.fromkeys(ids):
            if id is not None:
                newest = FilterConfig(correlation_id=id, limit=self._limit, order="-created_at")
                found += (await read(request, newest))[::-1]
        found.sort(key=lambda each: each.created_at)
        return found if self._limit is None else found[-self._limit :]
