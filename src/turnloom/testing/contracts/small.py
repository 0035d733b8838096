"""Contract suites for beliefs, results, plans, snapshots and verifiers."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

import anyio

from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.runtime.ports import Plans, Snapshots, Store, Verifier
from turnloom.runtime.spec import StoredPlan, VerifiedRun
from turnloom.testing.contracts.facts import OTHER, TENANT, events, key

POOL = Pool("acme", "Desk", "billing")

# The number of concurrent outcomes.
CROWD = 40


def outcome(
    event: str, agent: str = "Ann", credit: float = 1.0, decay: float = 0.0, pool: Pool = POOL
) -> Observation:
    """An observation of an agent's outcome."""
    return Observation("run", event, pool, agent, credit=credit, decay=decay)


class BeliefStoreContract:
    """The suite for `BeliefStore`."""

    def fresh(self) -> AbstractAsyncContextManager[BeliefStore]:
        """An empty belief store."""
        raise NotImplementedError

    async def test_nothing_is_known_at_first(self) -> None:
        """Agents without outcomes are missing from the result."""
        async with self.fresh() as store:
            assert await store.beliefs(POOL, ["Ann", "Bob"]) == {}

    async def test_outcomes_add_up(self) -> None:
        """Each outcome adds one, split by its credit; only requested agents are returned."""
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("b", credit=0.25), outcome("c", "Bob", 0.0)])
            await store.observe([outcome("d", credit=0.0)])
            assert await store.beliefs(POOL, ["Ann"]) == {"Ann": Belief(1.25, 1.75)}
            both = await store.beliefs(POOL, ["Bob", "Cid", "Ann"])
            assert both == {"Ann": Belief(1.25, 1.75), "Bob": Belief(0.0, 1.0)}

    async def test_an_outcome_counts_once(self) -> None:
        """A repeated event is ignored, in the same call and in another one."""
        async with self.fresh() as store:
            for _ in range(3):
                await store.observe([outcome("a"), outcome("a"), outcome("b", "Bob", decay=0.5)])
            both = await store.beliefs(POOL, ["Ann", "Bob"])
            assert both == {"Ann": Belief(0.5, 0.0), "Bob": Belief(1.0, 0.0)}

    async def test_events_of_one_id_in_two_runs_are_two(self) -> None:
        """An event is identified by its run and its id."""
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("a")._replace(run="another")])
            assert await store.beliefs(POOL, ["Ann"]) == {"Ann": Belief(2.0, 0.0)}

    async def test_tenants_are_separate(self) -> None:
        """Tenants have separate outcomes, even with the same event and run ids."""
        theirs = POOL._replace(tenant="globex")
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("a", credit=0.0, pool=theirs)])
            assert await store.beliefs(POOL, ["Ann"]) == {"Ann": Belief(1.0, 0.0)}
            assert await store.beliefs(theirs, ["Ann"]) == {"Ann": Belief(0.0, 1.0)}

    async def test_pools_are_separate(self) -> None:
        """Pools of another tenant, workflow or category are separate, whatever their names."""
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

    async def test_decay(self) -> None:
        """Decay reduces the earlier outcomes of a pool, not the new one."""
        async with self.fresh() as store:
            await store.observe([outcome("a"), outcome("b", "Bob", 0.0)])
            await store.observe([outcome("c", credit=0.0, decay=0.5)])
            both = await store.beliefs(POOL, ["Ann", "Bob"])
            assert both == {"Ann": Belief(0.5, 1.0), "Bob": Belief(0.0, 0.5)}

    async def test_names_of_any_kind(self) -> None:
        """Any string is a valid name."""
        pool = Pool("a'b", 'c"d\\', "é € 😀 %s {} _ #")
        async with self.fresh() as store:
            await store.observe([outcome("1'", "x_y'", pool=pool)])
            assert await store.beliefs(pool, ["x_y'", "x"]) == {"x_y'": Belief(1.0, 0.0)}

    async def test_concurrent_outcomes(self) -> None:
        """Concurrent outcomes all count, repeated ones once."""
        async with self.fresh() as store:
            async with anyio.create_task_group() as tasks:
                for number in range(2 * CROWD):
                    agent = "Ann" if number % 2 else "Bob"
                    one = outcome(str(number // 4), agent)._replace(run=agent)
                    tasks.start_soon(store.observe, [one])
            known = await store.beliefs(POOL, ["Ann", "Bob"])
            assert known == dict.fromkeys(("Ann", "Bob"), Belief(CROWD / 2, 0.0))

    async def test_nothing_to_add(self) -> None:
        """An empty list of outcomes changes nothing."""
        async with self.fresh() as store:
            await store.observe([])
            assert await store.beliefs(POOL, []) == {}


NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
INSTANT = timedelta(microseconds=1)


class ResultsContract:
    """The suite for `Results`."""

    def fresh(self) -> AbstractAsyncContextManager[Results]:
        """An empty result store."""
        raise NotImplementedError

    async def test_nothing_is_there_at_first(self) -> None:
        """An unknown key yields None."""
        async with self.fresh() as results:
            assert await results.find(TENANT, "a", NOW) is None

    async def test_a_result_is_found_by_its_key(self) -> None:
        """A result is found unchanged under its key, and under no other."""
        async with self.fresh() as results:
            value = {"update": {"total": 3, "names": ["ä", ""]}, "confidence": 0.5}
            await results.keep(TENANT, "a", value, now=NOW, until=None)
            assert await results.find(TENANT, "a", NOW + 1000 * SECOND) == value
            assert await results.find(TENANT, "b", NOW) is None

    async def test_a_result_takes_the_place_of_another(self) -> None:
        """A new result replaces the earlier one and its expiry."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", 1, now=NOW, until=NOW + SECOND)
            await results.keep(TENANT, "a", 2, now=NOW, until=NOW + 3 * SECOND)
            assert await results.find(TENANT, "a", NOW + 2 * SECOND) == 2

    async def test_a_result_is_there_until_its_time_is_over(self) -> None:
        """A result is found up to and including its last instant."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", 1, now=NOW, until=NOW + SECOND)
            assert await results.find(TENANT, "a", NOW + SECOND) == 1
            assert await results.find(TENANT, "a", NOW + SECOND + INSTANT) is None

    async def test_expired_results_are_removed(self) -> None:
        """Storing a result removes only expired ones."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", 1, now=NOW, until=NOW + SECOND)
            await results.keep(TENANT, "b", 2, now=NOW, until=None)
            await results.keep(TENANT, "c", 3, now=NOW + 2 * SECOND, until=NOW + 4 * SECOND)
            found = [await results.find(TENANT, key, NOW + 3 * SECOND) for key in "abc"]
            assert found == [None, 2, 3]

    async def test_tenants_are_separate(self) -> None:
        """Results and their expiry are separate for each tenant."""
        async with self.fresh() as results:
            await results.keep(TENANT, "a", "ours", now=NOW, until=NOW + SECOND)
            assert await results.find(OTHER, "a", NOW) is None
            late = NOW + 2 * SECOND
            await results.keep(OTHER, "a", "theirs", now=late, until=None)
            assert await results.find(TENANT, "a", NOW) == "ours"
            assert await results.find(OTHER, "a", NOW) == "theirs"

    async def test_results_of_a_person_are_erased(self) -> None:
        """If results can be erased, those of a person are, and no others; a dry run counts them."""
        async with self.fresh() as results:
            erase = getattr(results, "erase", None)
            if erase is None:
                return
            for tenant, result, user in (
                (TENANT, "a", "ann"),
                (TENANT, "b", "ann"),
                (TENANT, "c", "%"),
                (TENANT, "d", ""),
                (OTHER, "a", "ann"),
            ):
                await results.keep(tenant, result, 1, now=NOW, until=None, user=user)
            assert await erase(TENANT, "ann", dry_run=True) == 2
            assert await results.find(TENANT, "a", NOW) == 1
            assert await erase(TENANT, "ann") == 2
            assert await erase(TENANT, "ann") == 0
            found = [await results.find(TENANT, result, NOW) for result in "abcd"]
            assert found == [None, None, 1, 1]
            assert await results.find(OTHER, "a", NOW) == 1


PLAN = StoredPlan("shop", '{"agents":["Bäcker"]}', "Bäcker: what was published")


class PlansContract:
    """The suite for `Plans`."""

    def fresh(self) -> AbstractAsyncContextManager[Plans]:
        """An empty plan store."""
        raise NotImplementedError

    async def test_nothing_is_there_at_first(self) -> None:
        """An unknown digest yields None."""
        async with self.fresh() as plans:
            assert await plans.find(TENANT, "a") is None

    async def test_a_plan_is_found_by_its_digest(self) -> None:
        """A plan is found unchanged under its digest, and under no other."""
        async with self.fresh() as plans:
            await plans.keep(TENANT, "a", PLAN)
            assert await plans.find(TENANT, "a") == PLAN
            assert await plans.find(TENANT, "b") is None

    async def test_a_plan_that_is_kept_stays_as_it_is(self) -> None:
        """A stored plan is never replaced."""
        async with self.fresh() as plans:
            await plans.keep(TENANT, "a", PLAN)
            await plans.keep(TENANT, "a", StoredPlan("other", "{}"))
            assert await plans.find(TENANT, "a") == PLAN

    async def test_tenants_are_separate(self) -> None:
        """Plans are separate for each tenant."""
        theirs = StoredPlan("other", "{}")
        async with self.fresh() as plans:
            await plans.keep(TENANT, "a", PLAN)
            assert await plans.find(OTHER, "a") is None
            await plans.keep(OTHER, "a", theirs)
            assert await plans.find(TENANT, "a") == PLAN
            assert await plans.find(OTHER, "a") == theirs


class SnapshotsContract:
    """The suite for `Snapshots`."""

    def fresh(self) -> AbstractAsyncContextManager[Snapshots]:
        """An empty snapshot store."""
        raise NotImplementedError

    async def test_nothing_is_kept_at_first(self) -> None:
        """A run without a snapshot yields None."""
        async with self.fresh() as snapshots:
            assert await snapshots.load(key("a")) is None

    async def test_the_last_state_is_kept(self) -> None:
        """A later state replaces an earlier one of the same run."""
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 3, b"three")
            await snapshots.save(key("b"), 1, b"")
            await snapshots.save(key("a"), 9, b"\x00nine\xff")
            assert await snapshots.load(key("a")) == (9, b"\x00nine\xff")
            assert await snapshots.load(key("b")) == (1, b"")

    async def test_tenants_are_separate(self) -> None:
        """Snapshots are separate for each tenant."""
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 3, b"ours")
            assert await snapshots.load(key("a", OTHER)) is None
            await snapshots.save(key("a", OTHER), 1, b"theirs")
            assert await snapshots.load(key("a")) == (3, b"ours")
            assert await snapshots.load(key("a", OTHER)) == (1, b"theirs")

    async def test_an_earlier_state_does_not_replace_a_later_one(self) -> None:
        """An earlier state does not replace a later one; the same position can be saved again."""
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 9, b"nine")
            await snapshots.save(key("a"), 3, b"three")
            assert await snapshots.load(key("a")) == (9, b"nine")
            await snapshots.save(key("a"), 9, b"again")
            assert await snapshots.load(key("a")) == (9, b"again")

    async def test_a_large_state(self) -> None:
        """A state of several megabytes is returned unchanged."""
        state = bytes(range(256)) * 16_384
        async with self.fresh() as snapshots:
            await snapshots.save(key("a"), 1, state)
            assert await snapshots.load(key("a")) == (1, state)


class VerifierContract:
    """The suite for a `Verifier`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Verifier, Store]]:
        """The verifier of an empty store, and the store."""
        raise NotImplementedError

    async def test_sound_runs_have_no_problems(self) -> None:
        """Sound runs are returned with their number of events, oldest first."""
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

    async def test_tenants_are_separate(self) -> None:
        """Runs of other tenants are not verified."""
        async with self.fresh() as (verifier, store):
            await store.log.append(key("a", OTHER), events("a", 1), 0)
            assert not [run async for run in verifier.verify(TENANT)]
            assert not [run async for run in verifier.verify(TENANT, "a")]
            assert [run async for run in verifier.verify(OTHER)] == [VerifiedRun("a", 1)]
