"""What a filter asks for."""

from collections.abc import Iterable, Mapping
from typing import Literal

from turnloom.assembly.logic.items import described
from turnloom.assembly.service.providers.reading import check_count, read, read_last
from turnloom.assembly.service.providers.state import from_state
from turnloom.assembly.service.trail import traced
from turnloom.assembly.spec import ContextRequest, ContextSlice
from turnloom.board.spec import FilterConfig
from turnloom.errors import UsageError

ORDERS = ("created_at", "-created_at")


class FilteredContextProvider:
    """Gives the artifacts that a filter asks for, and behind them values of the turn's state.

    With an order, here or in the filter, they come as the board gives them; without one, a limit
    means the last ones, oldest first.
    """

    stateless = True

    def __init__(
        self,
        filter: FilterConfig | None = None,
        limit: int | None = None,
        order: Literal["created_at", "-created_at"] | None = None,
        include_state_keys: Iterable[str] | None = None,
    ) -> None:
        filter = FilterConfig() if filter is None else filter
        check_count(limit, "limit")
        _check_filter(filter, order)
        said = {"limit": limit, "order": order}
        said = {name: value for name, value in said.items() if value is not None}
        self._filter = filter.model_copy(update=said)
        self._read = read if order or "order" in filter.model_fields_set else read_last
        self._keys = _state_keys(include_state_keys)
        asked = self._filter.model_dump(exclude_defaults=True)
        shared = {"include_state_keys": sorted(self._keys)} if self._keys else {}
        self.declared: Mapping[str, object] = {**asked, **shared}

    @traced
    async def __call__(self, request: ContextRequest) -> ContextSlice:
        """The slice for this request."""
        found = await self._read(request, self._filter)
        state = [{"type": "state", "payload": {k: from_state(request, k)}} for k in self._keys]
        return ContextSlice([*map(described, found), *state])


def _check_filter(filter: object, order: object) -> None:
    if not isinstance(filter, FilterConfig):
        raise UsageError(f"`filter` is {filter!r}. Give a FilterConfig(…).")
    if order is not None and order not in ORDERS:
        raise UsageError(f"`order` is {order!r}. Give {ORDERS[0]!r} or {ORDERS[1]!r}.")


def _state_keys(keys: Iterable[str] | None) -> list[str]:
    """The keys in an order that is always the same."""
    if isinstance(keys, str):
        raise UsageError(f"`include_state_keys` is {keys!r}. Give a set, as in {{{keys!r}}}.")
    return sorted(keys or ())
