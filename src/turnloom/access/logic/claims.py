"""The settings `[auth.jwt]`, and from claims to a principal."""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from turnloom.access.logic.tokens import as_label
from turnloom.access.spec import JwtSettings
from turnloom.errors import UsageError
from turnloom.kernel.arguments import wrong
from turnloom.kernel.values import nearest, preview
from turnloom.runs.principal import ROLE_SCOPES, ROLES, SCOPES, Principal, Role, Scope

# Algorithms with a public key. Those with a shared secret, and `none`, are not among them: a
# published key must never verify what anyone could have signed with it.
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
MOST_SKEW = 300.0

_FIELDS = tuple(each.name for each in msgspec.structs.fields(JwtSettings))


def as_jwt_settings(table: object) -> JwtSettings:
    """The checked settings of a table `[auth.jwt]`.

    Raises:
        UsageError: a setting is missing, unknown or invalid.
    """
    if not isinstance(table, Mapping):
        raise UsageError("`auth.jwt` must be a table. Write `[auth.jwt]`, and its keys below.")
    given = dict(cast(Mapping[str, Any], table))
    _check_names(given)
    for name in ("audience", "algorithms"):
        if isinstance(given.get(name), str):
            given[name] = [given[name]]
    try:
        read = msgspec.convert(given, JwtSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"`[auth.jwt]` is invalid: {error}.") from error
    _check_source(read)
    _check_claims(read)
    return read


def _check_names(given: Mapping[str, Any]) -> None:
    for name in given:
        if name not in _FIELDS:
            near = nearest(name, _FIELDS)
            remedy = f"Did you mean {near!r}?" if near else f"Known: {', '.join(_FIELDS)}."
            raise UsageError(f"Unknown setting 'auth.jwt.{name}'. {remedy}")
    for name in ("issuer", "audience"):
        if name not in given:
            raise UsageError(f"`[auth.jwt]` needs `{name}`: it says whose tokens are accepted.")


def _check_source(read: JwtSettings) -> None:
    check_url(read.issuer, "auth.jwt.issuer")
    if read.jwks:
        check_url(read.jwks, "auth.jwt.jwks")
    if not read.audience or not all(read.audience):
        raise UsageError("`auth.jwt.audience` is empty. Name the audience of your tokens.")
    for each in read.algorithms or ("none",):
        if each not in ALGORITHMS:
            raise UsageError(
                f"`auth.jwt.algorithms` has {each!r}. Tokens are verified with a public key: use "
                f"{', '.join(ALGORITHMS)}."
            )
    if not 0 <= read.skew <= MOST_SKEW:
        raise UsageError(f"`auth.jwt.skew` is {read.skew:g}. Give 0 to {MOST_SKEW:g} seconds.")


def _check_claims(read: JwtSettings) -> None:
    if bool(read.tenant) == bool(read.app_id):
        raise UsageError(
            "`[auth.jwt]` needs to know the tenant: `tenant` names a claim, or `app_id` is the "
            "tenant of all callers. Give one of them."
        )
    if read.roles and not read.role:
        raise UsageError("`[auth.jwt.roles]` has no effect without `role`, the name of a claim.")
    for each in read.roles.values():
        if each not in ROLES:
            raise UsageError(f"`[auth.jwt.roles]` has {each!r}. Roles are: {', '.join(ROLES)}.")


def check_url(url: str, what: str) -> None:
    """Refuse an address that is neither https nor on this machine.

    Raises:
        UsageError: it is such an address, or none.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise wrong(f"`{what}`", url, "Give an address, as https://login.example.com.") from None
    is_plain = parts.username is None and not parts.query and not parts.fragment
    if not host or not is_plain or parts.scheme not in ("https", "http"):
        raise wrong(f"`{what}`", url, "Give an address, as https://login.example.com.")
    if parts.scheme == "http" and not is_loopback(host):
        raise wrong(f"`{what}`", url, "Use https: over http, anyone could give us other keys.")


def is_loopback(host: str) -> bool:
    """Whether a host name is this machine by its form."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class ClaimRefused(Exception):
    """A claim is missing or invalid; the message has no value of it."""


def check_times(claims: Mapping[str, Any], now: datetime, skew: float) -> None:
    """Check `exp`, which is required, and `nbf` and `iat`.

    Raises:
        ClaimRefused: the token is not valid now, or a time is not a number.
    """
    instant = now.timestamp()
    if _number(claims, "exp") + skew <= instant:
        raise ClaimRefused("it has expired")
    for name in ("nbf", "iat"):
        if name in claims and _number(claims, name) - skew > instant:
            raise ClaimRefused(f"its `{name}` is in the future")


def _number(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise ClaimRefused(f"its `{name}` is missing or not a number")


def principal_of_claims(claims: Mapping[str, Any], settings: JwtSettings) -> Principal:
    """The principal that verified claims name.

    Raises:
        ClaimRefused: the tenant or the user is missing or invalid.
    """
    tenant = settings.app_id or _name(claims, settings.tenant)
    role = _role(claims, settings)
    scopes: list[Scope] | None = None
    if settings.scopes:
        named = _words(_find(claims, settings.scopes))
        scopes = [each for each in SCOPES if each in named and each in ROLE_SCOPES[role]]
    return Principal(tenant, _name(claims, settings.user), role, scopes)


def _role(claims: Mapping[str, Any], settings: JwtSettings) -> Role:
    """The highest role that the claim's values stand for; `user` if there is none."""
    if not settings.role:
        return "user"
    known = settings.roles or {each: each for each in ROLES}
    named = {known[each] for each in _words(_find(claims, settings.role)) if each in known}
    held: list[Role] = [each for each in ROLES if each in named]
    return held[-1] if held else "user"


def _find(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by a path with dots."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for step in name.split("."):
        value = cast(Mapping[str, Any], value).get(step) if isinstance(value, Mapping) else None
    return value


def _name(claims: Mapping[str, Any], claim: str) -> str:
    try:
        return as_label(_find(claims, claim), f"Claim {claim!r}")
    except UsageError:
        raise ClaimRefused(f"its claim {preview(claim)} is missing or not a name") from None


def _words(value: Any) -> set[str]:
    """The words of a claim: a list, or a string with spaces."""
    if isinstance(value, str):
        return {value, *value.split()}
    if isinstance(value, list):
        return {each for each in cast(Iterable[Any], value) if isinstance(each, str)}
    return set()
