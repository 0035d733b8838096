"""Engines of model libraries, by their names."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from turnloom import Engine
from turnloom.wiring.adapters import adapter
from turnloom.wiring.models import ASKING


@asynccontextmanager
async def asking(kind: str, url: str) -> AsyncIterator[Engine]:
    """The engine of a library, which asks the model at an address."""
    made = getattr(adapter(kind), ASKING[kind])("loopback", base_url=url, keep_open=True)
    async with aclosing(made) as engine:
        yield engine
