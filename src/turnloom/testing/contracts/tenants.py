"""Contract suite for the tenants of a store."""

from contextlib import AbstractAsyncContextManager

from turnloom.log.events import RunFinished
from turnloom.log.spec import Event
from turnloom.runtime.ports import Store, Tenants
from turnloom.testing.contracts.facts import OTHER, TENANT, events, key


class UnfinishedTenantsContract:
    """The suite for `Tenants`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Tenants, Store]]:
        """The tenants of an empty store, and the store."""
        raise NotImplementedError

    async def test_tenants_with_unfinished_runs(self) -> None:
        """A tenant is listed while it has a run without an end."""
        async with self.fresh() as (tenants, store):
            assert [*await tenants.unfinished()] == []
            for tenant in (TENANT, OTHER):
                await store.log.append(key("a", tenant), events("a", 2), 0)
            assert [*await tenants.unfinished()] == sorted([TENANT, OTHER])
            last = events("a", 1, 2)[0]
            end = Event(
                "end", "a", 3, last.at, RunFinished.kind, actor="driver", data=RunFinished()
            )
            await store.log.append(key("a", OTHER), [end], 2)
            assert [*await tenants.unfinished()] == [TENANT]
