"""Tools of other programs: offered to agents, called in turns, on record."""

import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.mcp.servers import Reply, Stub, answering
from tests.support.checks import examined
from tests.support.folders import write_folder
from tests.support.loopback import listening
from tests.support.plays import every, only
from tests.support.programs import begin, drive, make_world
from tests.support.servers import Server as Program
from tests.support.servers import free_port
from turnloom import Answer, Loom, Task, ToolCall
from turnloom.testing import Killed, ScriptedEngine

PROGRAM = str(Path(__file__).parent / "mcp_program.py")
ORCHESTRATOR = "initial_agent: A\n"
HANDOFFS = """
    - {source_agent: A, target_agent: B, handoff_type: after_work}
    - {source_agent: B, target_agent: terminate, handoff_type: after_work}
    """
TOOLS = """
    tools:
    - {{agent: A, file: own.py, function: now}}
    mcp_servers:
    - {{name: clock, agent: A, url: "http://127.0.0.1:{clock}/mcp", tools: [now, zone]}}
    - {{name: dice, url: "http://127.0.0.1:{dice}/mcp"}}
    lifecycle_tools:
    - {{trigger: after_chat, agent: null, file: own.py, function: failed, on: failure}}
    """
OWN = """
    def now():
        return "own"

    def failed(context_variables):
        return context_variables["run_status"]
    """


class Offering:
    """A server of tools, in this process."""

    def __init__(self, name: str, *tools: str) -> None:
        self.tools = list(tools)
        self.port = 0
        self.stub = Stub(self._answer)
        self._name = name

    @property
    def listings(self) -> int:
        """How often it was asked for its tools."""
        return self.stub.seen.count("tools/list")

    def _answer(self, message: Any) -> Reply:
        if message["method"] == "tools/list":
            schema = {"type": "object", "properties": {}}
            listed = [{"name": tool, "inputSchema": schema} for tool in self.tools]
            return Reply(answering(message, {"tools": listed}))
        told = f"{self._name}.{message['params']['name']}"
        return Reply(answering(message, {"content": [{"type": "text", "text": told}]}))


class Offerings:
    """Two servers of tools."""

    def __init__(self) -> None:
        self.clock = Offering("clock", "now", "zone", "secret")
        self.dice = Offering("dice", "roll")

    def folder(self, where: Path) -> str:
        """A workflow that names them."""
        return folder(where, TOOLS.format(clock=self.clock.port, dice=self.dice.port))


@pytest.fixture
async def offerings() -> AsyncIterator[Offerings]:
    both = Offerings()
    async with listening(both.clock.stub) as one, listening(both.dice.stub) as other:
        both.clock.port, both.dice.port = one, other
        yield both


def folder(where: Path, tools: str) -> str:
    files = {
        "orchestrator.yaml": ORCHESTRATOR,
        "agents.yaml": "A: {system_message: Ask.}\nB: {system_message: Roll.}\n",
        "handoffs.yaml": HANDOFFS,
        "tools.yaml": tools,
        "own.py": OWN,
    }
    return write_folder(where, files)


def calling(*tools: str) -> Answer:
    return Answer(calls=tuple(ToolCall(tool) for tool in tools))


LINES = {"A": [calling("now", "clock_now", "zone"), "Then roll."], "B": [calling("roll"), "Six."]}


async def test_tools_of_servers_are_offered_called_and_on_record(
    offerings: Offerings, tmp_path: Path
) -> None:
    world = make_world(ScriptedEngine(LINES))
    run = await begin(world, offerings.folder(tmp_path))
    await drive(world, run)
    events = await world.read(run)
    assert events[-1].kind == "run.finished"
    returned = [(each.tool, each.result) for each in every(events, "tool.returned")]
    assert sorted(returned) == [
        ("clock_now", "clock.now"),
        ("now", "own"),
        ("roll", "dice.roll"),
        ("zone", "clock.zone"),
    ]
    offered = {task.agent: [tool.name for tool in task.tools] for task in world.engine.calls}
    assert offered == {"A": ["now", "clock_now", "zone", "roll"], "B": ["roll"]}


async def test_a_check_needs_nothing_that_reaches_a_server(
    offerings: Offerings, tmp_path: Path
) -> None:
    assert examined(offerings.folder(tmp_path)) == (True, [])
    assert not offerings.clock.stub.seen and not offerings.dice.stub.seen


async def test_what_servers_offered_is_not_asked_again_after_a_restart(
    offerings: Offerings, tmp_path: Path
) -> None:
    async def die(task: Task) -> Answer:
        raise Killed

    world = make_world(die)
    run = await begin(world, offerings.folder(tmp_path))
    with pytest.raises(Killed):
        await drive(world, run)
    offerings.dice.tools.append("cheat")
    world.engine = ScriptedEngine(LINES)
    await drive(world, run)
    events = await world.read(run)
    assert events[-1].kind == "run.finished"
    offered = [[tool.name for tool in each.tools] for each in every(events, "tools.offered")]
    assert offered == [["now", "zone"], ["roll"]]
    assert (offerings.clock.listings, offerings.dice.listings) == (1, 1)


async def test_a_server_that_cannot_be_had_fails_the_run_before_anybody_speaks(
    offerings: Offerings, tmp_path: Path
) -> None:
    offerings.clock.port = free_port()
    world = make_world(ScriptedEngine({}))
    run = await begin(world, offerings.folder(tmp_path))
    await drive(world, run)
    events = await world.read(run)
    assert only(events, "lifecycle.tool_result").result == "failed"
    assert events[-1].kind == "run.failed"
    assert "'clock'" in events[-1].data.message
    assert world.engine.calls == []


async def over(where: Path, tools: str) -> tuple[str, str]:
    """The end of a run whose agent calls the program's tool, and what the tool gave."""

    async def engine(task: Task) -> Answer:
        if task.agent == "A" and not task.exchanges:
            return calling("told")
        return Answer("Done.")

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder(where, tools))
        events = [event async for event in run.events()]
    given = [e.data for e in events if e.kind in ("tool.returned", "tool.failed")]
    return events[-1].kind, str(getattr(given[0], "result", None)) if given else events[
        -1
    ].data.message


async def test_a_program_is_started_in_the_folder_with_its_own_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROGRAM_TOKEN", "t0ken")
    monkeypatch.setenv("PROGRAM_PATH", os.pathsep.join(path for path in sys.path if path))
    tools = f"""
        mcp_servers:
          program:
            command: ["{sys.executable}", "{PROGRAM}"]
            env: {{TOKEN: PROGRAM_TOKEN, PYTHONPATH: PROGRAM_PATH}}
            timeout_s: 30
        """
    assert await over(tmp_path, tools) == ("run.finished", "t0ken  Flow")


async def test_what_a_program_was_given_in_confidence_is_not_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROGRAM_TOKEN", "t0ken-of-ours")
    monkeypatch.setenv("PROGRAM_PATH", os.pathsep.join(path for path in sys.path if path))
    tools = f"""
        mcp_servers:
          program:
            command: ["{sys.executable}", "{PROGRAM}"]
            env: {{TOKEN: PROGRAM_TOKEN, PYTHONPATH: PROGRAM_PATH}}
            timeout_s: 30
        """
    shown: list[str] = []

    async def engine(task: Task) -> Answer:
        shown.append(repr(task.exchanges))
        return Answer("Done.") if task.agent == "B" or task.exchanges else calling("told")

    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(folder(tmp_path, tools))
        events = [event async for event in run.events()]
    assert only(events, "tool.returned").result == "⟨hidden:program.TOKEN⟩  Flow"
    assert "t0ken-of-ours" not in repr(events) + "".join(shown)


class Web(Program):
    """The program as a server on loopback."""

    def command(self) -> list[str]:
        return [sys.executable, PROGRAM, str(self.port)]

    def answers(self) -> bool:
        return is_open(self.port)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def web() -> Iterator[Web]:
    server = Web()
    server.start()
    yield server
    server.discard()


async def test_a_program_is_reached_with_the_headers_that_are_declared(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEB_TOKEN", "s3same")
    tools = f"""
        mcp_servers:
        - name: web
          url: http://127.0.0.1:{web.port}/mcp
          headers: {{X-Token: WEB_TOKEN}}
        """
    end, told = await over(tmp_path, tools)
    assert (end, told.split()[0]) == ("run.finished", "s3same")


async def test_a_program_that_never_answers_is_not_waited_for(tmp_path: Path) -> None:
    sleep = f'["{sys.executable}", "-c", "import time; time.sleep(60)"]'
    tools = f"mcp_servers: [{{name: idle, command: {sleep}, timeout_s: 0.2}}]"
    end, told = await over(tmp_path, tools)
    assert end == "run.failed"
    assert "idle" in told and "0.2" in told
