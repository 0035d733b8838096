"""What is done after each test with the stores that it used."""

from collections.abc import AsyncIterator, Generator
from inspect import iscoroutinefunction

import pytest

from tests.support.on_postgres import stands


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Empty the stores after each test."""
    result = yield
    stands.abandon_all()
    stands.empty_all()
    return result


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if iscoroutinefunction(getattr(item, "obj", None)):
            item.fixturenames.insert(0, "_closed_stores")  # type: ignore[attr-defined]


@pytest.fixture
async def _closed_stores() -> AsyncIterator[None]:
    """Close the stores that a test left open, while its loop runs."""
    yield
    await stands.close_all()
