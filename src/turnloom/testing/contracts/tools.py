"""Contract suite for tool servers, and the tools of a server under test."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio

from turnloom.agents.spec import ToolSchema, ToolServer
from turnloom.errors import ToolServerError, UsageError
from turnloom.kernel.values import Json
from turnloom.testing.contracts.facts import PATIENCE, refused, until


def _tool(name: str, description: str, **parameters: str) -> ToolSchema:
    properties = {each: {"type": kind} for each, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return ToolSchema(name, description, schema)


# The tools of a server under test, in order.
TOOLS = (
    _tool("echo", "Returns its arguments, as an object.", value="object"),
    _tool("say", "Returns a text, as a string.", text="string"),
    _tool("fail", "Reports the reason as an error.", reason="string"),
    _tool("wait", "Never answers."),
    _tool("meet", "Waits for a number of calls, then answers all of them.", guests="integer"),
)
EVERYTHING: dict[str, Any] = {
    "null": None,
    "truth": [True, False],
    "numbers": [-1, 2**53 + 1, 0.1],
    "text": "line\nline \u2028 \U0001f600 'quoted' \"twice\" \\",
    "empty": ["", [], {}],
    "ключ": {"日本": "ü"},
}


class SampleTools:
    """The functions of `TOOLS`, for servers written in Python."""

    def __init__(self) -> None:
        self._present: list[anyio.Event] = []

    async def answer(self, tool: str, arguments: Mapping[str, Json]) -> Json:
        """The result of a tool.

        Raises:
            ToolServerError: the tool reports an error, or is unknown.
        """
        match tool:
            case "echo":
                return dict(arguments)
            case "say":
                return arguments["text"]
            case "wait":
                return await anyio.sleep_forever()
            case "meet":
                return await self._meet(arguments["guests"])
            case "fail":
                raise ToolServerError(arguments["reason"])
            case _:
                raise ToolServerError(f"Unknown tool {tool!r}.")

    async def _meet(self, guests: int) -> str:
        arrived = anyio.Event()
        self._present.append(arrived)
        if len(self._present) == guests:
            for each in self._present:
                each.set()
            self._present.clear()
        await arrived.wait()
        return "met"


class ToolServerContract:
    """The suite for `ToolServer`."""

    def fresh(self) -> AbstractAsyncContextManager[ToolServer]:
        """A server that offers `TOOLS`, which behave like `SampleTools`."""
        raise NotImplementedError

    async def test_tools_are_listed(self) -> None:
        """`tools` lists all tools in order, at every call."""
        async with self.fresh() as server:
            for _ in range(2):
                assert tuple(await server.tools()) == TOOLS

    async def test_values_come_back(self) -> None:
        """Objects and strings are returned unchanged."""
        async with self.fresh() as server:
            given = {"value": EVERYTHING}
            assert await server.call("echo", given) == given
            for text in ("", "Hi.", "line\nline", "走る 😀", '{"a": 1}'):
                assert await server.call("say", {"text": text}) == text

    async def test_a_large_value_comes_back(self) -> None:
        """A string of a megabyte is returned unchanged."""
        async with self.fresh() as server:
            text = "ü" * 500_000
            assert await server.call("say", {"text": text}) == text

    async def test_a_tool_that_fails(self) -> None:
        """The error of a tool has its message, and the server keeps working."""
        async with self.fresh() as server:
            try:
                await server.call("fail", {"reason": "no such luck"})
            except ToolServerError as error:
                assert "no such luck" in str(error)
            else:
                raise AssertionError("Expected ToolServerError, but nothing was raised.")
            assert await server.call("say", {"text": "on"}) == "on"

    async def test_a_tool_that_is_not_there(self) -> None:
        """An unknown tool is an error, and the server keeps working."""
        async with self.fresh() as server:
            with refused(ToolServerError):
                await server.call("nobody", {})
            assert await server.call("say", {"text": "on"}) == "on"

    async def test_calls_at_once(self) -> None:
        """Concurrent calls do not wait for each other, and each gets its own result."""
        async with self.fresh() as server:
            found: dict[int, Json] = {}

            async def ask(number: int) -> None:
                if await server.call("meet", {"guests": 5}) == "met":
                    found[number] = await server.call("say", {"text": str(number)})

            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    for number in range(5):
                        tasks.start_soon(ask, number)
            assert found == {number: str(number) for number in range(5)}

    async def test_a_cancelled_call(self) -> None:
        """Cancelling a call does not affect other calls."""
        async with self.fresh() as server, anyio.create_task_group() as tasks:
            met: list[Json] = []

            async def meet() -> None:
                met.append(await server.call("meet", {"guests": 2}))

            with anyio.move_on_after(0.2) as scope:
                await server.call("wait", {})
            assert scope.cancelled_caught
            tasks.start_soon(meet)
            with anyio.move_on_after(0.2):
                await server.call("wait", {})
            await meet()
            await until(lambda: met == ["met", "met"])

    async def test_a_call_from_any_task(self) -> None:
        """The server works after the task of the first call has ended."""
        async with self.fresh() as server:
            for _ in range(2):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(server.tools)
            assert await server.call("say", {"text": "on"}) == "on"

    async def test_closing(self) -> None:
        """Closing fails calls in flight and rejects later ones; closing again does nothing."""
        async with self.fresh() as server, anyio.create_task_group() as tasks:
            failed = anyio.Event()

            async def wait() -> None:
                with refused(ToolServerError):
                    await server.call("wait", {})
                failed.set()

            await server.tools()
            tasks.start_soon(wait)
            await anyio.sleep(0.1)
            for _ in range(2):
                await server.aclose()
            with anyio.fail_after(PATIENCE):
                await failed.wait()
            for asked in (server.tools(), server.call("say", {"text": "x"})):
                with refused(UsageError):
                    await asked

    async def test_closing_before_use(self) -> None:
        """A server can be closed before its first call."""
        async with self.fresh() as server:
            await server.aclose()
            with refused(UsageError):
                await server.tools()
