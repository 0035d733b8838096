"""Limits of requests: how large, how deep, how often, how many at once."""

import re
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

import anyio

from turnloom.errors import UsageError
from turnloom.server.problems import Refusal


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server. Those per minute, and the one of streams, are per key.

    `body` is in bytes, `depth` counts nested arrays and objects, and `body_seconds` is the time
    that a client has to send a body. Of streams: a comment is sent after `ping_seconds` of silence,
    a client that takes `slow_seconds` to take in what is sent is cut off with a reason, and after
    `stalled_seconds` without one. A board is looked at again after `look_seconds` without a signal
    of its store.

    Raises:
        UsageError: one of them is not above 0.
    """

    body: int = 1_048_576
    depth: int = 64
    body_seconds: float = 30.0
    requests_per_minute: int = 1_200
    starts_per_minute: int = 120
    failures_per_minute: int = 60
    streams: int = 100
    runs_per_stream: int = 50
    ping_seconds: float = 15.0
    slow_seconds: float = 10.0
    stalled_seconds: float = 30.0
    look_seconds: float = 2.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise UsageError(f"Limit {name!r} must be above 0, got {getattr(self, name)!r}.")


# The most keys that are remembered; the one used longest ago is forgotten first.
KEYS = 10_000

MINUTE = 60.0


class RateLimit:
    """At most so many per minute and key; what was not used in a minute is not saved up."""

    def __init__(
        self, per_minute: int, what: str, now: Callable[[], float] = anyio.current_time
    ) -> None:
        self._most = float(per_minute)
        self._what = what
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> None:
        """Count one.

        Raises:
            Refusal: there were too many.
        """
        left, now = self._current(key)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > KEYS:
            self._left.popitem(last=False)
        self._check(left)

    def check(self, key: str) -> None:
        """Refuse if there were too many already.

        Raises:
            Refusal: there were.
        """
        if key in self._left:
            left, now = self._current(key)
            self._left[key] = (left, now)
            self._check(left)

    def _current(self, key: str) -> tuple[float, float]:
        """How many are left now."""
        now = self._now()
        left, since = self._left.pop(key, (self._most, now))
        return min(self._most, left + (now - since) * self._most / MINUTE), now

    def _check(self, left: float) -> None:
        if left < 1:
            seconds = ceil((1 - left) * MINUTE / self._most)
            raise Refusal(
                429,
                f"More than {self._most:.0f} {self._what} in a minute. Wait {seconds} s.",
                "TURNLOOM-LIMIT",
                {"Retry-After": str(seconds)},
            )


# Seconds after which a client may open a stream again.
PAUSE = 5


class OpenStreams:
    """Streams that are open, at most so many per key."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    @contextmanager
    def one(self, key: str) -> Generator[None]:
        """Count one while the context is open.

        Raises:
            Refusal: too many are open.
        """
        self.check(key)
        self._open[key] = self._open.get(key, 0) + 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]

    def check(self, key: str) -> None:
        """Refuse a further stream of a key that has as many as it may.

        Raises:
            Refusal: too many are open.
        """
        if self._open.get(key, 0) >= self._most:
            raise Refusal(
                429,
                f"{self._most} streams are open. Close one, or follow several runs in one stream.",
                "TURNLOOM-LIMIT",
                {"Retry-After": str(PAUSE)},
            )


# A string of JSON; one that is not closed reaches to the end, so that the time is linear.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_INNERMOST = re.compile(rb"\[\]|\{\}")
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))


def is_deeper(body: bytes, most: int) -> bool:
    """Whether arrays and objects of JSON are nested more than `most` deep. Of text that is not
    JSON, it may say either, unless it is so deep that a parser would fail."""
    brackets = _STRING.sub(b"", body).translate(None, _OTHERS)
    for _ in range(most):
        before = len(brackets)
        brackets = _INNERMOST.sub(b"", brackets)
        if len(brackets) == before:
            break
    return len(brackets) > (0 if is_balanced(brackets) else most)


def is_balanced(brackets: bytes) -> bool:
    """Whether there are as many closing brackets as opening ones."""
    opening = brackets.count(b"[") + brackets.count(b"{")
    return 2 * opening == len(brackets)
