"""How providers read the board."""

from turnloom.assembly.spec import ContextRequest
from turnloom.board.spec import Artifact, FilterConfig
from turnloom.errors import UsageError


def check_count(count: object, what: str) -> None:
    """See that something can say how many are wanted.

    Raises:
        UsageError: it is less than one, or no whole number.
    """
    if count is not None and (type(count) is not int or count < 1):
        raise UsageError(f"`{what}` is {count!r}. Give 1 or more, or leave it out for all.")


async def read(request: ContextRequest, filter: FilterConfig) -> list[Artifact]:
    """What the filter asks for, without the inputs of the turn; its limit counts the others."""
    inputs = {each.id for each in request.inputs}
    limit = filter.limit
    if limit is not None:
        filter = filter.model_copy(update={"limit": limit + len(inputs)})
    items, _ = await request.board.query_artifacts(filter)
    return [each for each in items if each.id not in inputs][:limit]


async def read_last(request: ContextRequest, filter: FilterConfig) -> list[Artifact]:
    """The same with the last ones where there is a limit, oldest first."""
    newest = await read(request, filter.model_copy(update={"order": "-created_at"}))
    return newest[::-1]
