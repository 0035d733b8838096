"""Apps that keep nothing, and one in which time obeys."""

from collections.abc import AsyncIterator

import pytest

from tests.support.timed import Timed
from turnloom import Loom


@pytest.fixture
async def app() -> AsyncIterator[Loom]:
    async with Loom(store="memory") as app:
        yield app


@pytest.fixture
async def timed() -> AsyncIterator[Timed]:
    async with Timed("memory") as app:
        yield app
