"""Artifacts in memory."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from turnloom.adapters.memory import MemoryStore
from turnloom.board.ports import ArtifactStore
from turnloom.board.spec import FilterConfig, Reader
from turnloom.errors import UsageError
from turnloom.log.ports import EventLog
from turnloom.testing.contracts import CODEC, ArtifactStoreContract, FollowingContract
from turnloom.testing.contracts.artifacts.samples import NOON, artifact, consumption, ids
from turnloom.testing.contracts.artifacts.storing import batch, published
from turnloom.testing.contracts.facts import TENANT, key


class TestArtifacts(ArtifactStoreContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[ArtifactStore, None]:
        yield MemoryStore(CODEC).artifacts


class TestFollowing(FollowingContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncGenerator[tuple[EventLog, ArtifactStore], None]:
        store = MemoryStore(CODEC)
        yield store.log, store.artifacts


async def test_a_board_elsewhere_is_left_to_others() -> None:
    store = MemoryStore(CODEC, board=False)
    await store.log.append(key("r"), batch("r", published("a")), 0)
    assert not store.artifacts.follows_log and await ids(store.artifacts) == []


async def test_a_closed_store_refuses() -> None:
    store = MemoryStore(CODEC)
    await store.aclose()
    for call in (
        store.artifacts.put(TENANT, [artifact("a")]),
        store.artifacts.consume(TENANT, [consumption("a")]),
        store.artifacts.get("a", Reader(), NOON),
        store.artifacts.query(FilterConfig(), Reader(), NOON),
        store.artifacts.summary(FilterConfig(), Reader(), NOON),
        store.artifacts.upcoming(TENANT, NOON, 1),
    ):
        with pytest.raises(UsageError):
            await call
