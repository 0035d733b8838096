"""The public keys of an identity provider."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Any, cast
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

from turnloom.access.logic.claims import ALGORITHMS, check_url
from turnloom.access.spec import JwtSettings
from turnloom.adapters.jwt.fetching import Fetcher, FetchFailed
from turnloom.errors import UsageError
from turnloom.log.ports import Clock

# Keys are fetched again after this time; while the provider cannot be reached, the last ones hold
# this long.
FRESH = timedelta(minutes=10)
STALE = timedelta(hours=24)

# So many fetches may follow each other, so that a new key is accepted at once; each comes back
# after this time.
BURST = 3
COOL_DOWN = timedelta(seconds=30)

MOST_KEYS = 100
LEAST_RSA_BITS = 2048

# The type of key of each family of algorithms.
_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}

_log = logging.getLogger("turnloom.access")


class SigningKeys:
    """The keys that a provider publishes, fetched on first use and kept.

    An unknown key id makes it fetch again, at most `BURST` times and then once in half a minute,
    however many tokens come: a flood of invented ids costs the provider nothing.
    """

    def __init__(self, settings: JwtSettings, fetcher: Fetcher, clock: Clock) -> None:
        self._settings = settings
        self._fetcher = fetcher
        self._clock = clock
        self._keys: list[PyJWK] = []
        self._fetched: datetime | None = None
        self._left = float(BURST)
        self._tried: datetime | None = None
        self._fetches = 0
        self._fetching = asyncio.Lock()

    async def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The key of an id for an algorithm; without an id, the only one that fits."""
        found = self._find(kid, algorithm)
        if found is not None and (self._is_younger(FRESH) or self._fetching.locked()):
            return found
        await self._refresh()
        return self._find(kid, algorithm)

    def _find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        fitting = [each for each in self._keys if _fits(each, algorithm)]
        if kid is None:
            return fitting[0] if len(fitting) == 1 else None
        return next((each for each in fitting if each.key_id == kid), None)

    def _is_younger(self, age: timedelta) -> bool:
        return self._fetched is not None and self._clock.now() - self._fetched < age

    async def _refresh(self) -> None:
        """Fetch the keys, unless another call did so meanwhile, or it was tried too often."""
        before = self._fetches
        async with self._fetching:
            now = self._clock.now()
            if self._fetches != before or not self._may_fetch(now):
                return
            self._fetches += 1
            try:
                self._keys = _read_keys(await self._fetcher.fetch(await self._place()))
                self._fetched = now
            except FetchFailed as error:
                _log.warning("The keys of the identity provider cannot be fetched: %s", error)
                if not self._is_younger(STALE):
                    self._keys = []

    def _may_fetch(self, now: datetime) -> bool:
        """Count a fetch, if one is left."""
        if self._tried is not None:
            since = max(now - self._tried, timedelta(0))
            self._left = min(BURST, self._left + since / COOL_DOWN)
        self._tried = now
        if self._left < 1:
            return False
        self._left -= 1
        return True

    async def _place(self) -> str:
        """Where the keys are: as the settings say, or else as the provider's discovery does."""
        if self._settings.jwks:
            return self._settings.jwks
        issuer = self._settings.issuer
        found = await self._fetcher.fetch(issuer.rstrip("/") + "/.well-known/openid-configuration")
        if found.get("issuer") != issuer:
            raise FetchFailed("the discovery document names another issuer")
        place = found.get("jwks_uri")
        if not isinstance(place, str) or urlsplit(place).netloc != urlsplit(issuer).netloc:
            raise FetchFailed("its `jwks_uri` is on another host; set `auth.jwt.jwks` to allow it")
        try:
            check_url(place, "jwks_uri")
        except UsageError:
            raise FetchFailed("its `jwks_uri` is not a plain https address") from None
        return place


def _fits(key: PyJWK, algorithm: str) -> bool:
    return key.key_type == _TYPES[algorithm[:2]] and key.algorithm_name == algorithm


def _read_keys(document: dict[str, Any]) -> list[PyJWK]:
    given: object = document.get("keys")
    if not isinstance(given, list):
        raise FetchFailed("it has no list `keys`")
    entries = cast(list[object], given)
    if len(entries) > MOST_KEYS:
        raise FetchFailed(f"it has more than {MOST_KEYS} keys")
    return [key for each in entries for key in _keys_of(each)]


def _keys_of(entry: object) -> list[PyJWK]:
    """The key in an entry, once for each algorithm that it may be used with; none if it does not
    verify signatures, or is secret or weak."""
    given = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
    if given.get("kty") not in ("RSA", "EC", "OKP") or given.get("use", "sig") != "sig":
        return []
    found: list[PyJWK] = []
    for algorithm in [given["alg"]] if "alg" in given else _algorithms(given):
        if algorithm not in ALGORITHMS:
            continue
        try:
            key = PyJWK({**given, "alg": algorithm}, algorithm)
        except (PyJWTError, ValueError, TypeError):
            continue
        is_weak = isinstance(key.key, RSAPublicKey) and key.key.key_size < LEAST_RSA_BITS
        if not is_weak:
            found.append(key)
    return found


_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}


def _algorithms(given: dict[str, Any]) -> list[str]:
    """The algorithms of a key that names none."""
    if given["kty"] == "RSA":
        return ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
    if given["kty"] == "OKP":
        return ["EdDSA"]
    return [_CURVES[given["crv"]]] if given.get("crv") in _CURVES else []
