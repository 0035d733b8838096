"""The identity provider that `turnloom.toml` names."""

from collections.abc import Mapping
from typing import Any, cast

from turnloom.access.logic.claims import as_jwt_settings
from turnloom.access.ports import TokenVerifier
from turnloom.errors import UsageError
from turnloom.log.ports import Clock
from turnloom.wiring.adapters import adapter
from turnloom.wiring.settings import table


def open_tokens(clock: Clock) -> TokenVerifier | None:
    """The verifier of tokens that `[auth.jwt]` describes; None without it. It connects on first
    use.

    Raises:
        UsageError: `[auth]` is invalid, or a package is missing.
    """
    given = table("auth")
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise UsageError("`auth` in turnloom.toml must be a table. Write `[auth.jwt]`.")
    declared = cast(Mapping[str, Any], given)
    for name in declared:
        if name != "jwt":
            raise UsageError(f"Unknown setting 'auth.{name}'. Known: auth.jwt.")
    if "jwt" not in declared:
        return None
    return adapter("jwt").JwtVerifier(as_jwt_settings(declared["jwt"]), clock)
