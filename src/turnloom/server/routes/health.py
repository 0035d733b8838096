"""Whether the server is alive, and ready."""

from collections.abc import Mapping

import msgspec
from fastapi import APIRouter, Response

from turnloom.server.context import State
from turnloom.server.replies import replies, reply

router = APIRouter(prefix="/health", tags=["health"])


class Health(msgspec.Struct, frozen=True):
    """Whether the server works; each check is `ok`, or says what is wrong."""

    status: str
    checks: Mapping[str, str] = {}


@router.get("/live", operation_id="live", summary="Whether it runs", **replies.of(Health))
async def live() -> Response:
    """The process answers."""
    return reply(Health("ok"))


@router.get("/ready", operation_id="ready", summary="Whether it can work", **replies.of(Health))
async def ready(state: State) -> Response:
    """The store can be reached and has the schema of this release, and runs are driven."""
    checks = await state.loom.serving.health()
    is_well = all(each == "ok" for each in checks.values())
    return reply(Health("ok" if is_well else "failing", checks), 200 if is_well else 503)
