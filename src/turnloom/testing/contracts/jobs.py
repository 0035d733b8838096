"""Contract suite for jobs."""

from contextlib import AbstractAsyncContextManager

import anyio
import msgspec

from turnloom.jobs.ports import JobStore
from turnloom.jobs.spec import JobResult, StoredJob
from turnloom.testing.contracts.beside import CROWD, MINUTE, NOON, ODD
from turnloom.testing.contracts.facts import OTHER, TENANT


def job(id: str, by: str = "ann") -> StoredJob:
    """A job on three runs that has just begun."""
    return StoredJob(id, "retry", by, 3, begun=NOON, alive=NOON, name=ODD)


def result(number: int, run: str = "a") -> JobResult:
    """A result about a run."""
    return JobResult(number, run, f'{{"number":{number}}}'.encode())


class JobsContract:
    """The suite for `JobStore`."""

    def fresh(self) -> AbstractAsyncContextManager[JobStore]:
        """An empty store of jobs."""
        raise NotImplementedError

    async def test_a_job_comes_back(self) -> None:
        """A job comes back as it was added; a second one of its id changes nothing."""
        async with self.fresh() as jobs:
            await jobs.add(TENANT, job("a"))
            await jobs.add(TENANT, job("a", "bob"))
            assert await jobs.lookup(TENANT, "a") == job("a")
            for unknown in ("", "A", "b", "%"):
                assert await jobs.lookup(TENANT, unknown) is None
            assert not await jobs.results(TENANT, "a")

    async def test_lists(self) -> None:
        """Jobs are listed latest first, in pages."""
        async with self.fresh() as jobs:
            for number in range(4):
                await jobs.add(TENANT, job(f"j{number}"))
            assert [each.id for each in await jobs.list(TENANT, 3)] == ["j3", "j2", "j1"]
            assert [each.id for each in await jobs.list(TENANT, 3, before="j1")] == ["j0"]
            assert not await jobs.list(TENANT, 3, before="none")
            assert not await jobs.list(TENANT, 0)

    async def test_progress(self) -> None:
        """A job advances with its results; a repeated one changes nothing."""
        async with self.fresh() as jobs:
            await jobs.add(TENANT, job("a"))
            for number in (1, 2, 2):
                await jobs.advance(TENANT, "a", NOON + number * MINUTE, result(number))
            found = await jobs.advance(TENANT, "a", NOON)
            expected = msgspec.structs.replace(job("a"), done=2, alive=NOON + 2 * MINUTE)
            assert found == expected == await jobs.lookup(TENANT, "a")
            assert list(await jobs.results(TENANT, "a")) == [result(1), result(2)]
            assert await jobs.advance(TENANT, "none", NOON, result(1)) is None

    async def test_the_first_end_stands(self) -> None:
        """An ended job is not changed any more, and takes no results."""
        async with self.fresh() as jobs:
            await jobs.add(TENANT, job("a"))
            await jobs.advance(TENANT, "a", NOON, result(1))
            ended = await jobs.end(TENANT, "a", "failed", NOON + MINUTE, problem=ODD)
            assert ended is not None
            assert (ended.status, ended.problem, ended.done) == ("failed", ODD, 1)
            assert ended.alive == NOON + MINUTE
            assert await jobs.end(TENANT, "a", "done", NOON + 2 * MINUTE) == ended
            assert await jobs.advance(TENANT, "a", NOON + 3 * MINUTE, result(2)) == ended
            assert list(await jobs.results(TENANT, "a")) == [result(1)]
            assert await jobs.end(TENANT, "none", "done", NOON) is None

    async def test_many_at_once(self) -> None:
        """Of ends at once, one stands, and all see it."""
        async with self.fresh() as jobs:
            await jobs.add(TENANT, job("a"))
            seen: list[StoredJob | None] = []

            async def end(number: int) -> None:
                seen.append(await jobs.end(TENANT, "a", "done", NOON + number * MINUTE))

            async with anyio.create_task_group() as tasks:
                for number in range(CROWD):
                    tasks.start_soon(end, number)
            assert len(seen) == CROWD and all(each == seen[0] for each in seen)

    async def test_tenants_are_separate(self) -> None:
        """A tenant reads, changes and removes its own jobs alone, also under the same id."""
        async with self.fresh() as jobs:
            await jobs.add(TENANT, job("a"))
            await jobs.advance(TENANT, "a", NOON, result(1))
            assert await jobs.lookup(OTHER, "a") is None
            assert not await jobs.list(OTHER, 9) and not await jobs.results(OTHER, "a")
            assert await jobs.advance(OTHER, "a", NOON, result(2)) is None
            assert await jobs.end(OTHER, "a", "cancelled", NOON) is None
            await jobs.add(OTHER, job("a", "eve"))
            assert not await jobs.results(OTHER, "a")
            assert await jobs.erase(OTHER, "ann") == 0
            await jobs.drop(OTHER, "a")
            assert await jobs.lookup(OTHER, "a") is None
            found = await jobs.lookup(TENANT, "a")
            assert found is not None and (found.status, found.done) == ("running", 1)
            assert list(await jobs.results(TENANT, "a")) == [result(1)]
            await jobs.add(OTHER, job("b"))
            assert not await jobs.list(TENANT, 9, before="b")

    async def test_removal(self) -> None:
        """A dropped job is gone with its results; those of a person are removed together."""
        async with self.fresh() as jobs:
            for id, by in (("a", "ann"), ("b", "ann"), ("c", "bob")):
                await jobs.add(TENANT, job(id, by))
                await jobs.advance(TENANT, id, NOON, result(1))
            await jobs.drop(TENANT, "a")
            await jobs.drop(TENANT, "a")
            assert await jobs.lookup(TENANT, "a") is None
            assert not await jobs.results(TENANT, "a")
            assert await jobs.erase(TENANT, "ann", dry_run=True) == 1
            assert await jobs.erase(TENANT, "ann") == 1
            assert await jobs.erase(TENANT, "ann") == 0
            assert not await jobs.results(TENANT, "b")
            assert [each.id for each in await jobs.list(TENANT, 9)] == ["c"]
            assert list(await jobs.results(TENANT, "c")) == [result(1)]
