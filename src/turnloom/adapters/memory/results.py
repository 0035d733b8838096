"""What steps came to, in this process's memory."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime

from turnloom.kernel.values import Json

# How many results are kept; the one that nobody asked for longest goes first.
ROOM = 10_000


class MemoryResults:
    """What steps came to, as much as there is room for."""

    def __init__(self, check_open: Callable[[], None], room: int = ROOM) -> None:
        self._check_open = check_open
        self._room = room
        self._kept: OrderedDict[tuple[str, str], tuple[Json, datetime | None]] = OrderedDict()

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """What a tenant keeps under a key, up to and including the instant that it is kept
        until."""
        self._check_open()
        place = (tenant, key)
        value, until = self._kept.get(place, (None, None))
        if until is not None and until < now:
            del self._kept[place]
            return None
        if place in self._kept:
            self._kept.move_to_end(place)
        return value

    async def keep(
        self, tenant: str, key: str, value: Json, now: datetime, until: datetime | None
    ) -> None:
        """Keep a value of a tenant under a key, in place of another."""
        self._check_open()
        self._kept[tenant, key] = (value, until)
        self._kept.move_to_end((tenant, key))
        if len(self._kept) > self._room:
            self._kept.popitem(last=False)
