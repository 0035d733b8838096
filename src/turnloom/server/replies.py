"""Responses whose bytes and schemas come from msgspec, the way events and explanations do."""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from fastapi import FastAPI, Response
from fastapi.openapi.utils import get_openapi

from turnloom.events import RunEvent
from turnloom.log.spec import Event
from turnloom.server.problems import MEDIA_TYPE, Problem

REF = "#/components/schemas/{name}"

# What every operation may answer, beside its own statuses.
REFUSALS = {
    400: "The request makes no sense here.",
    401: "The credentials are missing or invalid.",
    403: "The role or the scopes do not allow it, or it comes from another site.",
    404: "It does not exist, or is not yours.",
    408: "The request did not arrive in time.",
    409: "It cannot be done in this state.",
    413: "The request is too large, or nested too deep.",
    421: "The server does not have this name.",
    422: "The request, or the workflow, is invalid; `errors` says where.",
    429: "Too many; `Retry-After` says when to try again.",
    503: "The store does not answer; try again soon.",
}

JSON = "application/json"


class Replies:
    """The types that operations answer with, as the OpenAPI document lists them."""

    def __init__(self) -> None:
        self._types: dict[str, Any] = {}

    def of(self, kind: Any, status: int = 200, says: str = "Done.") -> dict[str, Any]:
        """The settings of an operation that answers with a type, a union of types, or nothing."""
        content: dict[str, Any] = {}
        if kind is not None:
            content = {"content": {JSON: {"schema": self.schema(kind)}}}
        return self.raw(content, status, says)

    def raw(
        self, content: Mapping[str, Any], status: int = 200, says: str = "Done."
    ) -> dict[str, Any]:
        """The settings of an operation whose content is described by hand."""
        refusals = {code: _refusal(said) for code, said in REFUSALS.items()}
        return {
            "status_code": status,
            "response_class": Response,
            "response_model": None,
            "responses": {status: {"description": says, **content}, **refusals},
        }

    def stream(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of an operation that may answer with a stream."""
        made = self.raw({"content": content})
        made["responses"][204] = {"description": "The stream has nothing left to give."}
        return made

    def schema(self, kind: Any) -> dict[str, Any]:
        """A reference to the schema of a type."""
        if kind is RunEvent:
            return {"$ref": REF.format(name="RunEvent")}
        kinds = get_args(kind) or (kind,)
        for each in kinds:
            self._types[each.__name__] = each
        refs = [{"$ref": REF.format(name=each.__name__)} for each in kinds]
        return refs[0] if len(refs) == 1 else {"anyOf": refs}

    def document(self, api: FastAPI) -> dict[str, Any]:
        """The OpenAPI document of an app, with the schemas of these types."""
        if api.openapi_schema is None:
            made = get_openapi(
                title=api.title,
                version=api.version,
                description=api.description,
                routes=api.routes,
                tags=api.openapi_tags,
            )
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            schemas.update(self._schemas())
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            api.openapi_schema = made
        return api.openapi_schema

    def _schemas(self) -> dict[str, Any]:
        events = {_kind(each): each.__args__[1] for each in get_args(RunEvent)}
        types = [*self._types.values(), Problem, *events.values()]
        _, components = msgspec.json.schema_components(types, ref_template=REF)
        return {**components, **_event_schemas(events)}


def _refusal(says: str) -> dict[str, Any]:
    schema = {"$ref": REF.format(name=Problem.__name__)}
    return {"description": says, "content": {MEDIA_TYPE: {"schema": schema}}}


def _kind(event: Any) -> str:
    return get_args(event.__args__[0])[0]


def _event_schemas(kinds: Mapping[str, Any]) -> dict[str, Any]:
    """A schema per kind of event, and their union, told apart by `kind`."""
    _, components = msgspec.json.schema_components([Event], ref_template=REF)
    envelope = next(iter(components.values()))
    made: dict[str, Any] = {}
    for kind, data in kinds.items():
        properties = {
            **envelope["properties"],
            "kind": {"const": kind},
            "data": {"$ref": REF.format(name=data.__name__)},
        }
        title = f"{data.__name__}Event"
        made[title] = {**envelope, "title": title, "properties": properties}
        made[title]["description"] = f"An event of the kind `{kind}`."
    refs = {kind: REF.format(name=f"{data.__name__}Event") for kind, data in kinds.items()}
    made["RunEvent"] = {
        "oneOf": [{"$ref": ref} for ref in refs.values()],
        "discriminator": {"propertyName": "kind", "mapping": refs},
    }
    return made


replies = Replies()


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The response of a value, as JSON."""
    return Response(
        msgspec.json.encode(value), status, media_type=JSON, headers=dict(headers or {})
    )
