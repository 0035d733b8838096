"""The fakes that ship do what the real things do."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from turnloom.agents.spec import ToolServer
from turnloom.testing import FakeDocuments, FakeToolServer
from turnloom.testing.contracts import DocumentStoreContract, ToolServerContract
from turnloom.testing.contracts.documents import Put
from turnloom.testing.contracts.tools import TOOLS, SampleTools
from turnloom.variables.ports import DocumentStore


class TestFakeDocuments(DocumentStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[DocumentStore, Put], None]:
        async def put(
            database: str | None, collection: str, documents: Sequence[Mapping[str, Any]]
        ) -> None:
            store.add(collection, *documents, database=database)

        store = FakeDocuments()
        yield store, put


class TestFakeToolServer(ToolServerContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ToolServer, None]:
        server, behind = FakeToolServer(), SampleTools()
        for schema in TOOLS:
            server.add(schema, partial(behind.answer, schema.name))
        yield server


async def test_a_fake_tool_server_tells_what_it_was_asked() -> None:
    server = FakeToolServer()
    server.add(TOOLS[1], partial(SampleTools().answer, "say"))
    assert await server.call("say", {"text": "Hi."}) == "Hi."
    assert server.calls == [("say", {"text": "Hi."})]
