"""An app that keeps nothing."""

from collections.abc import AsyncIterator

import pytest

from turnloom import Loom


@pytest.fixture
async def app() -> AsyncIterator[Loom]:
    async with Loom(store="memory") as app:
        yield app
