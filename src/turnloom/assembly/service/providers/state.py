"""What components put into the state of the turn."""

from collections.abc import Mapping
from typing import Any, cast

from turnloom.assembly.service.trail import traced
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.errors import ContextUnavailable, UsageError
from turnloom.kernel.values import as_array, as_object


class StateDelegatingProvider:
    """Gives the items or the slice that a component left under a key of the turn's state."""

    stateless = True

    def __init__(self, key: str = "context_snapshot") -> None:
        if not key:
            raise UsageError("`key` is empty. Name the key of `ctx.state` that has the items.")
        self._key = key
        self.declared: Mapping[str, object] = {"key": key}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        left = from_state(request, self._key)
        given = left if isinstance(left, ContextSlice) else _listed(left, self._key)
        # What was read before counts as given out only when it is read in this call as well.
        for each in given.items:
            id = (as_object(each) or {}).get("artifact_id")
            if isinstance(id, str):
                await request.board.get(id)
        return given


def from_state(request: ContextRequest, key: str) -> Any:
    """The value that a component left under a key.

    Raises:
        ContextUnavailable: there is none.
    """
    try:
        return request.ctx.state[key]
    except KeyError:
        raise ContextUnavailable(
            f"`ctx.state` has no {key!r}. Let a component put it there before the turn gathers its "
            "context, an empty list perhaps."
        ) from None


def _listed(left: object, key: str) -> ContextSlice:
    items = as_array(left)
    if items is None:
        raise ContextUnavailable(
            f"`ctx.state[{key!r}]` is a {type(left).__name__!r}. "
            "Put a list of items or a ContextSlice there."
        )
    return ContextSlice([*cast(list[dict[str, Any]], items)])
