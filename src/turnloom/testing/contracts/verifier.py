"""What all verifiers do; what damage looks like is a matter of each store."""

from contextlib import AbstractAsyncContextManager

from turnloom.runtime.ports import Store, Verifier
from turnloom.runtime.spec import VerifiedRun
from turnloom.testing.contracts.facts import OTHER, TENANT, events, key


class VerifierContract:
    """The suite for a `Verifier`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Verifier, Store]]:
        """The verifier of an empty store, and the store."""
        raise NotImplementedError

    async def test_what_is_sound_has_no_problems(self) -> None:
        """Every run is counted with its events, the one begun first coming first."""
        async with self.fresh() as (verifier, store):
            assert not [run async for run in verifier.verify(TENANT)]
            for run in ("b", "a"):
                for position in (0, 2):
                    await store.log.append(key(run), events(run, 2, position), position)
                await store.snapshots.save(key(run), 4, b"four")
            found = [run async for run in verifier.verify(TENANT)]
            assert found == [VerifiedRun("b", 4), VerifiedRun("a", 4)]
            assert [run async for run in verifier.verify(TENANT, "a")] == [VerifiedRun("a", 4)]
            assert not [run async for run in verifier.verify(TENANT, "c")]

    async def test_tenants_do_not_meet(self) -> None:
        """The runs of another tenant are not there."""
        async with self.fresh() as (verifier, store):
            await store.log.append(key("a", OTHER), events("a", 1), 0)
            assert not [run async for run in verifier.verify(TENANT)]
            assert not [run async for run in verifier.verify(TENANT, "a")]
            assert [run async for run in verifier.verify(OTHER)] == [VerifiedRun("a", 1)]
