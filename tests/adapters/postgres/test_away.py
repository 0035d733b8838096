"""A store in PostgreSQL whose server stays away: it is waited for once."""

import asyncio

import anyio
import pytest
from anyio.abc import ByteStream

from tests.adapters.postgres.test_store_trouble import PATIENCE, opened
from tests.support.loopback import Relay, listening
from tests.support.servers import PostgresServer
from turnloom.errors import StoreUnavailable
from turnloom.testing.contracts.facts import events, key

pytestmark = pytest.mark.doors


class Door(Relay):
    """A relay that can be shut: it cuts its connections, and counts those that it refuses."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.is_shut = False
        self.refused = 0
        self._open: list[anyio.CancelScope] = []

    async def __call__(self, stream: ByteStream) -> None:
        if self.is_shut:
            self.refused += 1
            await stream.aclose()
            return
        with anyio.CancelScope() as scope:
            self._open.append(scope)
            await super().__call__(stream)

    def shut(self) -> None:
        self.is_shut = True
        for scope in self._open:
            scope.cancel()


async def test_a_server_that_stays_away_is_waited_for_once(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """By the append. Releasing the claim and closing the store ask it once each."""
    door = Door(postgres_server.port)
    async with listening(door) as port:
        url = postgres_url.replace(f":{postgres_server.port}/", f":{port}/")
        async with opened(f"{url}?sslmode=disable&gssencmode=disable") as store:
            store._database.patience = 1.0
            with pytest.raises(StoreUnavailable):
                async with store.claims.claim(key("a")) as fence:
                    door.shut()
                    try:
                        await store.log.append(key("a"), events("a", 1), 0, fence)
                    finally:
                        before = door.refused
        assert before > 2
        assert door.refused - before == 2


async def test_a_claim_that_could_not_be_released_is_released_later(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """Although its process keeps another one, and takes none."""
    door = Door(postgres_server.port)
    async with listening(door) as port, opened(postgres_url) as watch:
        url = postgres_url.replace(f":{postgres_server.port}/", f":{port}/")
        async with opened(url, lease=6.0) as store, store.claims.claim(key("b")):
            store._database.patience = 1.0
            with pytest.raises(StoreUnavailable):
                async with store.claims.claim(key("a")) as fence:
                    door.shut()
                    await store.log.append(key("a"), events("a", 1), 0, fence)
            door.is_shut = False
            assert await watch.claims.held(key("a"))
            with anyio.fail_after(PATIENCE):
                while await watch.claims.held(key("a")):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert await watch.claims.held(key("b"))
