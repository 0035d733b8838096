"""A workflow with database variables under test: its documents are in memory."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from turnloom import MissingContext
from turnloom.adapters.inline import InlineScheduler
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec
from turnloom.runtime.service.driver import Stores
from turnloom.runtime.service.runs import Runs, World
from turnloom.testing import FakeClock, FakeDocuments, FakeEntropy, FakeEnvironment
from turnloom.testing.contracts import DocumentStoreContract
from turnloom.testing.contracts.documents import Put
from turnloom.variables.ports import DocumentStore
from turnloom.wiring import Folders

SUPPORT = str(Path(__file__).parents[1] / "Support")
ANN: dict[str, Any] = {"user_id": "ann", "app_id": "acme", "contact": {"name": "Ann"}}


def world(documents: FakeDocuments, store: MemoryStore) -> World:
    """A world with these documents."""
    clock = FakeClock()
    return World(
        Stores(
            store.log,
            store.inbox,
            store.claims,
            store.snapshots,
            store.artifacts,
            store.beliefs,
            store.results,
        ),
        clock,
        FakeEntropy(),
        FakeEnvironment(),
        documents,
        Folders(),
        InlineScheduler(clock),
    )


async def test_a_customer_is_found() -> None:
    documents, store = FakeDocuments(), MemoryStore(codec())
    documents.add("customers", ANN, ANN | {"plan": "paid"}, database="crm")
    run = await Runs(world(documents, store)).start(SUPPORT, user="ann", tenant="acme")
    loaded = (await store.log.read(run))[1].data
    assert {each.name: each.value for each in loaded.values}["plan"] == "paid"


async def test_a_customer_of_another_app_is_not_found() -> None:
    documents, store = FakeDocuments(), MemoryStore(codec())
    documents.add("customers", ANN | {"app_id": "globex"}, database="crm")
    with pytest.raises(MissingContext, match="'customer' is required"):
        await Runs(world(documents, store)).start(SUPPORT, user="ann", tenant="acme")


class TestFakeDocuments(DocumentStoreContract):
    """The suite for a document store; it needs to know how documents get in."""

    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[tuple[DocumentStore, Put]]:
        documents = FakeDocuments()

        async def put(
            database: str | None, collection: str, added: Sequence[Mapping[str, Any]]
        ) -> None:
            documents.add(collection, *added, database=database)

        yield documents, put
