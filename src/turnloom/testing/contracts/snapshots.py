"""What all snapshots do."""

from contextlib import AbstractAsyncContextManager

from turnloom.runtime.ports import Snapshots
from turnloom.testing.contracts.facts import OTHER, key


class SnapshotsContract:
    """The suite for `Snapshots`."""

    def fresh(self) -> AbstractAsyncContextManager[Snapshots]:
        """An empty store of snapshots."""
        raise NotImplementedError

    async def test_nothing_is_kept_at_first(self) -> None:
        """A run without a snapshot has none."""
        async with self.fresh() as snapshots:
            assert await snapshots.load(key("a")) is None

    async def test_the_last_state_is_kept(self) -> None:
        """A later state stands in place of an earlier one, per run."""
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 3, b"three")
            await snapshots.save(key("b"), 1, b"")
            await snapshots.save(key("a"), 9, b"\x00nine\xff")
            assert await snapshots.load(key("a")) == (9, b"\x00nine\xff")
            assert await snapshots.load(key("b")) == (1, b"")

    async def test_tenants_do_not_meet(self) -> None:
        """Runs of one id have a state each."""
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 3, b"ours")
            assert await snapshots.load(key("a", OTHER)) is None
            await snapshots.save(key("a", OTHER), 1, b"theirs")
            assert await snapshots.load(key("a")) == (3, b"ours")
            assert await snapshots.load(key("a", OTHER)) == (1, b"theirs")

    async def test_an_earlier_state_does_not_replace_a_later_one(self) -> None:
        """A writer that comes late changes nothing; the same position may be written again."""
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 9, b"nine")
            await snapshots.save(key("a"), 3, b"three")
            assert await snapshots.load(key("a")) == (9, b"nine")
            await snapshots.save(key("a"), 9, b"again")
            assert await snapshots.load(key("a")) == (9, b"again")

    async def test_a_large_state(self) -> None:
        """A state of megabytes comes back whole."""
        state = bytes(range(256)) * 16_384
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 1, state)
            assert await snapshots.load(key("a")) == (1, state)
