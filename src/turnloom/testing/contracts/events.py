"""Contract suite for event logs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar, cast

import anyio
import anyio.lowlevel

from turnloom.errors import Conflict, UnknownKind, UnknownRun
from turnloom.kernel.digests import digest
from turnloom.log.events import ENDS, RunCancelled, RunFailed, RunFinished, RunPaused
from turnloom.log.logic import is_chosen, status_of
from turnloom.log.ports import CommitSignals, EventLog
from turnloom.log.spec import Event, RunFilter
from turnloom.testing.contracts.facts import (
    OTHER,
    PATIENCE,
    TENANT,
    Measured,
    Noted,
    UnknownFact,
    event,
    events,
    key,
    refused,
    started,
    until,
)

T = TypeVar("T")

ODD_RUNS = ("two words", "a/b/../c", 'it\'s "quoted"', "läuft-走る-🚀", "%_;--", "x" * 500)


class EventLogContract:
    """The suite for `EventLog`."""

    def fresh(self) -> AbstractAsyncContextManager[EventLog]:
        """An empty log with `CODEC`."""
        raise NotImplementedError

    async def test_commits_are_signalled(self) -> None:
        """A log with `commits` yields at once, and again after an append of any tenant, also one
        that happens before it is awaited."""
        async with self.fresh() as log:
            if not hasattr(log, "commits"):
                return
            signals = cast(CommitSignals, log)
            async with aclosing(signals.commits()) as commits:
                await anext(commits)
                for tenant in (TENANT, OTHER):
                    await log.append(key("a", tenant), events("a", 1), 0)
                    with anyio.fail_after(PATIENCE):
                        await anext(commits)

    async def test_append_gives_back_and_read_gives_the_same_in_order(self) -> None:
        """`append` returns the stored events, and `read` returns them in order."""
        async with self.fresh() as log:
            first, second = events("a", 3), events("a", 2, after=3)
            assert list(await log.append(key("a"), first, 0)) == first
            assert list(await log.append(key("a"), second, 3)) == second
            assert list(await log.read(key("a"))) == first + second

    async def test_every_field_survives(self) -> None:
        """Every field of an event and of its data is returned unchanged."""
        fact = Measured({"n": [1, 2.5, None, True, "ü"]}, "kg", (1, 2), {"k": "v"})
        offered = [event("a", 1, fact, id='odd "id"\n/ ü', cause=7)]
        async with self.fresh() as log:
            await log.append(key("a"), offered, 0)
            (stored,) = await log.read(key("a"))
            assert stored == offered[0]
            assert stored.at.tzinfo is not None
            assert type(stored.data) is Measured

    async def test_runs_are_separate(self) -> None:
        """Positions and ids are separate for each run."""
        async with self.fresh() as log:
            for run in ("a", "b"):
                await log.append(key(run), [event(run, 1, id="same")], 0)
            assert [e.run for e in await log.read(key("b"))] == ["b"]

    async def test_tenants_are_separate(self) -> None:
        """Positions, ids and ends are separate for each tenant, even for runs with the same id."""
        async with self.fresh() as log:
            for number, tenant in enumerate((TENANT, OTHER, ""), 1):
                batch = [event("a", n + 1, Noted(tenant), id=str(n)) for n in range(number)]
                assert list(await log.append(key("a", tenant), batch, 0)) == batch
            for number, tenant in enumerate((TENANT, OTHER, ""), 1):
                assert [e.data for e in await log.read(key("a", tenant))] == number * [
                    Noted(tenant)
                ]
                assert _places(await log.runs(tenant, 5)) == [("a", 1, number)]
                assert _places([await log.ends(key("a", tenant))]) == [("a", 1, number)]
                assert await _take(log.subscribe(key("a", tenant)), number)
            await log.append(key("b", OTHER), events("b", 1), 0)
            assert not await log.read(key("b"))
            assert await log.ends(key("b")) is None
            assert not await log.named(TENANT, "b", 5)
            assert _places(await log.runs(OTHER, 1)) == [("b", 1, 1)]
            assert _places(await log.runs(TENANT, 5, unfinished=True)) == [("a", 1, 1)]
            with refused(UnknownRun):
                await log.runs(TENANT, 5, before="b")

    async def test_a_subscription_is_limited_to_its_tenant(self) -> None:
        """A subscription receives nothing of another tenant's run with the same id."""
        async with self.fresh() as log, anyio.create_task_group() as tasks:
            seen: list[Event] = []

            async def watch() -> None:
                seen.extend(await _take(log.subscribe(key("a")), 1))

            tasks.start_soon(watch)
            await anyio.lowlevel.checkpoint()
            await log.append(key("a", OTHER), [event("a", 1, Noted(OTHER))], 0)
            await log.append(key("a"), [event("a", 1, Noted(TENANT))], 0)
            await until(lambda: bool(seen))
            assert [e.data for e in seen] == [Noted(TENANT)]

    async def test_an_unknown_run_is_empty(self) -> None:
        """Reading an unknown run returns nothing."""
        async with self.fresh() as log:
            assert not await log.read(key("nobody"))
            assert not await log.read(key("nobody"), 5)

    async def test_read_after_a_position(self) -> None:
        """A read may start after any position, also inside a batch."""
        async with self.fresh() as log:
            for after, count in ((0, 1), (1, 7), (8, 2), (10, 1)):
                await log.append(key("a"), events("a", count, after), after)
            for after in range(14):
                assert list(await log.read(key("a"), after)) == events("a", 11 - after, after)

    async def test_an_empty_append_changes_nothing(self) -> None:
        """An empty append stores and returns nothing."""
        async with self.fresh() as log:
            assert not await log.append(key("a"), [], 0)
            assert not await log.read(key("a"))
            assert not await log.runs(TENANT, 5)

    async def test_another_position_is_a_conflict(self) -> None:
        """An append at a position before or after the end is a conflict, and stores nothing."""
        async with self.fresh() as log:
            with refused(Conflict):
                await log.append(key("a"), [event("a", 3)], 2)
            await log.append(key("a"), events("a", 2), 0)
            with refused(Conflict):
                await log.append(key("a"), [event("a", 2, id="other")], 1)
            with refused(Conflict):
                await log.append(key("a"), [event("a", 4)], 3)
            assert len(await log.read(key("a"))) == 2

    async def test_the_same_batch_again_is_given_back_as_stored(self) -> None:
        """A repeated batch returns the stored events, not the offered ones."""
        async with self.fresh() as log:
            stored = await log.append(key("a"), events("a", 3), 0)
            again = [event("a", seq, Noted("other words")) for seq in (1, 2, 3)]
            assert list(await log.append(key("a"), again, 0)) == list(stored)
            assert list(await log.append(key("a"), again[1:2], 1)) == list(stored[1:2])
            assert list(await log.read(key("a"))) == list(stored)

    async def test_a_partial_overlap_is_a_conflict(self) -> None:
        """A batch of which only the first events are stored is a conflict."""
        async with self.fresh() as log:
            await log.append(key("a"), events("a", 2), 0)
            with refused(Conflict):
                await log.append(key("a"), events("a", 3), 0)
            with refused(Conflict):
                await log.append(key("a"), [event("a", 2), event("a", 3)], 1)
            assert len(await log.read(key("a"))) == 2

    async def test_a_taken_id_is_a_conflict(self) -> None:
        """An id that the run already has is a conflict, and stores nothing of the batch."""
        async with self.fresh() as log:
            await log.append(key("a"), events("a", 2), 0)
            with refused(Conflict):
                await log.append(key("a"), [event("a", 3), event("a", 4, id="a/1")], 2)
            with refused(Conflict):
                await log.append(key("a"), [event("a", 3, id="x"), event("a", 4, id="x")], 2)
            assert len(await log.read(key("a"))) == 2
            await log.append(key("a"), events("a", 1, after=2), 2)
            assert len(await log.read(key("a"))) == 3

    async def test_an_unknown_kind_is_refused(self) -> None:
        """An event of an unknown kind is rejected, and nothing of its batch is stored."""
        async with self.fresh() as log:
            with refused(UnknownKind):
                await log.append(key("a"), [event("a", 1), event("a", 2, UnknownFact())], 0)
            assert not await log.read(key("a"))
            await log.append(key("a"), events("a", 1), 0)

    async def test_odd_run_ids(self) -> None:
        """Any string is a valid run id."""
        async with self.fresh() as log:
            for run in ODD_RUNS:
                await log.append(key(run), [event(run, 1, id="1")], 0)
            for run in ODD_RUNS:
                assert [e.run for e in await log.read(key(run))] == [run]
            assert [last.run for _, last in await log.runs(TENANT, 10)] == list(reversed(ODD_RUNS))
            for run in ODD_RUNS:
                assert list(await log.named(TENANT, run[:6], 5)) == [run]

    async def test_text_of_every_script_and_size(self) -> None:
        """Any text is returned unchanged: all scripts, control characters, a megabyte."""
        texts = (
            "",
            "žluťoučký",
            "走る",
            "🧶 \u202e \u0000 \n\t \r\n \x85 \u2028",
            '{"a": "\\u0000"}',
            "x" * 1_000_000,
        )
        offered = [event("a", seq, Noted(text)) for seq, text in enumerate(texts, 1)]
        async with self.fresh() as log:
            await log.append(key("a"), offered, 0)
            assert list(await log.read(key("a"))) == offered

    async def test_many_runs_at_once(self) -> None:
        """Fifty concurrent writers to fifty runs succeed, each in order."""
        async with self.fresh() as log, anyio.create_task_group() as tasks:
            for n in range(50):
                tasks.start_soon(_write, log, f"run {n}", 10)
            with anyio.fail_after(PATIENCE):
                for n in range(50):
                    seen = [e.seq for e in await _take(log.subscribe(key(f"run {n}")), 20)]
                    assert seen == list(range(1, 21))

    async def test_one_of_many_racers_wins(self) -> None:
        """Of twenty writers at one position exactly one succeeds; the others get a conflict."""
        won: list[int] = []
        lost: list[int] = []

        async def race(n: int) -> None:
            try:
                await log.append(key("a"), [event("a", 3, id=f"by {n}")], 2)
                won.append(n)
            except Conflict:
                lost.append(n)

        async with self.fresh() as log:
            await log.append(key("a"), events("a", 2), 0)
            async with anyio.create_task_group() as tasks:
                for n in range(20):
                    tasks.start_soon(race, n)
            assert (len(won), len(lost)) == (1, 19)
            assert (await log.read(key("a"), 2))[0].id == f"by {won[0]}"
            assert len(await log.read(key("a"))) == 3

    async def test_a_refused_append_does_not_touch_its_neighbours(self) -> None:
        """A rejected append does not affect concurrent ones."""
        async with self.fresh() as log:
            await log.append(key("bad"), events("bad", 2), 0)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_write, log, "good", 5)
                tasks.start_soon(_refused, log, [event("bad", 3, id="bad/1")], 2)
                tasks.start_soon(_refused, log, [event("bad", 9)], 8)
                tasks.start_soon(_write, log, "fine", 5)
            assert [len(await log.read(key(run))) for run in ("good", "bad", "fine")] == [10, 2, 10]

    async def test_subscribe_from_any_position(self) -> None:
        """A subscription returns the stored events after its position, then new ones."""
        async with self.fresh() as log:
            await log.append(key("a"), events("a", 3), 0)
            with anyio.fail_after(PATIENCE):
                assert [e.seq for e in await _take(log.subscribe(key("a")), 3)] == [1, 2, 3]
                live = log.subscribe(key("a"), 2)  # inside a batch
                assert (await anext(live)).seq == 3
                await log.append(key("a"), events("a", 2, after=3), 3)
                assert [e.seq for e in await _take(live, 2)] == [4, 5]

    async def test_subscribe_before_the_first_event(self) -> None:
        """A subscription waits for a run or a position that does not exist yet."""
        async with self.fresh() as log, anyio.create_task_group() as tasks:
            seen: list[int] = []

            async def watch(after: int) -> None:
                seen.append((await _take(log.subscribe(key("a"), after), 1))[0].seq)

            tasks.start_soon(watch, 0)
            tasks.start_soon(watch, 2)
            await anyio.sleep(0.01)
            assert not seen
            await log.append(key("a"), events("a", 1), 0)
            await log.append(key("a"), events("a", 2, after=1), 1)
            await until(lambda: len(seen) == 2)
            assert sorted(seen) == [1, 3]

    async def test_subscribers_lose_and_repeat_nothing(self) -> None:
        """Concurrent subscribers receive each event once and in order."""
        async with self.fresh() as log, anyio.create_task_group() as tasks:
            seen: dict[int, list[int]] = {}

            async def watch(after: int) -> None:
                taken = await _take(log.subscribe(key("a"), after), 200 - after)
                seen[after] = [e.seq for e in taken]

            tasks.start_soon(watch, 0)
            tasks.start_soon(watch, 50)
            tasks.start_soon(_write, log, "a", 100)
            tasks.start_soon(_write, log, "b", 100)
            await until(lambda: len(seen) == 2)
            assert seen == {0: list(range(1, 201)), 50: list(range(51, 201))}

    async def test_appends_let_other_tasks_run(self) -> None:
        """Repeated appends let other tasks run."""
        async with self.fresh() as log:
            other = asyncio.ensure_future(asyncio.sleep(0))
            for number in range(5):
                await log.append(key("a"), events("a", 1, number), number)
            assert other.done()

    async def test_lists_let_other_tasks_run(self) -> None:
        """A program that polls for runs lets other tasks run."""
        async with self.fresh() as log:
            await log.append(key("a"), events("a", 1), 0)
            other = asyncio.ensure_future(asyncio.sleep(0))
            for _ in range(5):
                await log.runs(TENANT, 1)
            assert other.done()

    async def test_runs_come_newest_first(self) -> None:
        """`runs` returns the first and last events of runs, newest run first, up to the limit."""
        async with self.fresh() as log:
            for run in ("a", "b", "c"):
                await log.append(key(run), events(run, 2), 0)
            await log.append(key("a"), events("a", 3, after=2), 2)
            assert _places(await log.runs(TENANT, 9)) == [("c", 1, 2), ("b", 1, 2), ("a", 1, 5)]
            assert _places(await log.runs(TENANT, 2)) == [("c", 1, 2), ("b", 1, 2)]
            assert _places(await log.runs(TENANT, 9, before="b")) == [("a", 1, 5)]
            assert not await log.runs(TENANT, 0)
            assert _places([await log.ends(key("b"))]) == [("b", 1, 2)]
            assert await log.ends(key("unknown")) is None
            with refused(UnknownRun):
                await log.runs(TENANT, 9, before="unknown")

    async def test_pages_of_runs_have_no_gap_while_others_begin(self) -> None:
        """Pages list each run once, even if runs start between two pages."""
        async with self.fresh() as log:
            for n in range(7):
                await log.append(key(f"run {n}"), events(f"run {n}", 1), 0)
            seen: list[str] = []
            while page := await log.runs(TENANT, 3, before=seen[-1] if seen else None):
                seen += [first.run for first, _ in page]
                later = f"later {len(seen)}"
                await log.append(key(later), events(later, 1), 0)
            assert seen == [f"run {n}" for n in reversed(range(7))]

    async def test_unfinished_runs_have_no_end_on_record(self) -> None:
        """A run is unfinished until an event ends it."""
        async with self.fresh() as log:
            ends = (RunFinished("done"), RunFailed("X", "no"), RunCancelled("ann"))
            for n in range(4):
                await log.append(key(f"run {n}"), events(f"run {n}", 2), 0)
            assert len(await log.runs(TENANT, 9, unfinished=True)) == 4
            for n, end in enumerate(ends):
                last = [event(f"run {n}", 3), event(f"run {n}", 4, end)]
                await log.append(key(f"run {n}"), last, 2)
            await log.append(key("at once"), [event("at once", 1, RunFinished())], 0)
            await log.append(key("young"), events("young", 1), 0)
            left = await log.runs(TENANT, 9, unfinished=True)
            assert _places(left) == [("young", 1, 1), ("run 3", 1, 2)]
            behind = await log.runs(TENANT, 9, before="at once", unfinished=True)
            assert _places(behind) == [("run 3", 1, 2)]
            assert len(await log.runs(TENANT, 9)) == 6

    async def test_filtered_runs(self) -> None:
        """A filter uses the first and the latest event of a run, and its results have pages."""
        async with self.fresh() as log:
            await write_runs(log, 80)
            await check_filters(log)
            which = RunFilter(frozenset({"failed", "waiting"}))
            whole = [run for run, *_ in _places(await log.runs(TENANT, 99, which=which))]
            seen = list[str]()
            while page := await log.runs(TENANT, 3, before=seen[-1] if seen else None, which=which):
                seen += [first.run for first, _ in page]
            assert seen == whole and len(seen) > 3
            assert not await log.runs(OTHER, 9, which=which)
            both = await log.runs(TENANT, 99, unfinished=True, which=which)
            assert {status_of(last) for _, last in both} == {"waiting"}

    async def test_ids_by_their_beginning(self) -> None:
        """`named` returns the ids with a prefix in order, up to the limit."""
        async with self.fresh() as log:
            for run in ("b", "ab%", "ab", "abc", "a"):
                await log.append(key(run), events(run, 1), 0)
            assert list(await log.named(TENANT, "ab", 9)) == ["ab", "ab%", "abc"]
            assert list(await log.named(TENANT, "", 2)) == ["a", "ab"]
            assert not await log.named(TENANT, "ab_", 9)
            assert not await log.named(TENANT, "ab\0", 9)

    async def test_long_runs_and_many_runs(self) -> None:
        """A run with thousands of events and a store with hundreds of runs are read completely."""
        async with self.fresh() as log:
            for start in range(0, 3000, 500):
                await log.append(key("long"), events("long", 500, after=start), start)
            for n in range(700):
                await log.append(key(f"run {n}"), events(f"run {n}", 1), 0)
            assert [e.seq for e in await log.read(key("long"))] == list(range(1, 3001))
            assert [e.seq for e in await log.read(key("long"), 2900)] == list(range(2901, 3001))
            assert len(await log.runs(TENANT, 1000)) == 701
            assert _places(await log.runs(TENANT, 650))[-1] == ("run 50", 1, 1)
            with anyio.fail_after(PATIENCE):
                assert len(await _take(log.subscribe(key("long"), 10), 2990)) == 2990


async def _write(log: EventLog, run: str, batches: int) -> None:
    for n in range(batches):
        await log.append(key(run), events(run, 2, after=2 * n), 2 * n)
        await anyio.lowlevel.checkpoint()


async def _refused(log: EventLog, offered: Sequence[Event], expected: int) -> None:
    with refused(Conflict):
        await log.append(key(offered[0].run), offered, expected)


async def _take(source: AsyncIterator[Event], count: int) -> list[Event]:
    return [await anext(source) for _ in range(count)]


def _places(ends: Sequence[tuple[Event, Event] | None]) -> list[tuple[str, int, int]]:
    return [(first.run, first.seq, last.seq) for first, last in filter(None, ends)]


# Events that give a run each status when they are its last.
_STEPS = (
    Noted("continued"),
    RunPaused("boss"),
    RunPaused("", collected=1, wanted=2),
    RunFinished(),
    RunFailed("X", "no"),
    RunCancelled("ann"),
)


class _Draws:
    """Deterministic choices."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        self._count += 1
        return options[int(digest(f"{self._seed}/{self._count}"), 16) % len(options)]


async def write_runs(log: EventLog, count: int) -> None:
    """Write a number of runs that differ in everything a `RunFilter` compares."""
    draws = _Draws(count)
    for number in range(count):
        run, position = f"run {number}", 0
        workflow, user = draws.pick(("shop", "desk")), draws.pick(("ann", "bob", "cy"))
        batch = [started(run, workflow, user, draws.pick(range(count)))]
        for seq in range(2, 2 + draws.pick(range(5))):
            if draws.pick((True, True, False)):
                await log.append(key(run), batch, position)
                position, batch = seq - 1, []
            batch.append(event(run, seq, draws.pick(_STEPS)))
            if batch[-1].kind in ENDS:
                break
        await log.append(key(run), batch, position)


async def check_filters(log: EventLog) -> None:
    """Check the results of many filters against filtering all runs in memory."""
    everything = await log.runs(TENANT, 10_000)
    draws = _Draws(len(everything))
    instants = [None, None, *(first.at for first, _ in everything)]
    statuses = ((), ("failed",), ("waiting", "collecting"), ("unfinished", "finished", "cancelled"))
    for _ in range(80):
        which = RunFilter(
            frozenset(draws.pick(statuses)),
            draws.pick((None, "shop", "none")),
            draws.pick((None, "ann")),
            since=draws.pick(instants[: draws.pick((1, len(instants)))]),
            until=draws.pick(instants[: draws.pick((1, len(instants)))]),
        )
        limit = draws.pick((1, 7, 10_000))
        expected = [ends for ends in everything if is_chosen(which, *ends)][:limit]
        assert [*await log.runs(TENANT, limit, which=which)] == expected, which
