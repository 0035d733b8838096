"""Apps over a store on disk, unless a module says otherwise."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.servers import postgres_server, postgres_url
from tests.support.timed import Timed
from turnloom import Board, Loom

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "turnloom.db")


@pytest.fixture
def artifacts() -> str | None:
    """Where artifacts are kept: beside the runs, unless a module says otherwise."""
    return None


@pytest.fixture
async def app(store: str, artifacts: str | None) -> AsyncIterator[Loom]:
    async with Loom(store=store, artifacts=artifacts) as app:
        yield app


@pytest.fixture
async def timed(store: str) -> AsyncIterator[Timed]:
    async with Timed(store) as app:
        yield app


@pytest.fixture
def board(app: Loom) -> Board:
    return app.board()
