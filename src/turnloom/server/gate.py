"""The gate before the API: host, origin, identity, limits of requests, security headers."""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from turnloom.app import Loom
from turnloom.errors import NotAuthenticated, TurnloomError
from turnloom.log.spec import LOCAL
from turnloom.runs.principal import Principal
from turnloom.server.limits import Limits, RateLimit, is_deeper
from turnloom.server.problems import HEADERS, Refusal, problem_of, respond

# What the gate guards; everything else is public.
API = "/api/"

# Names of this machine that a browser can only mean this machine by.
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")

# Headers that a proxy adds.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who makes a request: a principal, the public name of its credential, and the key that its
    limits are counted by."""

    principal: Principal
    via: str = ""

    @property
    def key(self) -> str:
        """The key that limits are counted by."""
        who = self.principal
        return f"{who.app_id}\0{who.user_id}\0{self.via}"


class Authenticate(Protocol):
    """Finds out who makes a request."""

    async def __call__(self, headers: Headers) -> Identity | None:
        """The identity behind the headers of a request; None without valid credentials."""
        ...


# The identity where no authentication is set up, from this machine only.
NEAR = Identity(Principal(LOCAL, "local", "developer"), "local")


class Admission:
    """Who gets in: those whom `authenticate` knows, or else those with keys and tokens of the app.
    While the app has none, whoever is on this machine."""

    def __init__(self, app: Loom, authenticate: Authenticate | None = None) -> None:
        self._app = app
        self._authenticate = authenticate
        self._is_set_up = authenticate is not None

    async def is_required(self) -> bool:
        """Whether credentials are required: for good, once they are."""
        if not self._is_set_up:
            self._is_set_up = await self._app.auth.is_set_up()
        return self._is_set_up

    async def identify(self, headers: Headers) -> Identity | None:
        """The identity behind the headers of a request; None without valid credentials."""
        if self._authenticate is not None:
            return await self._authenticate(headers)
        try:
            found = await self._app.auth.identify(headers.get("authorization"))
        except NotAuthenticated:
            return None
        return Identity(found.principal, found.name)


class RequestGate:
    """Lets requests through to the API that may come in: others are refused with a problem.

    While no credentials are required, only requests from this machine, for this machine, come in.
    `hosts` are the names that the server has, and `origins` the web pages of others that may use
    it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        admission: Admission,
        hosts: Collection[str] = (),
        origins: Collection[str] = (),
    ) -> None:
        self._app = app
        self._limits = limits
        self._admission = admission
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
            if path_of(scope).startswith(API):
                await self._admit(scope)
                receive = await self._body(scope, receive)
            else:
                self._check_host(scope, self._hosts)
        except Refusal as refusal:
            await respond(refusal.problem, refusal.headers)(scope, receive, send)
        except TurnloomError as error:
            await respond(problem_of(error))(scope, receive, send)
        else:
            await self._app(scope, receive, _guarded(send, scope.get("root_path", "")))

    def _check_host(self, scope: Scope, known: Collection[str]) -> None:
        """Refuse a name that is not this server's: a page of another site may have it point here.

        Raises:
            Refusal: the name is not known.
        """
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
        is_required = await self._admission.is_required()
        self._check_host(scope, self._hosts if is_required else self._hosts | LOOPBACK)
        self._check_origin(scope, headers)
        if scope["method"] == "OPTIONS" and self._origins:
            return  # a browser asks whether it may ask
        identity = await self._identity(scope, headers) if is_required else _near(scope, headers)
        self._requests.take(identity.key)
        scope.setdefault("state", {})["identity"] = identity

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            own = headers.get("host", "")
            if urlsplit(origin).netloc.lower() != own.lower():
                raise Refusal(403, "Pages of this origin may not use the server.")
        elif scope["method"] not in _SAFE and headers.get("sec-fetch-site") == "cross-site":
            if origin is None:
                raise Refusal(403, "Other sites may not make changes.")

    async def _identity(self, scope: Scope, headers: Headers) -> Identity:
        """Who shows these credentials.

        Raises:
            Refusal: they are not valid, or too many were not.
        """
        address = str((scope.get("client") or ("",))[0])
        self._failures.check(address)
        identity = await self._admission.identify(headers)
        if identity is None:
            self._failures.take(address)
            known = NotAuthenticated()
            raise Refusal(401, str(known), known.code, {"WWW-Authenticate": "Bearer"})
        return identity

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


def path_of(scope: Scope) -> str:
    """The path of a request below the place where the app is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def _guarded(send: Send, root: str) -> Send:
    """Send responses with security headers, unless they have their own, and with locations below
    the place where the app is mounted."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            if root and "location" in headers:
                headers["location"] = root + headers["location"]
        await send(message)

    return guarded


def host_of(header: str) -> str:
    """The name in a `Host` header, without its port; empty if it is not a valid one."""
    found = _HOST.fullmatch(header)
    return found[1].strip("[]").lower() if found else ""


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _near(scope: Scope, headers: Headers) -> Identity:
    """The identity of a request from this machine that did not come through a proxy on it.

    Raises:
        Refusal: it comes from elsewhere.
    """
    client = scope.get("client")
    is_here = client is not None and is_loopback(str(client[0]))
    if not is_here or any(name in headers for name in _FORWARDED):
        raise Refusal(
            403,
            "Without keys, this server answers this machine only. Make a key: "
            "`turnloom keys create`.",
            "TURNLOOM-FORBIDDEN",
        )
    return NEAR
