"""Small JSON documents of an identity provider, over https."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import ip_address
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
from anyio import CapacityLimiter, to_thread

from turnloom.access.logic.claims import is_loopback

# Seconds for one document, and for one step of reading it.
TIMEOUT = 5.0
# The most bytes of a document.
MOST = 256 * 1024
CHUNK = 16 * 1024


class FetchFailed(Exception):
    """A document cannot be fetched; the message says why, without its content."""


class Fetcher:
    """Fetches documents of one host. Redirects are not followed, proxies are not used, and
    addresses of private networks are refused unless allowed."""

    def __init__(
        self,
        *,
        allow_private: bool,
        context: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT,
        resolve: Callable[..., Sequence[Any]] = socket.getaddrinfo,
    ) -> None:
        self._allow_private = allow_private
        self._context = context
        self._timeout = timeout
        self._resolve = resolve
        self._limiter: CapacityLimiter | None = None

    async def fetch(self, url: str) -> dict[str, Any]:
        """The JSON object at an address.

        Raises:
            FetchFailed: there is none, it is too large, or it does not come in time.
        """
        if self._limiter is None:
            self._limiter = CapacityLimiter(2)
        stop = threading.Event()
        try:
            with anyio.fail_after(self._timeout):
                body = await to_thread.run_sync(
                    self._read, url, stop, abandon_on_cancel=True, limiter=self._limiter
                )
        except TimeoutError:
            raise FetchFailed("no answer in time") from None
        finally:
            stop.set()
        return _object(body)

    def _read(self, url: str, stop: threading.Event) -> bytes:
        parts = urlsplit(url)
        host, is_https = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if is_https else 80)
        connection = _Connection(host, port, self._address(host, port))
        if is_https:
            connection.context = self._context or ssl.create_default_context()
        try:
            path = parts.path or "/"
            connection.request("GET", path, headers={"Accept": "application/json"})
            with closing(connection.getresponse()) as response:
                return _read_body(response, stop)
        except (OSError, HTTPException) as error:
            raise FetchFailed(type(error).__name__) from error
        finally:
            connection.close()

    def _address(self, host: str, port: int) -> str:
        """The address to connect to. It is looked up once, so that a second lookup cannot give
        another one after the check."""
        try:
            found = self._resolve(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise FetchFailed(f"the host is not found ({type(error).__name__})") from error
        addresses = [str(each[4][0]) for each in found]
        for each in addresses:
            if not self._is_allowed(host, each):
                raise FetchFailed("its address is not public; `private = true` allows that")
        return addresses[0]

    def _is_allowed(self, host: str, address: str) -> bool:
        ip = ip_address(address.partition("%")[0])
        if is_loopback(host):
            return ip.is_loopback
        return self._allow_private or ip.is_global


def _read_body(response: HTTPResponse, stop: threading.Event) -> bytes:
    if response.status != 200:
        raise FetchFailed(f"status {response.status}")
    body = b""
    while chunk := response.read1(CHUNK):
        body += chunk
        if len(body) > MOST:
            raise FetchFailed(f"more than {MOST} bytes")
        if stop.is_set():
            raise FetchFailed("no answer in time")
    return body


class _Connection(HTTPConnection):
    """A connection to an address that was checked, under the name of its host."""

    context: ssl.SSLContext | None = None

    def __init__(self, host: str, port: int, address: str) -> None:
        super().__init__(host, port, timeout=TIMEOUT)
        self._address = address

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), TIMEOUT)
        if self.context is not None:
            self.sock = self.context.wrap_socket(self.sock, server_hostname=self.host)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FetchFailed("not JSON") from error
    if not isinstance(found, dict):
        raise FetchFailed("not a JSON object")
    return cast(dict[str, Any], found)
