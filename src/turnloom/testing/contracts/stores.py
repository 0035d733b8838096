"""Contract suite for stores that are shared by processes."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing

import anyio

from turnloom.errors import Conflict, RunBusy, UsageError
from turnloom.runtime.ports import Store
from turnloom.runtime.spec import Stop, StoredPlan
from turnloom.testing.contracts.facts import PATIENCE, TENANT, event, events, key, refused

STOP = Stop("ann", "enough")
PLAN = StoredPlan("shop", "{}")


class SharedStoreContract:
    """The suite for a `Store` that several processes open."""

    def fresh(self) -> AbstractAsyncContextManager[Callable[[], Store]]:
        """A function that opens the same store, empty at first; the suite closes each result."""
        raise NotImplementedError

    async def test_data_outlives_a_store(self) -> None:
        """Stored data is there when the store is closed and opened again."""
        async with self.fresh() as open:
            async with aclosing(open()) as store:
                await store.log.append(key("a"), events("a", 3), 0)
                await store.inbox.offer(key("a"), "mail", STOP)
                await store.snapshots.save(key("a"), 2, b"two")
                await store.plans.keep(TENANT, "digest", PLAN)
            async with aclosing(open()) as store:
                assert list(await store.log.read(key("a"))) == events("a", 3)
                assert list(await store.inbox.pending(key("a"))) == [("mail", STOP)]
                assert await store.snapshots.load(key("a")) == (2, b"two")
                assert await store.plans.find(TENANT, "digest") == PLAN
                assert not await store.claims.held(key("a"))

    async def test_open_stores_see_each_others_appends(self) -> None:
        """Two open stores see each other's appends at once."""
        async with self.fresh() as open, aclosing(open()) as ours, aclosing(open()) as theirs:
            for number in range(3):
                await ours.log.append(key("a"), events("a", 1, 2 * number), 2 * number)
                await theirs.log.append(key("a"), events("a", 1, 2 * number + 1), 2 * number + 1)
                for store in (ours, theirs):
                    assert len(await store.log.read(key("a"))) == 2 * number + 2
                    ((first, last),) = await store.log.runs(TENANT, 5)
                    assert (first.seq, last.seq) == (1, 2 * number + 2)

    async def test_of_two_writers_one_wins(self) -> None:
        """A position or an id that another store has written is a conflict."""
        async with self.fresh() as open, aclosing(open()) as ours, aclosing(open()) as theirs:
            await ours.log.append(key("a"), events("a", 2), 0)
            with refused(Conflict):
                await theirs.log.append(key("a"), [event("a", 1, id="other")], 0)
            with refused(Conflict):
                await theirs.log.append(key("a"), [event("a", 3, id="a/1")], 2)
            assert list(await theirs.log.append(key("a"), events("a", 2), 0)) == events("a", 2)
            assert len(await ours.log.read(key("a"))) == 2

    async def test_subscriptions_see_appends_of_other_stores(self) -> None:
        """A subscription receives the events that another store appends."""
        async with self.fresh() as open, aclosing(open()) as ours, aclosing(open()) as theirs:
            seen: list[int] = []

            async def follow() -> None:
                async with aclosing(theirs.log.subscribe(key("a"))) as followed:
                    async for each in followed:
                        seen.append(each.seq)
                        if each.seq == 4:
                            return

            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(follow)
                    for number in range(4):
                        await ours.log.append(key("a"), events("a", 1, number), number)
            assert seen == [1, 2, 3, 4]

    async def test_messages_reach_all_stores(self) -> None:
        """A message offered to one store arrives in the other, once."""
        async with self.fresh() as open, aclosing(open()) as ours, aclosing(open()) as theirs:
            arrivals = theirs.inbox.arrivals()
            assert await ours.inbox.offer(key("a"), "1", STOP)
            assert not await theirs.inbox.offer(key("a"), "1", STOP)
            with anyio.fail_after(PATIENCE):
                assert await anext(arrivals) == key("a")
            await theirs.log.append(key("a"), [event("a", 1, id="1")], 0)
            assert not await ours.inbox.pending(key("a"))

    async def test_a_claim_counts_in_all_stores(self) -> None:
        """A run that one store claims is busy in the other until it is released."""
        async with self.fresh() as open, aclosing(open()) as ours, aclosing(open()) as theirs:
            async with ours.claims.claim(key("a")):
                assert await theirs.claims.held(key("a"))
                with refused(RunBusy):
                    async with theirs.claims.claim(key("a")):
                        raise AssertionError("Two claims hold the run at once.")
            async with theirs.claims.claim(key("a")):
                assert await ours.claims.held(key("a"))

    async def test_a_closed_store_refuses(self) -> None:
        """A closed store rejects every call; closing it again does nothing."""
        async with self.fresh() as open:
            store = open()
            await store.log.append(key("a"), events("a", 1), 0)
            await store.aclose()
            await store.aclose()
            with refused(UsageError):
                await store.log.append(key("a"), events("a", 1, 1), 1)
            with refused(UsageError):
                await store.log.read(key("a"))
            with refused(UsageError):
                await store.inbox.offer(key("a"), "1", STOP)
