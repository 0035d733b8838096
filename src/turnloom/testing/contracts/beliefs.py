"""What all belief stores do."""

from contextlib import AbstractAsyncContextManager

import anyio

from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Observation, Pool

POOL = Pool("acme", "Desk", "billing")

# How many outcomes are added at the same time.
CROWD = 40


def outcome(
    event: str, agent: str = "Ann", credit: float = 1.0, decay: float = 0.0, pool: Pool = POOL
) -> Observation:
    """An outcome that an event of a run has."""
    return Observation("run", event, pool, agent, credit, decay)


class BeliefStoreContract:
    """The suite for `BeliefStore`."""

    def fresh(self) -> AbstractAsyncContextManager[BeliefStore]:
        """An empty store of beliefs."""
        raise NotImplementedError

    async def test_nothing_is_known_at_first(self) -> None:
        """Of an agent without any outcome, nothing is said."""
        async with self.fresh() as store:
            assert await store.beliefs(POOL, ["Ann", "Bob"]) == {}

    async def test_outcomes_add_up(self) -> None:
        """Each adds one, split by its credit; only who is asked for is told of."""
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("b", credit=0.25), outcome("c", "Bob", 0.0)])
            await store.observe([outcome("d", credit=0.0)])
            assert await store.beliefs(POOL, ["Ann"]) == {"Ann": Belief(1.25, 1.75)}
            both = await store.beliefs(POOL, ["Bob", "Cid", "Ann"])
            assert both == {"Ann": Belief(1.25, 1.75), "Bob": Belief(0.0, 1.0)}

    async def test_an_outcome_counts_once(self) -> None:
        """The same event again changes nothing, in one call or in another."""
        async with self.fresh() as store:
            for _ in range(3):
                await store.observe([outcome("a"), outcome("a"), outcome("b", "Bob", decay=0.5)])
            both = await store.beliefs(POOL, ["Ann", "Bob"])
            assert both == {"Ann": Belief(0.5, 0.0), "Bob": Belief(1.0, 0.0)}

    async def test_events_of_one_id_in_two_runs_are_two(self) -> None:
        """An id says something only together with its run."""
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("a")._replace(run="another")])
            assert await store.beliefs(POOL, ["Ann"]) == {"Ann": Belief(2.0, 0.0)}

    async def test_tenants_do_not_meet(self) -> None:
        """An event of one id in runs of one id counts for each tenant that has it."""
        theirs = POOL._replace(tenant="globex")
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("a", credit=0.0, pool=theirs)])
            assert await store.beliefs(POOL, ["Ann"]) == {"Ann": Belief(1.0, 0.0)}
            assert await store.beliefs(theirs, ["Ann"]) == {"Ann": Belief(0.0, 1.0)}

    async def test_pools_are_apart(self) -> None:
        """Nothing is known of one tenant, workflow or category by another, however they are
        called."""
        pools = [
            POOL,
            Pool("other", "Desk", "billing"),
            Pool("acme", "Other", "billing"),
            Pool("acme", "Desk", "other"),
            Pool("acmeDesk", "", "billing"),
            Pool("acme", "Desk_billing", ""),
        ]
        async with self.fresh() as store:
            for number, pool in enumerate(pools):
                seen = [outcome(f"{number}.{n}", pool=pool) for n in range(number + 1)]
                await store.observe([*seen, outcome(f"{number}", "B", decay=0.5, pool=pool)])
            for number, pool in enumerate(pools):
                known = await store.beliefs(pool, ["Ann"])
                assert known == {"Ann": Belief((number + 1) / 2, 0.0)}

    async def test_what_fades(self) -> None:
        """With decay, what its pool knew before weighs less, and the outcome itself does not."""
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("b", "Bob", 0.0)])
            await store.observe([outcome("c", credit=0.0, decay=0.5)])
            both = await store.beliefs(POOL, ["Ann", "Bob"])
            assert both == {"Ann": Belief(0.5, 1.0), "Bob": Belief(0.0, 0.5)}

    async def test_names_of_any_kind(self) -> None:
        """Names are texts, and nothing is read into them."""
        pool = Pool("a'b", 'c"d\\', "é € 😀 %s {} _ #")
        async with self.fresh() as store:
            await store.observe([outcome("1'", "x_y'", pool=pool)])
            assert await store.beliefs(pool, ["x_y'", "x"]) == {"x_y'": Belief(1.0, 0.0)}

    async def test_nobody_overwrites_another(self) -> None:
        """Outcomes that come at the same time all count, and those that come twice once."""
        async with self.fresh() as store:
            async with anyio.create_task_group() as tasks:
                for number in range(2 * CROWD):
                    agent = "Ann" if number % 2 else "Bob"
                    one = outcome(str(number // 4), agent)._replace(run=agent)
                    tasks.start_soon(store.observe, [one])
            known = await store.beliefs(POOL, ["Ann", "Bob"])
            assert known == dict.fromkeys(("Ann", "Bob"), Belief(CROWD / 2, 0.0))

    async def test_nothing_to_add(self) -> None:
        """No outcome at all is fine."""
        async with self.fresh() as store:
            await store.observe([])
            assert await store.beliefs(POOL, []) == {}
