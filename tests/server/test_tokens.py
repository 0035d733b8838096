"""Tokens of an identity provider whose keys change, through a server that runs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.access.provider import EC, RSA, Provider, provider
from tests.access.test_jwt import forged, hs256
from tests.support.serving import ServerProcess, call, server_process

pytestmark = pytest.mark.doors

START = datetime(2026, 1, 1, tzinfo=UTC)

# An app whose clock stands still, as many seconds after `START` as a file says.
APP = """
from datetime import UTC, datetime, timedelta
from pathlib import Path
from turnloom import Loom

class FileClock:
    def now(self):
        seconds = float(Path("seconds").read_text())
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)

app = Loom(store="memory", clock=FileClock())
"""


class Visitor:
    """Shows tokens of a provider to a server, and moves the clock of both."""

    def __init__(self, server: ServerProcess, idp: Provider) -> None:
        self.idp = idp
        self.now = START
        self._server = server

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        after = self._server.folder / "seconds.new"
        after.write_text(str((self.now - START).total_seconds()))
        after.rename(self._server.folder / "seconds")

    async def shows(self, token: str) -> int:
        """The status of a request with a token."""
        headers = {"Authorization": f"Bearer {token}"}
        return (await call(self._server, "GET", "/me", headers=headers))[0]

    async def has(self, kid: str = "one", **claims: Any) -> int:
        """The status of a request with a token of a key."""
        algorithm = "ES256" if self.idp.private[kid] is EC else "RS256"
        return await self.shows(self.idp.token(self.now, kid=kid, algorithm=algorithm, **claims))

    @property
    def fetches(self) -> int:
        """How often the keys were fetched."""
        return self.idp.requests.count("/keys")


@asynccontextmanager
async def visited(folder: Path) -> AsyncGenerator[Visitor]:
    """A server that accepts tokens of a provider, which has the key `one`."""
    async with provider() as idp, server_process(folder) as server:
        idp.add("one")
        (folder / "turnloom.toml").write_text(
            f'[auth.jwt]\nissuer = "{idp.issuer}"\naudience = "turnloom"\ntenant = "org"\n'
            "[server]\nfailures_per_minute = 100000\nrequests_per_minute = 100000\n"
        )
        (folder / "clocked.py").write_text(APP)
        visitor = Visitor(server, idp)
        visitor.advance(0)
        await server.start(app="clocked:app")
        yield visitor


async def test_keys_rotate_while_the_server_runs(tmp_path: Path) -> None:
    async with visited(tmp_path) as visitor:
        assert await visitor.has("one") == 200
        visitor.idp.add("two", EC)
        assert await visitor.has("two") == 200  # at once, although keys were just fetched
        visitor.idp.withdraw("one")
        assert await visitor.has("one") == 200  # it is kept for some minutes
        visitor.advance(601)
        assert await visitor.has("one") == 401
        assert await visitor.has("two") == 200
        visitor.idp.add("three")
        visitor.idp.withdraw("two")
        assert await visitor.has("three") == 200
        assert await visitor.has("two") == 401  # forgotten with the fetch for `three`
        visitor.idp.documents.clear()
        visitor.advance(3600)
        assert await visitor.has("three") == 200  # its last keys hold while the provider is away


async def test_invented_key_ids_cause_few_fetches(tmp_path: Path) -> None:
    async with visited(tmp_path) as visitor:
        assert await visitor.has("one") == 200
        visitor.idp.private |= {f"k{n}": RSA for n in range(200)}
        statuses = await asyncio.gather(*(visitor.has(f"k{n}") for n in range(200)))
        assert set(statuses) == {401} and visitor.fetches <= 3
        assert await visitor.has("one") == 200
        before = visitor.fetches
        for _ in range(4):
            visitor.advance(15)
            statuses = [await visitor.has(f"k{n}") for n in range(20)]
            assert set(statuses) == {401}
        assert visitor.fetches - before == 2  # one in half a minute
        visitor.idp.add("two", EC)
        visitor.advance(30)
        assert await visitor.has("two") == 200


async def test_tokens_that_are_not_valid_here_and_now(tmp_path: Path) -> None:
    async with visited(tmp_path) as visitor:
        idp, now = visitor.idp, int(visitor.now.timestamp())
        good = idp.token(visitor.now)
        assert await visitor.shows(good) == 200
        for claims in (
            {"exp": now - 61},
            {"exp": None},
            {"nbf": now + 61},
            {"iat": now + 61},
            {"aud": "others"},
            {"aud": None},
            {"iss": "https://evil.test"},
            {"iss": None},
            {"org": None},
        ):
            assert await visitor.has(**claims) == 401, claims
        claims = jwt.decode(good, options={"verify_signature": False})
        public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        head, body, signature = good.split(".")
        for token in (
            forged({"alg": "none", "kid": "one"}, claims),
            forged({"alg": "nOnE", "kid": "one"}, claims),
            forged({"alg": "HS256", "kid": "one"}, claims, hs256(public, "one", claims)),
            forged({"alg": "RS256", "kid": "one"}, claims, b"x" * 256),
            f"{head}.{forged({}, {**claims, 'sub': 'root'}).split('.')[1]}.{signature}",
            f"{head}.{body}.",
        ):
            assert await visitor.shows(token) == 401, token[:60]
        assert await visitor.has(nbf=now + 59, iat=now - 5) == 200
        visitor.advance(3659)  # within the skew of clocks
        assert await visitor.shows(good) == 200
        visitor.advance(1)
        assert await visitor.shows(good) == 401
