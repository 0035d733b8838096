"""Runs in one database and artifacts in another: the log comes first, and the index follows."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime.test_board_crashes import Course, apart
from tests.support.boards import Place
from tests.support.plays import every
from turnloom import FilterConfig, Reader
from turnloom.adapters.postgres import PostgresArtifacts
from turnloom.adapters.sqlite import SqliteStore
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec


async def emptied(url: str) -> PostgresArtifacts:
    artifacts = PostgresArtifacts(url)
    await artifacts.put("local", [])
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(
            "TRUNCATE turnloom_artifacts, turnloom_terms, turnloom_consumptions"
        )
    return artifacts


class Reading:
    """Artifacts whose every write is followed by a look of somebody else at all of them."""

    def __init__(self, artifacts: PostgresArtifacts, log: Any) -> None:
        self._artifacts = artifacts
        self._log = log
        self.follows_log = False
        self.find, self.get, self.query = artifacts.find, artifacts.get, artifacts.query
        self.newest = artifacts.newest
        self.summary, self.upcoming = artifacts.summary, artifacts.upcoming
        self.seen = 0

    async def put(self, tenant: str, artifacts: Any) -> None:
        await self._artifacts.put(tenant, artifacts)
        await self.look()

    async def consume(self, tenant: str, consumptions: Any) -> None:
        await self._artifacts.consume(tenant, consumptions)
        await self.look()

    async def look(self) -> None:
        """Nobody sees an artifact whose event is not in a log."""
        page = await self._artifacts.query(FilterConfig(), Reader(), NOW)
        for item in page.items:
            published = every(await self._log.read(RunKey("local", item.run)), "artifact.published")
            assert item.id in {fact.artifact.id for fact in published}
            self.seen += 1


NOW = Place().clock.now()


@pytest.mark.repeats
@pytest.mark.doors
async def test_a_kill_between_a_log_and_an_index_in_postgresql(
    postgres_url: str, tmp_path: Path
) -> None:
    """Killed before or after something is put there, it is there in the end, and never too soon."""
    undisturbed = await Course.of(place=apart())
    for points in range(1, undisturbed.passed, 5):
        store = SqliteStore(tmp_path / f"{points}.db", codec(), board=False)
        artifacts = await emptied(postgres_url)
        reading = Reading(artifacts, store.log)
        try:
            (await Course.of(points, place=Place(store, reading))).check(undisturbed, points)
            assert reading.seen
        finally:
            await artifacts.aclose()
            await store.aclose()
