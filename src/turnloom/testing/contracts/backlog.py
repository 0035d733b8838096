"""Contract suite for the search of missed wakes."""

from contextlib import AbstractAsyncContextManager

from turnloom.log.events import RunFinished, RunPaused
from turnloom.runtime.ports import Backlog, Store
from turnloom.runtime.spec import Reply
from turnloom.testing.contracts.facts import event, key, started

HOUR = 3600.0


class BacklogContract:
    """The suite for `Backlog`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[Store, Backlog]]:
        """An empty store, and its backlog."""
        raise NotImplementedError

    async def test_runs_that_should_be_driven(self) -> None:
        """Those that were started and neither rest nor ended, unless a process holds them."""
        async with self.fresh() as (store, backlog):
            for run in ("open", "held", "resting", "over"):
                await store.log.append(key(run), [started(run, "flow", "u1", 1)], 0)
            await store.log.append(key("resting"), [event("resting", 2, RunPaused(""))], 1)
            await store.log.append(key("over"), [event("over", 2, RunFinished(""))], 1)
            async with store.claims.claim(key("held")):
                assert await backlog.overdue(0, 10) == [key("open")]
            assert {*await backlog.overdue(0, 10)} == {key("open"), key("held")}
            assert len(await backlog.overdue(0, 1)) == 1
            assert len(await backlog.overdue(HOUR, 10)) == 2  # they were started long ago

    async def test_runs_with_mail(self) -> None:
        """Those that rest and got mail some time ago."""
        async with self.fresh() as (store, backlog):
            await store.log.append(key("resting"), [started("resting", "flow", "u1", 1)], 0)
            await store.log.append(key("resting"), [event("resting", 2, RunPaused(""))], 1)
            await store.inbox.offer(key("resting"), "answer", Reply("q", 1, "u1"))
            assert await backlog.overdue(0, 10) == [key("resting")]
            assert await backlog.overdue(HOUR, 10) == []
