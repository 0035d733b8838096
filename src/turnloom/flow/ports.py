"""What flows need from the world."""

from datetime import datetime
from typing import Protocol

from turnloom.kernel.values import Json


class Results(Protocol):
    """What steps came to, for others that would come to the same."""

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """What a tenant keeps under a key, up to and including the instant that it is kept until;
        nothing if nothing is."""
        ...

    async def keep(
        self, tenant: str, key: str, value: Json, now: datetime, until: datetime | None
    ) -> None:
        """Keep a value of a tenant under a key, in place of another; what is over by now may be
        let go."""
        ...
