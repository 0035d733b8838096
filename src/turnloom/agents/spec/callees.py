"""What stands behind tools and hooks: code that can be called, and programs that offer tools."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from turnloom.agents.spec.tools import ToolSchema
from turnloom.kernel.values import Json
from turnloom.variables.spec import Context


class Callee(Protocol):
    """A function of a workflow's code, or a tool of another program.

    `may_ask` says whether it can wait for people: only what is async can.
    """

    schema: ToolSchema
    may_ask: bool

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Json:
        """What it gives for these arguments.

        Raises:
            ValueError: the arguments are not those of its schema.
        """
        ...


class ToolServer(Protocol):
    """A program that offers tools."""

    async def tools(self) -> Sequence[ToolSchema]:
        """What it offers now.

        Raises:
            ToolServerError: it cannot be reached, or does not answer.
        """
        ...

    async def call(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """What a tool of it gives.

        Raises:
            ToolServerError: the tool failed, or the server does not answer.
        """
        ...

    async def aclose(self) -> None:
        """Part from it."""
        ...
