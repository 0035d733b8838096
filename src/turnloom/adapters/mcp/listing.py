"""List the tools of a server, and check that they are usable."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for
from mcp import ClientSession
from mcp.types import PaginatedRequestParams, Tool

from turnloom.adapters.mcp.faults import ProtocolViolation
from turnloom.agents.spec import ToolSchema
from turnloom.kernel.values import preview

MAX_PAGES = 100
MAX_TOOLS = 1000
# The maximum size of a description and its schema: models read them at each turn.
MAX_BYTES = 64 * 1024
# Tool names that the protocol allows.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


async def fetch(session: ClientSession) -> list[Tool]:
    """All tools of the server.

    Raises:
        ProtocolViolation: the list is too long.
    """
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        found += page.tools
        cursor = page.next_cursor
        if len(found) > MAX_TOOLS:
            raise ProtocolViolation(f"it lists more than {MAX_TOOLS} tools")
        if cursor is None:
            return found
    raise ProtocolViolation(f"its list of tools has more than {MAX_PAGES} pages")


def check(tools: Iterable[Tool]) -> list[ToolSchema]:
    """The tools as schemas for models.

    Raises:
        ProtocolViolation: a name, a description or a schema is not allowed.
    """
    checked: dict[str, ToolSchema] = {}
    for tool in tools:
        if not _NAME.fullmatch(tool.name):
            raise ProtocolViolation(f"tool name {preview(tool.name)} is not allowed")
        if tool.name in checked:
            raise ProtocolViolation(f"it lists tool {tool.name!r} twice")
        description = tool.description or ""
        size = len(description.encode()) + len(msgspec.json.encode(tool.input_schema))
        if size > MAX_BYTES:
            raise ProtocolViolation(f"tool {tool.name!r} has a description over {MAX_BYTES} bytes")
        _check_parameters(tool.name, tool.input_schema)
        checked[tool.name] = ToolSchema(tool.name, description, tool.input_schema)
    return list(checked.values())


def _check_parameters(name: str, schema: dict[str, Any]) -> None:
    wrong = f"the parameters of tool {name!r} are not a JSON Schema of an object"
    if schema.get("type") != "object" or not isinstance(schema.get("$schema", ""), str):
        raise ProtocolViolation(wrong)
    try:
        validator_for(schema, Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise ProtocolViolation(f"{wrong}: {preview(error.message, 200)}") from error
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(wrong) from error
