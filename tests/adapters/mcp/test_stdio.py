"""MCP servers as programs that die, hang, complain, flood: a sentence in time, and no process."""

import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from subprocess import run
from typing import Any

import anyio
import pytest

from tests.adapters.mcp.servers import raw, used
from turnloom.adapters.mcp import McpServer
from turnloom.errors import ToolServerError, UsageError
from turnloom.testing.contracts import until

TIMEOUT = 10.0
SECRET = "a-secret-of-ours"


def started(timeout: float = TIMEOUT, **told: Any) -> AbstractAsyncContextManager[McpServer]:
    return used(McpServer("raw", command=raw(**told), timeout=timeout))


async def complaint(server: McpServer, tool: str) -> str:
    """What a call is refused with."""
    with anyio.fail_after(TIMEOUT), pytest.raises(ToolServerError) as raised:
        await server.call(tool, {})
    return str(raised.value)


async def pid_of(server: McpServer) -> int:
    return int(await server.call("pid", {}))


def lives(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_one_program_for_all_calls_and_none_afterwards(strict_loop: None) -> None:
    async with started() as server:
        pid = await pid_of(server)
        assert await pid_of(server) == pid
        await server.tools()
        assert lives(pid)
    assert not lives(pid)


async def test_killed_between_calls() -> None:
    async with started() as server:
        pid = await pid_of(server)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not lives(pid))
        await anyio.sleep(0.01)  # Until the loop has heard of it, it is during a call.
        assert await pid_of(server) != pid


async def test_killed_during_a_call() -> None:
    async with started() as server:
        pid = await pid_of(server)
        said: list[str] = []

        async def hang() -> None:
            said.append(await complaint(server, "hang"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hang)
            tasks.start_soon(hang)
            await anyio.sleep(0.1)
            os.kill(pid, signal.SIGKILL)
        assert said == 2 * [
            "MCP server 'raw' ended by signal 9. Run its `command` by hand to see why."
        ]
        assert await pid_of(server) != pid


async def test_a_program_that_ends_itself() -> None:
    async with started() as server:
        said = await complaint(server, "die")
        assert "MCP server 'raw' ended with exit code 7." in said
        assert said.endswith("It last said: a pain in the diodes")
        assert await pid_of(server)


async def test_a_program_that_ends_at_once() -> None:
    async with started(stderr="No such option: --all", exit=2) as server:
        for _ in range(2):
            said = await complaint(server, "pid")
            assert "ended with exit code 2." in said
            assert "It last said: No such option: --all" in said


async def test_a_program_that_closes_its_output() -> None:
    async with started() as server:
        pid = await pid_of(server)
        assert "MCP server 'raw' closed the connection." in await complaint(server, "mute")
        assert not lives(pid)
        assert await pid_of(server) != pid


async def test_no_such_program() -> None:
    async with used(McpServer("files", command=["turnloom-no-such-program", "--all"])) as server:
        assert await complaint(server, "pid") == (
            "MCP server 'files' cannot be started: No such file or directory: "
            "'turnloom-no-such-program'. Check its `command` and `cwd`."
        )


async def test_no_such_folder(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    async with used(McpServer("files", command=raw(), cwd=nowhere)) as server:
        assert "nowhere'. Check its `command` and `cwd`." in await complaint(server, "pid")


async def test_a_tool_that_hangs() -> None:
    async with started(timeout=1.0) as server:
        pid = await pid_of(server)
        assert (
            "MCP server 'raw' did not answer within 1 s when asked for tool 'hang'. "
            "Check that it runs" in await complaint(server, "hang")
        )
        assert await pid_of(server) == pid


async def test_a_program_that_never_says_a_word() -> None:
    async with started(timeout=0.5, silent=True, stderr="Loading the moon.") as server:
        for _ in range(2):
            said = await complaint(server, "pid")
            assert "did not answer within 0.5 s" in said
            assert "It last said: Loading the moon." in said


async def test_a_program_that_does_not_listen() -> None:
    """It reads nothing, so that what is sent to it has no place to go."""
    async with started(timeout=1.0) as server:
        pid = await pid_of(server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(complaint, server, "deaf")
            await anyio.sleep(0.1)
            with pytest.raises(ToolServerError, match="did not answer within 1 s"):
                await server.call("x", {"text": "x" * 1_000_000})
    assert not lives(pid)


async def test_a_program_that_does_not_want_to_end() -> None:
    async with started(stubborn=True) as server:
        pid = await pid_of(server)
    assert not lives(pid)


async def test_what_the_program_has_started_ends_too() -> None:
    async with started() as server:
        child = int(await server.call("child", {}))
        assert lives(child)
    # Nobody of ours is its parent, so it may be a zombie a little longer.
    await until(lambda: not lives(child) or "Z" in Path(f"/proc/{child}/stat").read_text())


async def test_closing_while_it_starts() -> None:
    async with started(silent=True) as server, anyio.create_task_group() as tasks:
        said: list[str] = []

        async def ask() -> None:
            said.append(await complaint(server, "pid"))

        tasks.start_soon(ask)
        await anyio.sleep(0.2)
        await server.aclose()
    assert said == ["MCP server 'raw' was closed before it answered tool 'pid'."]


async def test_a_caller_that_is_cancelled_while_it_starts() -> None:
    async with started() as server:
        with anyio.move_on_after(0.01):
            await server.tools()
        assert await pid_of(server)


async def test_complaints_stay_out_of_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    async with started(stderr="Ouch.\n" * 1000, stdout="Welcome!\n\n[1]") as server:
        assert await server.tools() == []
        said = await complaint(server, "hmm")
    assert "MCP server 'raw' refused tool 'hmm': What is 'hmm'?" in said
    assert said.count("Ouch.") + said.count("Welcome!") <= 6
    assert capfd.readouterr() == ("", "")


async def test_secrets_stay_secret() -> None:
    command = raw(stderr=f"Bad token {SECRET}\x1b[31m.", exit=1)
    async with used(McpServer("raw", command=command, env={"TOKEN": SECRET})) as server:
        said = await complaint(server, "pid")
    assert said.endswith("It last said: Bad token … [31m.")


async def test_a_program_gets_little_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_API_KEY", SECRET)
    async with used(McpServer("raw", command=raw(), env={"TOKEN": "t"})) as server:
        names = (await server.call("environment", {})).split()
    assert "TOKEN" in names and "PATH" in names and "OUR_API_KEY" not in names


def test_either_a_command_or_a_url() -> None:
    for told in ({}, {"command": ["x"], "url": "http://127.0.0.1/mcp"}, {"command": []}):
        with pytest.raises(UsageError, match="either a `command` to start or a `url`"):
            McpServer("files", **told)


@pytest.mark.parametrize("package", ["mcp", "httpx2", "jsonschema"])
def test_the_extra_is_named_when_it_is_missing(package: str) -> None:
    script = f"import sys; sys.modules['{package}'] = None; import turnloom.adapters.mcp"
    done = run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "UsageError: MCP servers need the package 'mcp'" in done.stderr
    assert 'pip install "turnloom[mcp]"' in done.stderr
