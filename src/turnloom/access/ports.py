"""Ports of access: API keys, the audit trail, and tokens of an identity provider."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from turnloom.access.spec import (
    EVERY_ENTRY,
    ApiKey,
    AuditEntry,
    AuditFilter,
    StoredKey,
)
from turnloom.runs.principal import Principal


class Keys(Protocol):
    """API keys. A store may have them, as `keys`."""

    async def add(self, key: StoredKey) -> bool:
        """Keep a key; returns False, and keeps nothing, if its id is taken by any tenant.

        Raises:
            StoreUnavailable: nothing was kept.
        """
        ...

    async def lookup(self, id: str) -> StoredKey | None:
        """The key of this public id, whose tenant it says: a credential is all that a caller
        shows."""
        ...

    async def any(self, now: datetime) -> bool:
        """Whether any tenant has a key that is in force."""
        ...

    async def list(self, tenant: str, limit: int, *, before: str | None = None) -> Sequence[ApiKey]:
        """At most `limit` keys of a tenant, the latest first: all, or those made before the key
        `before`; none if the tenant has no such key."""
        ...

    async def revoke(self, tenant: str, id: str, at: datetime) -> ApiKey | None:
        """Revoke a key of a tenant for good; the first revocation stands. Returns the key, or None
        if the tenant has no such key.

        Raises:
            StoreUnavailable: nothing was changed.
        """
        ...

    async def touch(self, tenant: str, id: str, at: datetime) -> None:
        """Note a use of a key; an earlier instant changes nothing."""
        ...

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all keys of a person of a tenant; returns how many there were. A dry run
        only counts them.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ...


class Audit(Protocol):
    """The audit trail: entries are added, and neither changed nor removed. A store may have it, as
    `audit`."""

    async def append(self, tenant: str, entry: AuditEntry) -> int:
        """Add an entry after the last one of its tenant; returns its position.

        Raises:
            StoreUnavailable: nothing was added.
        """
        ...

    async def entries(
        self,
        tenant: str,
        limit: int,
        *,
        before: int | None = None,
        which: AuditFilter = EVERY_ENTRY,
    ) -> Sequence[AuditEntry]:
        """At most `limit` entries of a tenant that a filter selects, the latest first, from
        position `before` down, which is left out."""
        ...


class TokenVerifier(Protocol):
    """Verifies tokens of an identity provider."""

    async def verify(self, token: str) -> Principal | None:
        """The principal of a valid token; None for any other token. The reason is logged."""
        ...

    async def aclose(self) -> None:
        """Release its connections; a second call does nothing."""
        ...
