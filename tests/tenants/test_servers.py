"""Servers of tools that keep things: each tenant has its own connection."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.folders import write_folder
from turnloom import Answer, Loom, Task, ToolCall
from turnloom.agents.spec import ToolSchema
from turnloom.testing import FakeToolServer

FILES = {
    "agents.yaml": "A: {system_message: Hi.}",
    "tools.yaml": "mcp_servers: [{name: notes, command: [x]}]",
}


async def test_what_a_server_keeps_for_a_tenant_is_not_shown_to_another(tmp_path: Path) -> None:
    made: list[FakeToolServer] = []

    def connect(*_: Any) -> FakeToolServer:
        server, kept = FakeToolServer(), list[str]()

        async def note(arguments: Mapping[str, Any]) -> list[str]:
            kept.append(arguments["text"])
            return [*kept]

        server.add(ToolSchema("note", "Notes.", {"type": "object", "properties": {}}), note)
        made.append(server)
        return server

    async def engine(task: Task) -> Answer:
        if task.exchanges:
            return Answer("done")
        return Answer(calls=(ToolCall("note", {"text": task.run}),))

    folder = write_folder(tmp_path / "Notes", FILES)
    results: list[list[str]] = []
    async with Loom(store="memory", engine=engine, connect=connect) as app:
        for tenant in ("acme", "zeta", "acme"):
            run = await app.start(folder, app_id=tenant)
            await run.finished()
            events = await app.history.events(run.id, app_id=tenant)
            results += [each.data.result for each in events if each.kind == "tool.returned"]
    assert [len(each) for each in results] == [1, 1, 2] and len(made) == 2
