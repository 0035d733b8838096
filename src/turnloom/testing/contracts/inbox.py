"""Contract suite for inboxes."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import anyio

from turnloom.log.ports import EventLog
from turnloom.log.spec import RunKey
from turnloom.runtime.ports import Inbox
from turnloom.runtime.spec import Reply, Stop
from turnloom.testing.contracts.facts import OTHER, PATIENCE, TENANT, event, events, key

STOP = Stop("ann", "enough")
REPLY = Reply("q1", {"plan": ["ü", None, 1.5]}, "ann")


class InboxContract:
    """The suite for `Inbox`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Inbox, EventLog]]:
        """An empty inbox, and its log."""
        raise NotImplementedError

    async def test_messages_wait_oldest_first(self) -> None:
        """Messages are pending for their run, unchanged and in order."""
        async with self.fresh() as (inbox, _):
            await inbox.offer(key("a"), "z", REPLY)
            await inbox.offer(key("b"), "b1", STOP)
            await inbox.offer(key("a"), "y", STOP)
            assert list(await inbox.pending(key("a"))) == [("z", REPLY), ("y", STOP)]
            assert list(await inbox.pending(key("b"))) == [("b1", STOP)]
            assert not await inbox.pending(key("c"))

    async def test_a_repeat_changes_nothing(self) -> None:
        """A repeated id keeps the first message, and `offer` returns False."""
        async with self.fresh() as (inbox, log):
            assert await inbox.offer(key("a"), "1", STOP)
            assert not await inbox.offer(key("a"), "1", REPLY)
            assert await inbox.offer(key("b"), "1", REPLY)
            assert list(await inbox.pending(key("a"))) == [("1", STOP)]
            assert list(await inbox.pending(key("b"))) == [("1", REPLY)]
            await log.append(key("a"), [event("a", 1, id="1")], 0)
            assert not await inbox.offer(key("a"), "1", REPLY)

    async def test_a_message_in_the_log_is_not_pending(self) -> None:
        """A message is consumed when the log has its id; repeating it has no effect."""
        async with self.fresh() as (inbox, log):
            await inbox.offer(key("a"), "1", STOP)
            await inbox.offer(key("a"), "2", REPLY)
            await log.append(key("a"), [event("a", 1, id="1")], 0)
            await log.append(key("b"), [event("b", 1, id="2")], 0)
            for _ in range(2):
                assert [id for id, _ in await inbox.pending(key("a"))] == ["2"]
                await inbox.offer(key("a"), "1", STOP)
            await log.append(key("a"), [event("a", 2, id="2")], 1)
            assert not await inbox.pending(key("a"))
            await inbox.offer(key("a"), "2", REPLY)
            assert not await inbox.pending(key("a"))

    async def test_a_message_behind_its_event_is_not_pending(self) -> None:
        """A message that arrives after its event is not pending."""
        async with self.fresh() as (inbox, log):
            await log.append(key("a"), [event("a", 1, id="1")], 0)
            await inbox.offer(key("a"), "1", STOP)
            assert not await inbox.pending(key("a"))

    async def test_a_message_is_consumed_among_many_events(self) -> None:
        """A message is consumed by the event with its id, anywhere in the log."""
        async with self.fresh() as (inbox, log):
            await log.append(key("a"), events("a", 5), 0)
            for id in ("kept", "taken", "a/500x"):
                await inbox.offer(key("a"), id, STOP)
            for after in range(5, 1005, 100):
                await log.append(key("a"), events("a", 100, after), after)
            assert len(await inbox.pending(key("a"))) == 3
            batch = [event("a", 1006), event("a", 1007, id="taken"), event("a", 1008)]
            await log.append(key("a"), batch, 1005)
            assert [id for id, _ in await inbox.pending(key("a"))] == ["kept", "a/500x"]
            await inbox.offer(key("a"), "a/500", STOP)
            assert [id for id, _ in await inbox.pending(key("a"))] == ["kept", "a/500x"]

    async def test_odd_ids(self) -> None:
        """Any string is a valid run id or message id."""
        async with self.fresh() as (inbox, _):
            for name in ("a/b c", "it's", 'say "ü"', "走る"):
                await inbox.offer(key(name), name, STOP)
                assert list(await inbox.pending(key(name))) == [(name, STOP)]

    async def test_tenants_are_separate(self) -> None:
        """Messages are separate for each tenant, even with the same ids."""
        async with self.fresh() as (inbox, log):
            assert await inbox.offer(key("a"), "1", STOP)
            assert await inbox.offer(key("a", OTHER), "1", REPLY)
            assert list(await inbox.pending(key("a"))) == [("1", STOP)]
            await log.append(key("a"), [event("a", 1, id="1")], 0)
            assert not await inbox.pending(key("a"))
            assert await inbox.offer(key("a"), "2", STOP)  # may drop consumed messages
            assert list(await inbox.pending(key("a"))) == [("2", STOP)]
            assert list(await inbox.pending(key("a", OTHER))) == [("1", REPLY)]
            assert not await inbox.pending(key("a", ""))

    async def test_arrivals_have_tenants(self) -> None:
        """Arrivals include the tenant of the run."""
        async with self.fresh() as (inbox, _):
            arrivals = inbox.arrivals()
            await inbox.offer(key("a", OTHER), "1", STOP)
            with anyio.fail_after(PATIENCE):
                assert await anext(arrivals) == key("a", OTHER)

    async def test_arrivals_begin_now(self) -> None:
        """Arrivals contain all mail after the call, and none from before."""
        async with self.fresh() as (inbox, _):
            await inbox.offer(key("before"), "1", STOP)
            arrivals = inbox.arrivals()
            await inbox.offer(key("a"), "1", STOP)
            await inbox.offer(key("b"), "1", STOP)
            assert await _arrived(arrivals, {"a", "b"}) == {"a", "b"}

    async def test_arrivals_reach_every_reader(self) -> None:
        """Every reader receives all arrivals, including those of a run that it saw before."""
        async with self.fresh() as (inbox, _):
            readers = [inbox.arrivals(), inbox.arrivals()]
            for n in range(3):
                async with anyio.create_task_group() as tasks:
                    for reader in readers:
                        tasks.start_soon(_arrived, reader, {"a", f"b{n}"})
                    await anyio.sleep(0.01)
                    await inbox.offer(key("a"), str(n), STOP)
                    await inbox.offer(key(f"b{n}"), str(n), STOP)

    async def test_arrivals_survive_consumed_mail(self) -> None:
        """Arrivals continue after earlier messages were consumed."""
        async with self.fresh() as (inbox, log):
            arrivals = inbox.arrivals()
            for n in range(1, 6):
                await inbox.offer(key("a"), f"m{n}", STOP)
                assert await _arrived(arrivals, {"a"}) == {"a"}
                await log.append(key("a"), [event("a", n, id=f"m{n}")], n - 1)
                assert not await inbox.pending(key("a"))

    async def test_many_offers_at_once(self) -> None:
        """Concurrent offers are all kept, and all arrive."""
        runs = {f"run {n}" for n in range(50)}
        async with self.fresh() as (inbox, _):
            arrivals = inbox.arrivals()
            async with anyio.create_task_group() as tasks:
                for run in runs:
                    tasks.start_soon(inbox.offer, key(run), "1", STOP)
            assert await _arrived(arrivals, runs) == runs
            for run in runs:
                assert len(await inbox.pending(key(run))) == 1


async def _arrived(arrivals: AsyncIterator[RunKey], wanted: set[str]) -> set[str]:
    """The runs that arrive, read until all wanted ones have."""
    seen: set[str] = set()
    with anyio.fail_after(PATIENCE):
        while not wanted <= seen:
            arrived = await anext(arrivals)
            assert arrived.tenant == TENANT
            seen.add(arrived.id)
    return seen
