"""The gate before the API: host, origin, identity, limits of requests, security headers."""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnloom.log.spec import LOCAL
from turnloom.runs.principal import Principal
from turnloom.server.limits import Limits, RateLimit, is_deeper
from turnloom.server.problems import HEADERS, Refusal, respond

# What the gate guards; everything else is public.
API = "/api/"

# Names of this machine that a browser can only mean this machine by.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

# Headers that a proxy adds.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request: a principal, and the key that its limits are counted by."""

    principal: Principal
    key: str


class Authenticate(Protocol):
    """Finds out who makes a request."""

    async def __call__(self, headers: Headers) -> Identity | None:
        """The caller of a request with these headers; None without valid credentials."""
        ...


# The caller where no authentication is set up, from this machine only.
NEAR = Identity(Principal(LOCAL, "local", "developer"), "local")


class RequestGate:
    """Lets requests through to the API that may come in: others are refused with a problem.

    Without `authenticate`, only requests from this machine, for this machine, come in. `hosts` are
    the names that the server has, and `origins` the web pages of others that may use it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        authenticate: Authenticate | None = None,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
    ) -> None:
        self._app = app
        self._limits = limits
        self._authenticate = authenticate
        self._hosts = frozenset(name.lower() for name in hosts)
        self._origins = frozenset(origins)
        self._requests = RateLimit(limits.requests_per_minute, "requests")
        self._failures = RateLimit(limits.failures_per_minute, "failed logins")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a socket is closed unopened
            await send({"type": "websocket.close", "code": 1003})
            return
        try:
            self._check_host(scope)
            if not scope["path"].startswith(API):
                await self._app(scope, receive, _guarded(send))
                return
            if scope["method"] != "OPTIONS" or not self._origins:
                await self._admit(scope)
            body = await self._body(scope, receive)
        except Refusal as refusal:
            response = respond(refusal.problem, refusal.headers)
            await response(scope, receive, _guarded(send))
            return
        await self._app(scope, body, _guarded(send))

    def _check_host(self, scope: Scope) -> None:
        """Refuse a name that is not this server's: a page of another site may have it point here.

        Raises:
            Refusal: the name is not known.
        """
        known = self._hosts if self._authenticate else self._hosts | LOOPBACK
        given = Headers(scope=scope).getlist("host")
        if not known:
            return
        if len(given) != 1 or host_of(given[0]) not in known:
            raise Refusal(421, "This server does not have the name that `Host` says.")

    async def _admit(self, scope: Scope) -> None:
        """Find out who asks, and count the request.

        Raises:
            Refusal: it comes from another site, has no valid credentials, or is one too many.
        """
        headers = Headers(scope=scope)
        self._check_origin(scope, headers)
        caller = await self._caller(scope, headers)
        self._requests.take(caller.key)
        scope.setdefault("state", {})["identity"] = caller

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            own = headers.get("host", "")
            if urlsplit(origin).netloc.lower() != own.lower():
                raise Refusal(403, "Pages of this origin may not use the server.")
        elif scope["method"] not in _SAFE and headers.get("sec-fetch-site") == "cross-site":
            if origin is None:
                raise Refusal(403, "Other sites may not make changes.")

    async def _caller(self, scope: Scope, headers: Headers) -> Identity:
        if self._authenticate is None:
            if not _is_near(scope, headers):
                raise Refusal(
                    403,
                    "Without keys, this server answers this machine only. Make a key: "
                    "`turnloom keys create`.",
                    "TURNLOOM-FORBIDDEN",
                )
            return NEAR
        caller = await self._authenticate(headers)
        if caller is None:
            self._failures.take(str((scope.get("client") or ("",))[0]))
            raise Refusal(
                401,
                "Give a valid key: `Authorization: Bearer …`.",
                "TURNLOOM-UNAUTHENTICATED",
                {"WWW-Authenticate": "Bearer"},
            )
        return caller

    async def _body(self, scope: Scope, receive: Receive) -> Receive:
        """What the API receives: a body that was read whole, and is not too large or too deep.

        Raises:
            Refusal: it is, or does not arrive.
        """
        if scope["method"] in _SAFE:
            return receive
        headers, most = Headers(scope=scope), self._limits.body
        said = headers.get("content-length", "")
        if said.isdecimal() and len(said) < 20 and int(said) > most or len(said) >= 20:
            raise _too_large(most)
        pieces: list[bytes] = []
        size, more = 0, True
        with anyio.move_on_after(self._limits.body_seconds) as waiting:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return _replay(message, receive)
                pieces.append(message.get("body", b""))
                size, more = size + len(pieces[-1]), message.get("more_body", False)
                if size > most:
                    raise _too_large(most)
        if waiting.cancelled_caught:
            raise Refusal(408, "The request did not arrive in time.", headers=_CLOSE)
        body = b"".join(pieces)
        if is_deeper(body, self._limits.depth):
            raise Refusal(413, f"JSON may be nested {self._limits.depth} deep.", "TURNLOOM-LIMIT")
        return _replay({"type": "http.request", "body": body, "more_body": False}, receive)


_CLOSE = {"Connection": "close"}


def _too_large(most: int) -> Refusal:
    return Refusal(413, f"A request may have {most} bytes.", "TURNLOOM-LIMIT", _CLOSE)


def _replay(first: Message, receive: Receive) -> Receive:
    """Receive a message that was received already, then what follows."""
    messages: list[Message] = [first]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


def _guarded(send: Send) -> Send:
    """Send responses with security headers, unless they have their own."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


def host_of(header: str) -> str:
    """The name in a `Host` header, without its port."""
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_near(scope: Scope, headers: Headers) -> bool:
    """Whether a request comes from this machine, and not through a proxy on it."""
    client = scope.get("client")
    is_here = client is not None and is_loopback(str(client[0]))
    return is_here and not any(name in headers for name in _FORWARDED)
