"""Who may do what: the caller, API keys, and the audit trail."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from turnloom.access.spec import ApiKey, AuditEntry
from turnloom.runs.principal import Role, Scope
from turnloom.server.context import Limit, View
from turnloom.server.problems import Refusal
from turnloom.server.replies import replies, reply
from turnloom.server.routes.runs import Body

router = APIRouter(tags=["access"])


class Me(msgspec.Struct, frozen=True):
    """Who you are to this server, and what you may do."""

    tenant: str
    user: str
    role: Literal["user", "developer", "admin"]
    scopes: list[str]


class KeyPage(msgspec.Struct, frozen=True):
    """API keys, the latest first. `next` is the cursor of the next page."""

    items: list[ApiKey]
    next: str | None = None


class NewKey(msgspec.Struct, frozen=True):
    """A key that was made. Its `token` is shown this once."""

    key: ApiKey
    token: str


class AuditPage(msgspec.Struct, frozen=True):
    """Entries of the audit trail, the latest first. `next` is the cursor of the next page."""

    items: list[AuditEntry]
    next: int | None = None


class KeyBody(Body):
    """Whose key to make, and what it allows."""

    user: str = Field(max_length=200)
    role: Role = "user"
    scopes: list[Scope] | None = None
    name: str | None = Field(None, max_length=200)
    expires: datetime | None = None


@router.get("/me", operation_id="read_me", summary="Who you are", **replies.of(Me))
async def read_me(view: View) -> Response:
    """The principal of your credential."""
    who = view.principal
    return reply(Me(who.app_id, who.user_id, who.role, sorted(who.scopes or ())))


@router.get("/keys", operation_id="list_keys", summary="List keys", **replies.of(KeyPage))
async def list_keys(
    view: View,
    limit: Limit = 50,
    cursor: Annotated[str | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """The API keys of the tenant, without their secrets."""
    found = await view.keys.list(limit, before=cursor)
    return reply(KeyPage(found, found[-1].id if len(found) == limit else None))


@router.post("/keys", operation_id="create_key", summary="Make a key", **replies.of(NewKey, 201))
async def create_key(view: View, body: KeyBody) -> Response:
    """Make an API key; its token is shown this once."""
    if body.expires is not None and body.expires.tzinfo is None:
        raise Refusal(422, "`expires` has no time zone. Write one, as in 2026-12-31T00:00:00Z.")
    made = await view.keys.create(
        body.user, role=body.role, scopes=body.scopes, name=body.name, expires=body.expires
    )
    return reply(NewKey(made.key, made.token), 201, {"Cache-Control": "no-store"})


@router.post(
    "/keys/{id}/revoke", operation_id="revoke_key", summary="Revoke a key", **replies.of(ApiKey)
)
async def revoke_key(
    id: Annotated[str, Path(description="The id of a key.", max_length=200)], view: View
) -> Response:
    """Revoke an API key for good."""
    return reply(await view.keys.revoke(id))


@router.get("/audit", operation_id="list_audit", summary="The audit trail", **replies.of(AuditPage))
async def list_audit(
    view: View,
    limit: Limit = 50,
    cursor: Annotated[
        int | None, Query(ge=1, le=2**53, description="`next` of the page before.")
    ] = None,
    who: Annotated[str | None, Query(max_length=1000, description="Who did it.")] = None,
    action: Annotated[str | None, Query(max_length=100, description="What was done.")] = None,
    since: Annotated[str | None, Query(max_length=100, description="Since an age as `1h`.")] = None,
) -> Response:
    """Who did what, when, and what came of it."""
    found = await view.audit.list(limit, before=cursor, who=who, action=action, since=since)
    return reply(AuditPage(found, found[-1].position if len(found) == limit else None))
