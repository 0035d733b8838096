"""What a server offers, page by page, and whether it can be used."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec
from jsonschema import Draft202012Validator, SchemaError
from jsonschema.validators import validator_for
from mcp import ClientSession
from mcp.types import PaginatedRequestParams, Tool

from turnloom.adapters.mcp.faults import Misbehaved
from turnloom.agents.spec import ToolSchema
from turnloom.kernel.values import preview

MOST_PAGES = 100
MOST_TOOLS = 1000
# Bytes of description and schema together: a model reads them at each turn.
MOST_BYTES = 64 * 1024
# What the protocol lets a tool be called.
_NAME = re.compile(r"[A-Za-z0-9._-]{1,128}")


async def fetch(session: ClientSession) -> list[Tool]:
    """All that the server lists.

    Raises:
        Misbehaved: the list has no end.
    """
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        found += page.tools
        cursor = page.next_cursor
        if len(found) > MOST_TOOLS:
            raise Misbehaved(f"it lists more than {MOST_TOOLS} tools")
        if cursor is None:
            return found
    raise Misbehaved(f"its list of tools has more than {MOST_PAGES} pages")


def check(tools: Iterable[Tool]) -> list[ToolSchema]:
    """The tools as models are told of them.

    Raises:
        Misbehaved: a tool is not one that a model can be told of.
    """
    checked: dict[str, ToolSchema] = {}
    for tool in tools:
        if not _NAME.fullmatch(tool.name):
            raise Misbehaved(f"it calls a tool {preview(tool.name)}, which is no name for one")
        if tool.name in checked:
            raise Misbehaved(f"it lists two tools {tool.name!r}")
        description = tool.description or ""
        size = len(description.encode()) + len(msgspec.json.encode(tool.input_schema))
        if size > MOST_BYTES:
            raise Misbehaved(f"tool {tool.name!r} is described in more than {MOST_BYTES} bytes")
        _check_parameters(tool.name, tool.input_schema)
        checked[tool.name] = ToolSchema(tool.name, description, tool.input_schema)
    return list(checked.values())


def _check_parameters(name: str, schema: dict[str, Any]) -> None:
    wrong = f"the parameters of tool {name!r} are no JSON Schema of an object"
    if schema.get("type") != "object" or not isinstance(schema.get("$schema", ""), str):
        raise Misbehaved(wrong)
    try:
        validator_for(schema, Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise Misbehaved(f"{wrong}: {preview(error.message, 200)}") from error
    except (ValueError, RecursionError) as error:
        raise Misbehaved(wrong) from error
