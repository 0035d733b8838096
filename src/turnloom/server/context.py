"""What routes work with: who asks, the app as they see it, and the state of the server."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Query, Request
from fastapi.security import HTTPBearer

from turnloom.app import Loom
from turnloom.app.view import LoomView
from turnloom.runs.principal import Principal
from turnloom.server.gate import Identity
from turnloom.server.jobs import Jobs
from turnloom.server.limits import Limits, OpenStreams, RateLimit
from turnloom.server.streams import EventStream, StreamFeed, Streams

log = logging.getLogger("turnloom.server")


@dataclass(slots=True)
class Served:
    """The state of a server: its app, its limits, its open streams and its jobs."""

    loom: Loom
    limits: Limits
    streams: Streams = field(default_factory=Streams)
    jobs: Jobs = field(init=False)
    starts: RateLimit = field(init=False)
    _is_warned: bool = field(default=False, init=False)
    open_streams: OpenStreams = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.loom)
        self.starts = RateLimit(self.limits.starts_per_minute, "starts")
        self.open_streams = OpenStreams(self.limits.streams)
        self.loom.serving.closing.append(self.stop)

    async def stop(self) -> None:
        """End the streams, and interrupt the jobs."""
        self.streams.stop()
        await self.jobs.stop()

    def view(self, identity: Identity) -> LoomView:
        """The app as the one who asks sees it; the first time, log if no audit trail is kept."""
        if not self._is_warned:
            self._is_warned = True
            if not self.loom.serving.has_audit:
                log.warning("no audit trail is kept: the store lacks the port `audit`")
        return self.loom.as_principal(identity.principal, via=identity.via)


def served_of(request: Request) -> Served:
    """The server of a request."""
    return cast(Served, request.app.state.served)


def identity_of(request: Request) -> Identity:
    """Who makes a request, as the gate found out."""
    return cast(Identity, request.state.identity)


def principal_of(request: Request) -> Principal:
    """The principal of a request."""
    return identity_of(request).principal


def view_of(request: Request) -> LoomView:
    """The app as the principal of a request sees it."""
    return served_of(request).view(identity_of(request))


# How credentials are sent, for the OpenAPI document; the gate has checked them.
bearer = HTTPBearer(auto_error=False, description="An API key, or a JWT.")

View = Annotated[LoomView, Depends(view_of)]
State = Annotated[Served, Depends(served_of)]
Asking = Annotated[Identity, Depends(identity_of)]
Limit = Annotated[int, Query(ge=1, le=1000, description="The most items of a page.")]


def open_stream(state: Served, asking: Identity, feeds: Sequence[StreamFeed]) -> EventStream:
    """A stream for the one who asks.

    Raises:
        Refusal: they have as many as they may.
    """
    state.open_streams.check(asking.key)
    counting = state.open_streams.one(asking.key)
    return EventStream(feeds, limits=state.limits, streams=state.streams, counting=counting)
