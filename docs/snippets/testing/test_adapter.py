"""Test a custom adapter with the suite of its port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Snapshots
from turnloom.testing.contracts import SnapshotsContract


class DictSnapshots:
    """Snapshots in a dict."""

    def __init__(self) -> None:
        self._kept: dict[RunKey, tuple[int, bytes]] = {}

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Store a state, unless a later one is stored."""
        if seq >= self._kept.get(run, (0, b""))[0]:
            self._kept[run] = (seq, state)

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """Return the last stored state."""
        return self._kept.get(run)


class TestDictSnapshots(SnapshotsContract):
    @asynccontextmanager
    async def fresh(self) -> AsyncIterator[Snapshots]:
        yield DictSnapshots()
