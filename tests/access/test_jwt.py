"""Tokens of an identity provider: what is accepted, and what never is."""

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.access.provider import EC, RSA, SMALL_RSA, provider
from turnloom import Loom
from turnloom.access.logic.claims import as_jwt_settings
from turnloom.adapters.jwt import JwtVerifier, fetching
from turnloom.adapters.jwt.fetching import Fetcher, FetchFailed
from turnloom.errors import NotAuthenticated, UsageError
from turnloom.runs.principal import Principal
from turnloom.testing import FakeClock

ANN = Principal("acme", "ann")
SETTINGS: Mapping[str, Any] = {"audience": "turnloom", "tenant": "org"}


def verifier(issuer: str, clock: FakeClock, **settings: Any) -> JwtVerifier:
    return JwtVerifier(as_jwt_settings({"issuer": issuer, **SETTINGS, **settings}), clock)


async def test_a_valid_token_names_its_principal() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        idp.add("two", EC)
        found = verifier(idp.issuer, clock)
        assert await found.verify(idp.token(clock.now())) == ANN
        token = idp.token(clock.now(), kid="two", algorithm="ES256", sub="bob")
        assert await found.verify(token) == Principal("acme", "bob")
        assert idp.requests == ["/.well-known/openid-configuration", "/keys"]


async def test_claims_become_a_principal() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        found = verifier(
            idp.issuer,
            clock,
            tenant="https://acme.test/org",
            user="profile.name",
            role="groups",
            roles={"loom admins": "admin", "devs": "developer"},
            scopes="scope",
        )
        said = {
            "https://acme.test/org": "globex",
            "profile": {"name": "Ann A."},
            "groups": ["devs", "loom admins", "others", 7],
            "scope": "openid keys runs:read",
        }
        token = idp.token(clock.now(), **said)
        assert await found.verify(token) == Principal(
            "globex", "Ann A.", "admin", ["keys", "runs:read"]
        )
        plain = idp.token(clock.now(), **{**said, "groups": "nothing", "scope": None})
        assert await found.verify(plain) == Principal("globex", "Ann A.", "user", [])
        for wrong in (
            {"profile": None},
            {"profile": {"name": ["Ann"]}},
            {"profile": {"name": "a\x1b[2J"}},
            {"profile": {"name": " "}},
            {"https://acme.test/org": ""},
            {"https://acme.test/org": 5},
        ):
            assert await found.verify(idp.token(clock.now(), **{**said, **wrong})) is None


async def test_times() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        found, now = verifier(idp.issuer, clock, skew=30), int(clock.now().timestamp())
        for claims, is_valid in (
            ({"exp": now - 29}, True),
            ({"exp": now - 30}, False),
            ({"exp": None}, False),
            ({"exp": "never"}, False),
            ({"exp": True}, False),
            ({"exp": 1e400}, False),
            ({"nbf": now + 30}, True),
            ({"nbf": now + 31}, False),
            ({"iat": now + 31}, False),
        ):
            token = idp.token(clock.now(), **claims)
            assert (await found.verify(token) is not None) == is_valid, claims
        token = idp.token(clock.now())
        assert await found.verify(token) == ANN
        clock.advance(timedelta(hours=2))  # the same token again
        assert await found.verify(token) is None


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts)


async def test_forged_tokens() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        idp.add("small", SMALL_RSA)
        idp.documents["/keys"]["keys"] += [
            {"kty": "oct", "kid": "secret", "k": "AAAA", "alg": "HS256"},
            {"kty": "RSA", "kid": "broken", "n": "!", "e": 5},
            {"kty": "EC", "kid": "odd", "crv": 7},
            "no key",
        ]
        idp.add("enc", EC, use="enc")
        idp.add("other alg", RSA, alg="RS512")
        found, now = verifier(idp.issuer, clock), clock.now()
        good = idp.token(now)
        claims = jwt.decode(good, options={"verify_signature": False})
        public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        head, body, signature = good.split(".")
        signed = jwt.PyJWT().encode  # tokens that PyJWT would rather not make
        with pytest.warns():
            small = signed(claims, SMALL_RSA, "RS256", headers={"kid": "small"})
        tokens = [
            forged({"alg": "none", "kid": "one"}, claims),
            forged({"alg": "None", "kid": "one"}, claims),
            forged({"alg": "HS256", "kid": "secret"}, claims, b"x" * 32),
            forged({"alg": "HS256", "kid": "one"}, claims, hs256(public, "one", claims)),
            forged({"alg": "RS256", "kid": ["one"]}, claims),
            forged({"alg": ["RS256"], "kid": "one"}, claims),
            forged({"kid": "one"}, claims),
            forged({"alg": "RS256", "kid": "k" * 10_000}, claims),
            f"{head}.{body}.",
            f"{head}.{body}",
            f"{head}.{body[:-2]}.{signature}",
            f"{head}.{forged({}, {**claims, 'sub': 'root'}).split('.')[1]}.{signature}",
            small,
            signed(claims, EC, "ES256", headers={"kid": "enc"}),
            signed(claims, RSA, "RS256", headers={"kid": "other alg"}),
            signed(claims, RSA, "RS512", headers={"kid": "one"}),
            idp.token(now, iss="http://127.0.0.1:1"),
            idp.token(now, aud="others"),
            idp.token(now, aud=None),
            idp.token(now, aud=["others"]),
            ".",
            "a.b.c",
            good + "=" * 20_000,
        ]
        for token in tokens:
            assert await found.verify(token) is None, token[:100]
        assert await found.verify(idp.token(now, aud=["others", "turnloom"])) == ANN


def hs256(key: bytes, kid: str, claims: dict[str, Any]) -> bytes:
    """The signature of a token that takes a public key for a shared secret."""
    text = forged({"alg": "HS256", "kid": kid}, claims).rpartition(".")[0]
    return hmac.digest(key, text.encode(), hashlib.sha256)


async def test_keys_rotate() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        found = verifier(idp.issuer, clock)
        assert await found.verify(idp.token(clock.now())) == ANN
        idp.add("two", EC)
        idp.withdraw("one")
        clock.advance(timedelta(seconds=30))
        fresh = idp.token(clock.now(), kid="two", algorithm="ES256")
        assert await found.verify(fresh) == ANN  # an unknown id makes it look again
        assert await found.verify(idp.token(clock.now())) is None
        clock.advance(timedelta(minutes=10))
        idp.documents["/keys"]["keys"].clear()
        assert await found.verify(idp.token(clock.now(), kid="two", algorithm="ES256")) is None


async def test_a_flood_of_unknown_ids_costs_two_requests() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        found = verifier(idp.issuer, clock)
        assert await found.verify(idp.token(clock.now())) == ANN
        clock.advance(timedelta(seconds=31))
        idp.private |= {f"k{n}": RSA for n in range(50)}
        flood = [idp.token(clock.now(), kid=f"k{n}") for n in range(50)]
        assert set(await asyncio.gather(*map(found.verify, flood))) == {None}
        # The second is for those that came after the first had begun.
        assert idp.requests.count("/keys") == 3
        assert await found.verify(idp.token(clock.now())) == ANN


async def test_a_token_without_an_id_needs_a_single_key() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        found = verifier(idp.issuer, clock)
        token = idp.token(clock.now(), kid=None)
        assert await found.verify(token) == ANN
        idp.add("again", RSA)
        clock.advance(timedelta(minutes=11))
        assert await found.verify(token) is None


async def test_a_provider_that_is_away() -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        found, kept = verifier(idp.issuer, clock), dict(idp.documents)
        assert await found.verify(idp.token(clock.now())) == ANN
        idp.documents.clear()
        clock.advance(timedelta(hours=23))
        assert await found.verify(idp.token(clock.now())) == ANN  # with the keys of yesterday
        clock.advance(timedelta(hours=2))
        assert await found.verify(idp.token(clock.now())) is None
        idp.documents |= kept
        clock.advance(timedelta(seconds=31))
        assert await found.verify(idp.token(clock.now())) == ANN


BAD_DISCOVERY = [
    {"issuer": "https://evil.test", "jwks_uri": "{issuer}/keys"},
    {"issuer": "{issuer}", "jwks_uri": "http://169.254.169.254/latest"},
    {"issuer": "{issuer}", "jwks_uri": "file:///etc/passwd"},
    {"issuer": "{issuer}", "jwks_uri": "{issuer}@evil.test/keys"},
    {"issuer": "{issuer}", "jwks_uri": "{issuer}/keys?next=http://evil.test"},
    {"issuer": "{issuer}"},
    [],
    "keys",
]


@pytest.mark.parametrize("document", BAD_DISCOVERY, ids=range(len(BAD_DISCOVERY)))
async def test_discovery_leads_nowhere_else(document: Any) -> None:
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        text = json.dumps(document).replace("{issuer}", idp.issuer)
        idp.documents["/.well-known/openid-configuration"] = json.loads(text)
        found = verifier(idp.issuer, clock)
        assert await found.verify(idp.token(clock.now())) is None
        assert idp.requests == ["/.well-known/openid-configuration"]


async def test_discovery_leads_to_no_other_host() -> None:
    clock = FakeClock()
    async with provider() as idp, provider() as other:
        for each in (idp, other):
            each.add("one")
        idp.documents["/.well-known/openid-configuration"]["jwks_uri"] = f"{other.issuer}/keys"
        assert await verifier(idp.issuer, clock).verify(idp.token(clock.now())) is None
        assert other.requests == []
        declared = verifier(idp.issuer, clock, jwks=f"{other.issuer}/keys")
        assert await declared.verify(idp.token(clock.now())) == ANN


async def test_documents_are_small_and_in_time() -> None:
    async with provider() as idp:
        fetcher, big = Fetcher(allow_private=False), b'{"keys": []%s}' % (b" " * fetching.MOST)
        idp.raw = {
            "/big": b"HTTP/1.1 200 OK\r\n\r\n" + big,
            "/move": b"HTTP/1.1 302 Found\r\nLocation: /keys\r\n\r\n",
            "/words": b"HTTP/1.1 200 OK\r\n\r\nnot json",
            "/deep": b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
            "/odd": b"\x00\x01\x02\r\n\r\n",
        }
        for path in ("/big", "/move", "/words", "/deep", "/odd", "/none"):
            with pytest.raises(FetchFailed):
                await fetcher.fetch(idp.issuer + path)
        idp.stalls = True
        with pytest.raises(FetchFailed):
            await Fetcher(allow_private=False, timeout=0.1).fetch(idp.issuer + "/keys")
        assert "/keys" in idp.requests


async def test_private_addresses_are_refused() -> None:
    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(2, 1, 6, "", (addresses[host], port))]

    addresses = {"a.test": "10.0.0.1", "b.test": "127.0.0.1", "c.test": "169.254.169.254"}
    for host in addresses:
        with pytest.raises(FetchFailed, match="public"):
            await Fetcher(allow_private=False, resolve=resolve).fetch(f"https://{host}/keys")
    addresses["localhost"] = "93.184.216.34"  # a name of this machine that leads elsewhere
    with pytest.raises(FetchFailed, match="public"):
        await Fetcher(allow_private=True, resolve=resolve).fetch("http://localhost/keys")


WRONG: list[dict[str, Any]] = [
    {},
    {"issuer": "https://a.test"},
    {"issuer": "http://a.test", **SETTINGS},
    {"issuer": "a.test", **SETTINGS},
    {"issuer": "https://u:p@a.test", **SETTINGS},
    {"issuer": "https://a.test:x", **SETTINGS},
    {"issuer": "https://a.test", "audience": "t"},
    {"issuer": "https://a.test", **SETTINGS, "app_id": "acme"},
    {"issuer": "https://a.test", **SETTINGS, "audience": []},
    {"issuer": "https://a.test", **SETTINGS, "audience": ""},
    {"issuer": "https://a.test", **SETTINGS, "algorithms": ["HS256"]},
    {"issuer": "https://a.test", **SETTINGS, "algorithms": ["none"]},
    {"issuer": "https://a.test", **SETTINGS, "algorithms": []},
    {"issuer": "https://a.test", **SETTINGS, "skew": 3600},
    {"issuer": "https://a.test", **SETTINGS, "skew": -1},
    {"issuer": "https://a.test", **SETTINGS, "jwks": "http://keys.test"},
    {"issuer": "https://a.test", **SETTINGS, "role": "groups", "roles": {"a": "root"}},
    {"issuer": "https://a.test", **SETTINGS, "roles": {"a": "admin"}},
    {"issuer": "https://a.test", **SETTINGS, "isuer": "x"},
    {"issuer": 5, **SETTINGS},
]


@pytest.mark.parametrize("given", WRONG, ids=range(len(WRONG)))
def test_settings_are_checked(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        as_jwt_settings(given)


async def test_an_app_reads_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clock = FakeClock()
    async with provider() as idp:
        idp.add("one")
        said = f'issuer = "{idp.issuer}"\naudience = "turnloom"\ntenant = "org"\n'
        write(tmp_path, f"[auth.jwt]\n{said}")
        async with Loom(store="memory", clock=clock) as app:
            assert await app.auth.is_set_up()
            found = await app.auth.identify(f"Bearer {idp.token(clock.now())}")
            assert (found.principal, found.name) == (ANN, "jwt")
            with pytest.raises(NotAuthenticated):
                await app.auth.authenticate(f"Bearer {idp.token(clock.now(), aud='x')}")
        write(tmp_path, "[auth.oidc]\n")
        async with Loom(store="memory") as app:
            with pytest.raises(UsageError):
                await app.auth.is_set_up()


def write(folder: Path, text: str) -> None:
    (folder / "turnloom.toml").write_text(text)
