"""MCP servers as programs that die, hang, complain, flood: a sentence in time, and no process."""

import os
import signal
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import MCPError

from tests.adapters.mcp.servers import ENV, HERE, raw, refusal, settle, used
from tests.support.missing import refused_without
from turnloom.adapters.mcp import McpServer
from turnloom.adapters.mcp.faults import ServerEnded
from turnloom.errors import ToolServerError, UsageError
from turnloom.testing.contracts import until

TIMEOUT = 30.0
SECRET = "a-secret-of-ours"
STARTER = HERE / "starter.py"


def started(timeout: float = TIMEOUT, **told: Any) -> AbstractAsyncContextManager[McpServer]:
    return used(McpServer("raw", command=raw(**told), timeout=timeout))


async def pid_of(server: McpServer) -> int:
    return int(await server.call("pid", {}))


def ended(error: ToolServerError) -> int | None:
    """The exit code that an error tells of; nothing if the program only closed its side."""
    assert isinstance(error.__cause__, ServerEnded)
    return error.__cause__.code


def lives(pid: int) -> bool:
    """Whether there is such a process, be it a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_gone(pid: int) -> bool:
    """Whether a process has ended, be it that nobody took note of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
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
        await settle()  # Until the loop has heard of it, it is during a call.
        assert await pid_of(server) != pid


async def test_killed_during_a_call() -> None:
    async with started() as server:
        pid = await pid_of(server)
        refused: list[ToolServerError] = []

        async def hang() -> None:
            refused.append(await refusal(server, "hang"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hang)
            tasks.start_soon(hang)
            await anyio.wait_all_tasks_blocked()
            os.kill(pid, signal.SIGKILL)
        for error in refused:
            assert ended(error) == -signal.SIGKILL
            assert "'raw'" in str(error) and "9" in str(error)
        assert len(refused) == 2
        assert await pid_of(server) != pid


async def test_a_program_that_ends_itself() -> None:
    async with started() as server:
        error = await refusal(server, "die")
        assert ended(error) == 7
        assert "'raw'" in str(error) and str(error).endswith("a pain in the diodes")
        assert await pid_of(server)


async def test_a_program_that_ends_at_once() -> None:
    async with started(stderr="No such option: --all", exit=2) as server:
        for _ in range(2):
            error = await refusal(server, "pid")
            assert ended(error) == 2
            assert str(error).endswith("No such option: --all")


async def test_a_program_that_closes_its_output() -> None:
    async with started() as server:
        pid = await pid_of(server)
        error = await refusal(server, "mute")
        assert ended(error) is None and "'raw'" in str(error)
        assert not lives(pid)
        assert await pid_of(server) != pid


async def test_no_such_program() -> None:
    async with used(McpServer("files", command=["turnloom-no-such-program", "--all"])) as server:
        error = await refusal(server, "pid")
    assert isinstance(error.__cause__, FileNotFoundError)
    for value in ("'files'", "'turnloom-no-such-program'", "`command`"):
        assert value in str(error)


async def test_no_such_folder(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    async with used(McpServer("files", command=raw(), cwd=nowhere)) as server:
        error = await refusal(server, "pid")
    assert repr(nowhere) in str(error) and "`cwd`" in str(error)


async def test_a_tool_that_hangs() -> None:
    async with started(timeout=2.0) as server:
        pid = await pid_of(server)
        error = await refusal(server, "hang")
        assert isinstance(error.__cause__, TimeoutError)
        for value in ("'raw'", "2 s", "'hang'"):
            assert value in str(error)
        assert await pid_of(server) == pid


async def test_a_program_that_never_says_a_word() -> None:
    async with started(timeout=0.5, silent=True, stderr="Loading the moon.") as server:
        for _ in range(2):
            error = await refusal(server, "pid")
            assert isinstance(error.__cause__, TimeoutError)
            assert "0.5 s" in str(error)


@pytest.mark.doors
async def test_a_program_that_does_not_listen() -> None:
    """It reads nothing, so that what is sent to it has no place to go."""
    async with started(timeout=2.0) as server:
        pid = await pid_of(server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(refusal, server, "deaf")
            await anyio.wait_all_tasks_blocked()
            error = await refusal(server, "x", text="x" * 1_000_000)
            assert isinstance(error.__cause__, TimeoutError)
    assert not lives(pid)


@pytest.mark.doors
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
        refused: list[ToolServerError] = []

        async def ask() -> None:
            refused.append(await refusal(server, "pid"))

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await server.aclose()
    (error,) = refused
    assert error.__cause__ is None
    assert "'raw'" in str(error) and "'pid'" in str(error)


async def test_a_caller_that_is_cancelled_while_it_starts() -> None:
    async with started() as server:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.tools)
            await settle()
            tasks.cancel_scope.cancel()
        assert await pid_of(server)


async def test_complaints_stay_out_of_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    async with started(stderr="Ouch.\n" * 1000, stdout="Welcome!\n\n[1]") as server:
        assert await server.tools() == []
        error = await refusal(server, "hmm")
    said = str(error)
    assert isinstance(error.__cause__, MCPError)
    assert "'raw'" in said and "What is 'hmm'?" in said
    assert said.count("Ouch.") + said.count("Welcome!") <= 6
    assert capfd.readouterr() == ("", "")


async def test_secrets_stay_secret() -> None:
    command = raw(stderr=f"Bad token {SECRET}\x1b[31m.", exit=1)
    async with used(McpServer("raw", command=command, env={"TOKEN": SECRET})) as server:
        error = await refusal(server, "pid")
    assert str(error).endswith("Bad token … [31m.")


async def test_a_program_gets_little_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_API_KEY", SECRET)
    async with used(McpServer("raw", command=raw(), env={"TOKEN": "t"})) as server:
        names = (await server.call("environment", {})).split()
    assert "TOKEN" in names and "PATH" in names and "OUR_API_KEY" not in names


async def test_what_a_program_was_given_in_confidence_is_not_in_what_it_gives() -> None:
    told = {"type": "object", "description": f"The key is {SECRET}."}
    tool = {"name": "peek", "description": f"Uses {SECRET}.", "inputSchema": told}
    structured = {"content": [], "structuredContent": {"deep": [f"x{SECRET}y"], SECRET: 1}}
    command = raw(answers={"deep": structured}, pages=[[tool]])
    async with used(McpServer("raw", command=command, env={"TOKEN": SECRET, "N": "7"})) as server:
        values = await server.call("values", {})
        deep = await server.call("deep", {})
        (offered,) = await server.tools()
    assert SECRET not in values and "⟨hidden:raw.TOKEN⟩" in values
    assert deep == {"deep": ["x⟨hidden:raw.TOKEN⟩y"], "⟨hidden:raw.TOKEN⟩": 1}
    assert SECRET not in offered.description and SECRET not in str(offered.parameters)


@pytest.mark.parametrize("forks", [False, True])
async def test_a_program_that_does_not_listen_ends_when_we_are_killed(forks: bool) -> None:
    """Also if a child of ours lives on, which holds all that was open here."""
    starter = await anyio.open_process([sys.executable, str(STARTER), str(int(forks))], env=ENV)
    try:
        assert starter.stdout is not None
        line = await BufferedByteReceiveStream(starter.stdout).receive_until(b"\n", 200)
        server, child, own = map(int, line.split())
        assert lives(server) and lives(child)
    finally:
        starter.kill()
        await starter.wait()
    try:
        await until(lambda: is_gone(server) and is_gone(child))
    finally:
        if own:
            os.kill(own, signal.SIGKILL)
        await starter.aclose()


def test_either_a_command_or_a_url() -> None:
    for told in ({}, {"command": ["x"], "url": "http://127.0.0.1/mcp"}, {"command": []}):
        with pytest.raises(UsageError) as refused:
            McpServer("files", **told)
        for value in ("'files'", "`command`", "`url`"):
            assert value in str(refused.value)


@pytest.mark.parametrize("package", ["mcp", "httpx2", "jsonschema"])
def test_the_extra_is_named_when_it_is_missing(package: str) -> None:
    assert 'pip install "turnloom[mcp]"' in str(refused_without(package, "turnloom.adapters.mcp"))
