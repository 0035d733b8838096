"""Authenticate callers, manage API keys, and keep the audit trail."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from turnloom.access.logic.tokens import (
    PREFIX,
    admits,
    as_action,
    as_label,
    digest_of,
    id_of,
    plain_entry,
    write_token,
)
from turnloom.access.ports import Audit, Keys, TokenVerifier
from turnloom.access.spec import (
    MOST_CREDENTIAL,
    ApiKey,
    AuditEntry,
    AuditFilter,
    CreatedKey,
    StoredKey,
)
from turnloom.errors import NotAuthenticated, StoreUnavailable, TurnloomError, UsageError
from turnloom.kernel.arguments import as_count
from turnloom.log.ports import Clock
from turnloom.runs.principal import Principal

# The last use of a key is stored at most this often.
TOUCH_EVERY = timedelta(minutes=1)
# Keys whose last use is remembered here.
MOST_TOUCHED = 10_000

# How often an id is drawn again that is taken.
DRAWS = 5

_log = logging.getLogger("turnloom.access")


class Credential(NamedTuple):
    """A valid credential: its principal, and its public name, which is the id of an API key or
    `jwt`."""

    principal: Principal
    name: str


class Authenticator:
    """Finds the principal of a credential: an API key, or a token of an identity provider."""

    def __init__(self, keys: Keys | None, tokens: TokenVerifier | None, clock: Clock) -> None:
        self._keys = keys
        self._tokens = tokens
        self._clock = clock
        self._touched: dict[str, datetime] = {}

    async def authenticate(self, header: str | None) -> Principal:
        """The principal of an `Authorization` header.

        Raises:
            NotAuthenticated: the credential is not valid; the error does not say why.
        """
        return (await self.identify(header)).principal

    async def is_set_up(self) -> bool:
        """Whether callers can authenticate: there is a verifier, or a key that is in force."""
        if self._tokens is not None:
            return True
        return self._keys is not None and await self._keys.any(self._clock.now())

    async def identify(self, header: str | None) -> Credential:
        """The credential in an `Authorization` header: its principal, and its public name.

        Raises:
            NotAuthenticated: the credential is missing, unknown, expired, revoked, malformed or
                too long; the error does not say which.
        """
        token = _bearer(header)
        if token.startswith(PREFIX):
            found = await self._by_key(token)
        else:
            found = await self._by_token(token)
        if found is None:
            raise NotAuthenticated
        return found

    async def _by_key(self, token: str) -> Credential | None:
        id = id_of(token)
        if id is None or self._keys is None:
            return None
        stored, now = await self._keys.lookup(id), self._clock.now()
        if not admits(stored, token, now) or stored is None:
            return None
        await self._touch(stored.key, now)
        return Credential(principal_of(stored.key), stored.key.id)

    async def _by_token(self, token: str) -> Credential | None:
        if self._tokens is None or not token:
            return None
        principal = await self._tokens.verify(token)
        return None if principal is None else Credential(principal, "jwt")

    async def _touch(self, key: ApiKey, now: datetime) -> None:
        """Store the last use of a key, at most once a minute. A store that cannot be written does
        not lock people out."""
        last = self._touched.get(key.id, key.last_used)
        if last is not None and now - last < TOUCH_EVERY:
            return
        if len(self._touched) >= MOST_TOUCHED:
            self._touched.clear()
        self._touched[key.id] = now
        try:
            await self._keys_port.touch(key.tenant, key.id, now)
        except StoreUnavailable as error:
            _log.warning("The last use of key %s was not stored: %s", key.id, error)

    @property
    def _keys_port(self) -> Keys:
        assert self._keys is not None
        return self._keys


def _bearer(header: str | None) -> str:
    """The credential in a header; empty if there is none."""
    if header is None or len(header) > MOST_CREDENTIAL or not header.isascii():
        return ""
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def principal_of(key: ApiKey) -> Principal:
    """The principal that a key stands for."""
    return Principal(key.tenant, key.user, key.role, key.scopes)  # type: ignore[arg-type]


class AuditTrail:
    """The audit trail of an app's store."""

    def __init__(self, port: Audit, clock: Clock) -> None:
        self._port = port
        self._clock = clock

    async def record(
        self, by: Principal, action: str, what: str, *, outcome: str = "done", via: str = ""
    ) -> int:
        """Add an entry about a principal of its tenant; returns its position.

        Raises:
            UsageError: the action or the outcome is unknown.
            StoreUnavailable: nothing was added.
        """
        entry = AuditEntry(
            by.app_id, by.user_id, action, what, at=self._clock.now(), outcome=outcome, via=via
        )
        return await self._port.append(by.app_id, plain_entry(entry))

    async def entries(
        self, by: Principal, limit: int, before: int | None, which: AuditFilter
    ) -> Sequence[AuditEntry]:
        """Entries of the principal's tenant, the latest first.

        Raises:
            Forbidden: the principal may not read the audit trail.
        """
        by.need("audit")
        if which.action is not None:
            as_action(which.action)
        most = as_count(limit, "`limit`", 0)
        return await self._port.entries(by.app_id, most, before=before, which=which)


class KeyRing:
    """The API keys of an app's store. `draw` gives random words of at least 128 bits."""

    def __init__(
        self, port: Keys, audit: AuditTrail | None, clock: Clock, draw: Callable[[], str]
    ) -> None:
        self._port = port
        self._audit = audit
        self._clock = clock
        self._draw = draw

    async def create(
        self, by: Principal, owner: Principal, *, name: str, expires: datetime | None = None
    ) -> CreatedKey:
        """Make a key that stands for `owner`; its token is never shown again.

        Raises:
            Forbidden: the principal may not manage keys.
            UsageError: the name, the owner or the expiry is invalid.
            StoreUnavailable: no key was made.
        """
        by.need("keys")
        _check_owner(by, owner)
        now = self._clock.now()
        if expires is not None and expires <= now:
            raise UsageError(
                f"`expires` is {expires.isoformat()}, which is past. Give a later one."
            )
        for _ in range(DRAWS):
            key = ApiKey(
                self._draw(),
                owner.app_id,
                as_label(owner.user_id, "`user_id`"),
                owner.role,
                scopes=tuple(sorted(owner.scopes or ())),
                name=as_label(name, "`name`"),
                created=now,
                created_by=by.user_id,
                expires=expires,
            )
            token = write_token(key.id, self._draw() + self._draw())
            if await self._port.add(StoredKey(key, digest_of(token))):
                await self._note(by, "key.created", key)
                return CreatedKey(key, token)
        raise TurnloomError("Every id that was drawn for the key is taken. Try again.")

    async def list(self, by: Principal, limit: int, before: str | None) -> Sequence[ApiKey]:
        """Keys of the principal's tenant, the latest first, also expired and revoked ones.

        Raises:
            Forbidden: the principal may not manage keys.
        """
        by.need("keys")
        return await self._port.list(by.app_id, as_count(limit, "`limit`", 0), before=before)

    async def revoke(self, by: Principal, id: str) -> ApiKey:
        """Revoke a key of the principal's tenant for good; a second call changes nothing.

        Raises:
            Forbidden: the principal may not manage keys.
            UsageError: the tenant has no such key.
        """
        by.need("keys")
        key = await self._port.revoke(by.app_id, as_label(id, "`id`"), self._clock.now())
        if key is None:
            raise UsageError(f"Unknown key {id!r}. List the keys with `turnloom keys list`.")
        await self._note(by, "key.revoked", key)
        return key

    async def _note(self, by: Principal, action: str, key: ApiKey) -> None:
        if self._audit is not None:
            await self._audit.record(by, action, key.id)


def _check_owner(by: Principal, owner: Principal) -> None:
    """Refuse an owner of another tenant."""
    if owner.app_id != by.app_id:
        raise UsageError(
            f"A key of app {owner.app_id!r} is made by an admin of that app, not by {by}."
        )
