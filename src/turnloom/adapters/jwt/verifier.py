"""Verification of tokens."""

import logging
import ssl
from typing import Any

import jwt
from jwt import PyJWTError

from turnloom.access.logic.claims import ClaimRefused, check_times, principal_of_claims
from turnloom.access.spec import MOST_CREDENTIAL, MOST_NAME, JwtSettings
from turnloom.adapters.jwt.fetching import Fetcher
from turnloom.adapters.jwt.keys import SigningKeys
from turnloom.errors import UsageError
from turnloom.log.ports import Clock
from turnloom.runs.principal import Principal

_log = logging.getLogger("turnloom.access")


class JwtVerifier:
    """Verifies tokens of one issuer with its published keys. `context` replaces the certificates
    that the system trusts."""

    def __init__(
        self, settings: JwtSettings, clock: Clock, *, context: ssl.SSLContext | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        fetcher = Fetcher(allow_private=settings.private, context=context)
        self._keys = SigningKeys(settings, fetcher, clock)

    async def verify(self, token: str) -> Principal | None:
        """The principal of a valid token; None for any other token."""
        try:
            return principal_of_claims(await self._claims(token), self._settings)
        except PyJWTError as error:
            _log.info("A token is refused: %s.", type(error).__name__)
        except (ClaimRefused, UsageError) as error:
            _log.info("A token is refused: %s.", error)
        return None

    async def aclose(self) -> None:
        """Do nothing: no connection stays open."""

    async def _claims(self, token: str) -> dict[str, Any]:
        """The claims of a token, once its signature, issuer, audience and times are checked."""
        if len(token) > MOST_CREDENTIAL:
            raise ClaimRefused("it is too long")
        header = jwt.get_unverified_header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if algorithm not in self._settings.algorithms:
            raise ClaimRefused("its algorithm is not allowed")
        if kid is not None and (not isinstance(kid, str) or len(kid) > MOST_NAME):
            raise ClaimRefused("its key id is invalid")
        key = await self._keys.find(kid, algorithm)
        if key is None:
            raise ClaimRefused("its key is unknown")
        claims = jwt.decode(
            token,
            key.key,
            algorithms=[algorithm],
            audience=[*self._settings.audience],
            issuer=self._settings.issuer,
            # Times are checked against the app's clock.
            options={
                "require": ["exp", "iss", "aud"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
        check_times(claims, self._clock.now(), self._settings.skew)
        return claims
