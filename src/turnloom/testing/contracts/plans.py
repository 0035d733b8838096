"""What all stores of plans do."""

from contextlib import AbstractAsyncContextManager

from turnloom.runtime.ports import Plans
from turnloom.runtime.spec import StoredPlan
from turnloom.testing.contracts.facts import OTHER, TENANT

PLAN = StoredPlan("shop", '{"agents":["Bäcker"]}', "Bäcker: what was published")


class PlansContract:
    """The suite for `Plans`."""

    def fresh(self) -> AbstractAsyncContextManager[Plans]:
        """An empty store of plans."""
        raise NotImplementedError

    async def test_nothing_is_there_at_first(self) -> None:
        """A plan that was not kept is not found."""
        async with self.fresh() as plans:
            assert await plans.find(TENANT, "a") is None

    async def test_a_plan_is_found_by_its_digest(self) -> None:
        """It is found as it was kept, and under no other digest."""
        async with self.fresh() as plans:
            await plans.keep(TENANT, "a", PLAN)
            assert await plans.find(TENANT, "a") == PLAN
            assert await plans.find(TENANT, "b") is None

    async def test_a_plan_that_is_kept_stays_as_it_is(self) -> None:
        """The digest stands for the text, so the first one counts."""
        async with self.fresh() as plans:
            await plans.keep(TENANT, "a", PLAN)
            await plans.keep(TENANT, "a", StoredPlan("other", "{}"))
            assert await plans.find(TENANT, "a") == PLAN

    async def test_tenants_do_not_meet(self) -> None:
        """A plan of one digest is found by whose it is."""
        theirs = StoredPlan("other", "{}")
        async with self.fresh() as plans:
            await plans.keep(TENANT, "a", PLAN)
            assert await plans.find(OTHER, "a") is None
            await plans.keep(OTHER, "a", theirs)
            assert await plans.find(TENANT, "a") == PLAN
            assert await plans.find(OTHER, "a") == theirs
