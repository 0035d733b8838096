"""The ASGI app: routes, gate, OpenAPI document."""

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.middleware.cors import CORSMiddleware

from turnloom.app import Loom
from turnloom.server import problems
from turnloom.server.context import Served, bearer
from turnloom.server.gate import Admission, Authenticate, RequestGate
from turnloom.server.limits import Limits
from turnloom.server.replies import replies
from turnloom.server.routes import (
    access,
    boards,
    collections,
    events,
    explanations,
    feedback,
    guards,
    health,
    jobs,
    pages,
    questions,
    reference,
    runs,
    schedules,
    workflows,
)

PREFIX = "/api/v1"

_ROUTERS = (
    workflows,
    runs,
    events,
    questions,
    explanations,
    boards,
    collections,
    guards,
    jobs,
    feedback,
    schedules,
    access,
)


def asgi(
    app: Loom,
    *,
    authenticate: Authenticate | None = None,
    limits: Limits | None = None,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
) -> FastAPI:
    """An ASGI app that serves a Loom, to be run by itself or mounted in another one.

    Callers have API keys, or tokens of the identity provider that `turnloom.toml` names; or
    `authenticate` finds out who they are. While there are none of these, it answers this machine
    only, as developer `local`. `hosts` are the names that it has on the network, and `origins` the
    web pages of others that may use it. You close the Loom, which ends streams and jobs.
    """
    served = Served(app, limits or Limits())

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncGenerator[None]:
        yield
        await served.stop()

    api = FastAPI(
        title="Turnloom",
        version=metadata.version("turnloom"),
        description="Runs of agent workflows: start, follow, answer, explain.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
        lifespan=lifespan,
    )
    api.state.served = served
    problems.install(api)
    for each in _ROUTERS:
        api.include_router(each.router, prefix=PREFIX, dependencies=[Depends(bearer)])
    api.include_router(health.router)
    api.include_router(reference.router)
    api.router.default = pages.Pages()
    api.openapi = lambda: replies.document(api)
    if origins:
        api.add_middleware(
            CORSMiddleware,
            allow_origins=[*origins],
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["Location", "Retry-After"],
        )
    api.add_middleware(
        RequestGate,
        limits=served.limits,
        admission=Admission(app, authenticate),
        hosts=hosts,
        origins=origins,
    )
    return api


def openapi() -> dict[str, Any]:
    """The OpenAPI document of the server."""
    return asgi(Loom(store="memory")).openapi()
