"""The clock of the database, as far as this process knows it."""

from datetime import datetime, timedelta

from turnloom.adapters.postgres import store_queries as queries
from turnloom.adapters.postgres.connections import Session
from turnloom.board.logic.rows import instant_of
from turnloom.log.ports import Clock


class PostgresClock:
    """The time of the database: that of this machine, corrected by their difference, which is
    measured when the store is opened and when claims are renewed. It does not go back."""

    def __init__(self, local: Clock) -> None:
        self._local = local
        self._ahead = timedelta()
        self._last: datetime | None = None

    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""
        now = self._local.now() + self._ahead
        self._last = last = max(now, self._last or now)
        return last

    async def measure(self, session: Session) -> None:
        """Compare the two clocks."""
        before = self._local.now()
        found = await (await session.execute(queries.CLOCK)).fetchone()
        assert found is not None
        self._ahead = instant_of(found[0]) - (before + (self._local.now() - before) / 2)
