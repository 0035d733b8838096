"""API keys, and entries of the audit trail."""

from datetime import datetime
from typing import NamedTuple

import msgspec

# The most characters of a name, and of a credential.
MOST_NAME = 200
MOST_CREDENTIAL = 16_384


class ApiKey(msgspec.Struct, frozen=True):
    """An API key without its secret: whose it is, and what it allows."""

    id: str
    tenant: str
    user: str
    role: str
    scopes: tuple[str, ...]
    name: str
    created: datetime
    created_by: str
    expires: datetime | None = None
    revoked: datetime | None = None
    last_used: datetime | None = None

    def status(self, now: datetime) -> str:
        """`valid`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= now else "valid"


class StoredKey(NamedTuple):
    """An API key and the digest of its token, as a store keeps them."""

    key: ApiKey
    digest: str

    def __repr__(self) -> str:
        return f"StoredKey({self.key.id!r})"


class CreatedKey(NamedTuple):
    """An API key at its creation, with the token that is shown once and never stored."""

    key: ApiKey
    token: str

    def __repr__(self) -> str:
        return f"CreatedKey({self.key.id!r})"


# What the audit trail records.
ACTIONS = (
    "run.started",
    "run.resumed",
    "run.retried",
    "run.forked",
    "run.answered",
    "run.cancelled",
    "run.pruned",
    "explanation.read",
    "feedback.given",
    "key.created",
    "key.revoked",
    "schedule.planned",
    "schedule.cancelled",
)
OUTCOMES = ("done", "refused", "failed")


class AuditEntry(msgspec.Struct, frozen=True):
    """Who did what, when, and what came of it. `via` names the credential: the id of an API key,
    `jwt` or `local`. `position` counts the entries of a tenant from 1; the store sets it."""

    tenant: str
    who: str
    action: str
    what: str
    at: datetime
    outcome: str = "done"
    via: str = ""
    position: int = 0


class AuditFilter(NamedTuple):
    """Which entries are listed; what is left out does not restrict. Both ends are included."""

    who: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None


EVERY_ENTRY = AuditFilter()


class JwtSettings(msgspec.Struct, frozen=True):
    """How tokens of an identity provider are verified, and which of its claims say who calls.

    `tenant`, `user`, `role` and `scopes` name claims; `app_id` is the tenant of all callers
    instead. `roles` maps values of the role's claim to roles. `skew` is in seconds.
    """

    issuer: str
    audience: tuple[str, ...]
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    jwks: str = ""
    skew: float = 60.0
    private: bool = False
    tenant: str = ""
    app_id: str = ""
    user: str = "sub"
    role: str = ""
    roles: dict[str, str] = {}
    scopes: str = ""
