"""Who calls, API keys, and the audit trail of an app."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import TYPE_CHECKING

from turnloom.app.access import PROGRAM, Access
from turnloom.kernel.arguments import as_count, as_name

if TYPE_CHECKING:
    from turnloom.access.service import AuditTrail, Authenticator, Credential, KeyRing
    from turnloom.access.spec import ApiKey, AuditEntry, CreatedKey
    from turnloom.runs.principal import Principal, Role, Scope
    from turnloom.wiring import Parts


class Authentication:
    """Finds the principal of a credential: an API key, or a token of the identity provider that
    `turnloom.toml` names."""

    def __init__(self, open: "Callable[[], Parts]") -> None:
        self._open = open
        self._made: Authenticator | None = None

    async def authenticate(self, header: str | None) -> "Principal":
        """The principal of an `Authorization` header.

        Raises:
            NotAuthenticated: the credential is missing, unknown, expired, revoked, malformed or
                too long; the error does not say which.
        """
        return await self._authenticator().authenticate(header)

    async def identify(self, header: str | None) -> "Credential":
        """The credential in an `Authorization` header: its principal, and its public name.

        Raises:
            NotAuthenticated: as `authenticate`.
        """
        return await self._authenticator().identify(header)

    async def is_set_up(self) -> bool:
        """Whether callers can authenticate: there is a key that is in force, or an identity
        provider.

        Raises:
            UsageError: `[auth]` in `turnloom.toml` is invalid.
        """
        return await self._authenticator().is_set_up()

    def _authenticator(self) -> "Authenticator":
        if self._made is None:
            from turnloom.access.service import Authenticator
            from turnloom.wiring.access import open_tokens

            parts = self._open()
            keys = getattr(parts.store, "keys", None)
            self._made = Authenticator(keys, open_tokens(parts.clock), parts.clock)
        return self._made


class ApiKeys:
    """The API keys of a tenant, `app_id`, for admins."""

    def __init__(self, open: "Callable[[], Parts]", access: Access = PROGRAM) -> None:
        self._open = open
        self._access = access

    async def create(
        self,
        user_id: str,
        *,
        role: "Role" = "user",
        scopes: "Collection[Scope] | None" = None,
        name: str | None = None,
        expires: datetime | str | None = None,
        app_id: str | None = None,
    ) -> "CreatedKey":
        """Make a key for a user, with a role, and scopes that narrow it. Its `token` is shown this
        once; the store has only a digest. `expires` is an instant, or an age such as `90d`.

        Raises:
            Forbidden: the principal may not manage keys.
            UsageError: an argument is invalid, or the store has no `keys`.
            StoreUnavailable: no key was made.
        """
        from turnloom.app.choosing import later_time
        from turnloom.runs.principal import Principal

        by = self._access.admin(app_id, "keys")
        owner = Principal(by.app_id, user_id, role, scopes)
        until = later_time(expires, "`expires`", self._open().clock.now())
        title = owner.user_id if name is None else name
        return await self._ring().create(by, owner, name=title, expires=until)

    async def list(
        self, limit: int = 100, *, before: str | None = None, app_id: str | None = None
    ) -> "list[ApiKey]":
        """At most `limit` keys, the latest first, also expired and revoked ones. For the next page,
        pass the id of the last one as `before`.

        Raises:
            Forbidden: the principal may not manage keys.
        """
        by = self._access.admin(app_id, "keys")
        last = None if before is None else as_name(before, "`before`")
        return [*await self._ring().list(by, limit, last)]

    async def revoke(self, id: str, *, app_id: str | None = None) -> "ApiKey":
        """Revoke a key for good; a second call changes nothing.

        Raises:
            Forbidden: the principal may not manage keys.
            UsageError: there is no such key.
        """
        return await self._ring().revoke(self._access.admin(app_id, "keys"), id)

    def now(self) -> datetime:
        """The present instant, by which keys expire."""
        return self._open().clock.now()

    def _ring(self) -> "KeyRing":
        from turnloom.access.service import KeyRing
        from turnloom.wiring.doors import port_of

        parts = self._open()
        keys = port_of(parts.store, "keys")
        return KeyRing(keys, trail_of(self._open), parts.clock, parts.world.entropy.token)


class AuditLog:
    """The audit trail of a tenant, `app_id`: who did what, when, and what came of it; for admins.
    Values, texts and secrets are not in it."""

    def __init__(self, open: "Callable[[], Parts]", access: Access = PROGRAM) -> None:
        self._open = open
        self._access = access

    async def list(
        self,
        limit: int = 100,
        *,
        before: int | None = None,
        who: str | None = None,
        action: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        app_id: str | None = None,
    ) -> "list[AuditEntry]":
        """At most `limit` entries, the latest first: all, or those of a person, of an action, or
        of a time, as instants or ages such as `1h`. For the next page, pass the `position` of the
        last one as `before`.

        Raises:
            Forbidden: the principal may not read the audit trail.
            UsageError: an argument is invalid, or the store has no `audit`.
        """
        from turnloom.access.service import AuditTrail
        from turnloom.access.spec import AuditFilter
        from turnloom.app.choosing import time_of
        from turnloom.wiring.doors import port_of

        by, parts = self._access.admin(app_id, "audit"), self._open()
        now = parts.clock.now()
        which = AuditFilter(
            None if who is None else as_name(who, "`who`"),
            action,
            time_of(since, "since", now),
            time_of(until, "until", now),
        )
        last = None if before is None else as_count(before, "`before`")
        trail = AuditTrail(port_of(parts.store, "audit"), parts.clock)
        return [*await trail.entries(by, limit, last, which)]


def trail_of(open: "Callable[[], Parts]") -> "AuditTrail | None":
    """The audit trail of an app; None if its store has none."""
    from turnloom.access.service import AuditTrail

    parts = open()
    port = getattr(parts.store, "audit", None)
    return None if port is None else AuditTrail(port, parts.clock)
