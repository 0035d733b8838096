"""Tools of other programs: offered to agents, called in turns, on record."""

import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import write_folder
from tests.support.servers import Server as Program
from tests.support.worlds import begin, make_driver, make_world
from turnloom import Answer, Loom, Task, ToolCall, ToolSchema
from turnloom.agents.spec import Server
from turnloom.errors import ToolServerError
from turnloom.runtime.service.runs import World
from turnloom.testing import FakeToolServer, ScriptedEngine
from turnloom.wiring import Folders

PROGRAM = str(Path(__file__).parent / "mcp_program.py")
ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}
ORCHESTRATOR = "initial_agent: A\n"
HANDOFFS = """
    - {source_agent: A, target_agent: B, handoff_type: after_work}
    - {source_agent: B, target_agent: terminate, handoff_type: after_work}
    """
CLOCK = """
    tools:
    - {agent: A, file: own.py, function: now}
    mcp_servers:
    - {name: clock, agent: A, command: [clock], tools: [now, zone]}
    - {name: dice, url: "http://127.0.0.1:1/mcp"}
    lifecycle_tools:
    - {trigger: after_chat, agent: null, file: own.py, function: failed, on: failure}
    """
OWN = """
    def now():
        return "own"

    def failed(context_variables):
        return context_variables["run_status"]
    """


class Fakes:
    """Servers in memory, by name."""

    def __init__(self) -> None:
        self.servers = {"clock": FakeToolServer(), "dice": FakeToolServer()}
        self.declared: list[tuple[Server, str]] = []
        for name in ("now", "zone", "secret"):
            self.offer("clock", name)
        self.offer("dice", "roll")

    def offer(self, server: str, tool: str) -> None:
        async def answer(arguments: Mapping[str, Any]) -> Any:
            return f"{server}.{tool}"

        self.servers[server].add(ToolSchema(tool, f"The {tool}.", ANYTHING), answer)

    def connect(self, server: Server, root: str) -> FakeToolServer:
        self.declared.append((server, root))
        return self.servers[server.name]


def folder(where: Path, tools: str = CLOCK) -> str:
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


def world(fakes: Fakes, engine: ScriptedEngine) -> World:
    made = make_world(engine)
    definitions = Folders(engine, connect=fakes.connect)
    return World(*(getattr(made, n) if n != "definitions" else definitions for n in NAMES))


NAMES = ("stores", "clock", "entropy", "environment", "documents", "definitions", "scheduler")
LINES = {"A": [calling("now", "clock_now", "zone"), "Then roll."], "B": [calling("roll"), "Six."]}


async def test_tools_of_servers_are_offered_called_and_on_record(tmp_path: Path) -> None:
    fakes, engine = Fakes(), ScriptedEngine(LINES)
    this = world(fakes, engine)
    run = await begin(this, folder(tmp_path))
    await make_driver(this).drive(run)
    events = await this.stores.log.read(run)
    assert events[-1].kind == "run.finished"
    returned = [(e.data.tool, e.data.result) for e in events if e.kind == "tool.returned"]
    assert sorted(returned) == [
        ("clock_now", "clock.now"),
        ("now", "own"),
        ("roll", "dice.roll"),
        ("zone", "clock.zone"),
    ]
    offered = {task.agent: [tool.name for tool in task.tools] for task in engine.calls}
    assert offered == {"A": ["now", "clock_now", "zone", "roll"], "B": ["roll"]}
    assert [server.name for server, _ in fakes.declared] == ["clock", "dice"]


def test_a_check_needs_nothing_that_reaches_a_server(tmp_path: Path) -> None:
    def refuse(server: Server, root: str) -> FakeToolServer:
        raise AssertionError(server.name)

    loaded, problems = Folders(connect=refuse).examine(folder(tmp_path))
    assert loaded is not None and not problems


async def test_what_servers_offered_is_not_asked_again_after_a_restart(tmp_path: Path) -> None:
    fakes, engine = Fakes(), ScriptedEngine({"A": [ToolServerError("gone")]})
    this = world(fakes, engine)
    run = await begin(this, folder(tmp_path))
    await make_driver(this).drive(run)
    fakes.offer("dice", "cheat")
    await make_driver(this).drive(run)
    events = await this.stores.log.read(run)
    offered = [[tool.name for tool in e.data.tools] for e in events if e.kind == "tools.offered"]
    assert offered == [["now", "zone"], ["roll"]]


class Absent(FakeToolServer):
    """A server that does not answer."""

    async def tools(self) -> Sequence[ToolSchema]:
        raise ToolServerError("Server 'clock' does not answer.")


async def test_a_server_that_cannot_be_had_fails_the_run_before_anybody_speaks(
    tmp_path: Path,
) -> None:
    fakes, engine = Fakes(), ScriptedEngine({})
    fakes.servers["clock"] = Absent()
    this = world(fakes, engine)
    run = await begin(this, folder(tmp_path))
    await make_driver(this).drive(run)
    events = await this.stores.log.read(run)
    (hook,) = [e.data for e in events if e.kind == "lifecycle.tool_result"]
    assert hook.result == "failed"
    assert events[-1].kind == "run.failed"
    assert events[-1].data.message == "Server 'clock' does not answer."
    assert engine.calls == []


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
    tools = f"mcp_servers: [{{name: idle, command: {sleep}, timeout_s: 0.5}}]"
    end, told = await over(tmp_path, tools)
    assert end == "run.failed"
    assert "idle" in told and "0.5" in told
