"""Ports of flows."""

from datetime import datetime
from typing import Protocol

from turnloom.kernel.values import Json


class Results(Protocol):
    """The step result cache."""

    async def find(self, tenant: str, key: str, now: datetime) -> Json:
        """The value of a tenant under a key, until it expires (the instant included); None if there
        is none."""
        ...

    async def keep(
        self,
        tenant: str,
        key: str,
        value: Json,
        now: datetime,
        until: datetime | None,
        *,
        user: str = "",
    ) -> None:
        """Store a value of a tenant under a key, in place of another; expired values may be
        removed. `user` is the person whose it is, if it is not shared."""
        ...
