"""An identity provider on this machine: it publishes keys, and signs tokens."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm


class Provider:
    """Discovery and keys by path, which tests may change; `requests` has what was asked for."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.requests: list[str] = []
        self.private: dict[str, Any] = {}
        self.documents: dict[str, Any] = {
            "/.well-known/openid-configuration": {"issuer": issuer, "jwks_uri": f"{issuer}/keys"},
            "/keys": {"keys": []},
        }
        # Sent before the body ends: a status line of its own, or bytes without an end.
        self.raw: dict[str, bytes] = {}
        self.stalls = False

    def add(self, kid: str, key: Any = None, **also: Any) -> None:
        """Publish a key."""
        key = key or RSA
        self.private[kid] = key
        family = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
        public = json.loads(family.to_jwk(key.public_key()))
        self.documents["/keys"]["keys"].append({**public, "kid": kid, "use": "sig", **also})

    def withdraw(self, kid: str) -> None:
        """Publish a key no more."""
        keys = self.documents["/keys"]
        keys["keys"] = [each for each in keys["keys"] if each["kid"] != kid]

    def token(
        self, now: datetime, *, kid: str | None = "one", algorithm: str = "RS256", **claims: Any
    ) -> str:
        """A token that is valid for an hour, with changed claims; None leaves a claim out."""
        given = {
            "iss": self.issuer,
            "aud": "turnloom",
            "sub": "ann",
            "org": "acme",
            "exp": int((now + timedelta(hours=1)).timestamp()),
            **claims,
        }
        said = {name: value for name, value in given.items() if value is not None}
        key = self.private[kid or "one"]
        return jwt.encode(said, key, algorithm, headers={"kid": kid} if kid else None)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split()[1].decode()
            self.requests.append(path)
            if self.stalls:
                await reader.read()
                return
            body = json.dumps(self.documents.get(path)).encode()
            status = b"200 OK" if path in self.documents else b"404 Not Found"
            said = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)
            writer.write(self.raw.get(path, said))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


RSA = rsa.generate_private_key(65537, 2048)
SMALL_RSA = rsa.generate_private_key(65537, 1024)
EC = ec.generate_private_key(ec.SECP256R1())


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider]:
    """A provider that listens on a free port."""
    found: list[Provider] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await found[0].answer(reader, writer)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    found.append(Provider(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    try:
        yield found[0]
    finally:
        server.close()
        await server.wait_closed()
