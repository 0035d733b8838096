"""Test a workflow with database variables: its documents are in memory."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from turnloom import Loom, MissingContext
from turnloom.testing import FakeDocuments
from turnloom.testing.contracts import DocumentStoreContract
from turnloom.testing.contracts.documents import Put
from turnloom.variables.ports import DocumentStore

SUPPORT = str(Path(__file__).parents[1] / "Support")
ANN: dict[str, Any] = {"user_id": "ann", "app_id": "acme", "contact": {"name": "Ann"}}


async def test_a_customer_is_found() -> None:
    documents = FakeDocuments()
    documents.add("customers", ANN, ANN | {"plan": "paid"}, database="crm")
    async with Loom(store="memory", documents=documents) as app:
        run = await app.start(SUPPORT, user_id="ann", app_id="acme")
        events = await app.history.events(run.id, app_id=run.app_id)
    (loaded,) = [event.data for event in events if event.kind == "context.loaded"]
    assert {each.name: each.value for each in loaded.values}["plan"] == "paid"


async def test_a_customer_of_another_app_is_not_found() -> None:
    documents = FakeDocuments()
    documents.add("customers", ANN | {"app_id": "globex"}, database="crm")
    async with Loom(store="memory", documents=documents) as app:
        with pytest.raises(MissingContext, match="'customer'"):
            await app.start(SUPPORT, user_id="ann", app_id="acme")


class TestFakeDocuments(DocumentStoreContract):
    """The suite for a document store; it needs a function that adds documents."""

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[tuple[DocumentStore, Put]]:
        documents = FakeDocuments()

        async def put(
            database: str | None, collection: str, added: Sequence[Mapping[str, Any]]
        ) -> None:
            documents.add(collection, *added, database=database)

        yield documents, put
