"""What agents need from the world."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from weft.kernel.values import Json


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as a model is told of it; `parameters` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolServer(Protocol):
    """Tools that another program offers."""

    async def tools(self) -> Sequence[ToolSchema]:
        """What it offers now.

        Raises:
            ToolServerError: it does not answer, in time or at all, or not in a way to be used.
            UsageError: the server was closed here.
        """
        ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """What a tool gives.

        Raises:
            ToolServerError: the tool reports an error, or the server gives no answer to be used.
            UsageError: the server was closed here.
        """
        ...

    async def aclose(self) -> None:
        """Let go of the program; calls in flight fail, later ones are refused."""
        ...
