"""Contract suites for keys, the audit trail, feedback and schedules."""

from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import msgspec

from turnloom.access.ports import Audit, Keys
from turnloom.access.spec import ApiKey, AuditEntry, AuditFilter, StoredKey
from turnloom.errors import UnknownRun, UsageError
from turnloom.feedback.ports import FeedbackStore
from turnloom.feedback.spec import MOST_FEEDBACK, Feedback, FeedbackFilter
from turnloom.log.ports import EventLog
from turnloom.log.spec import RunKey
from turnloom.schedules.ports import ScheduleStore
from turnloom.schedules.spec import Firing, PlannedStart
from turnloom.testing.contracts.facts import OTHER, TENANT, events, key, refused

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ODD = "a'b\"c\\ é € 😀 %s {} _"
CROWD = 20


def api_key(id: str, tenant: str = TENANT, created: datetime = NOON) -> StoredKey:
    """A stored key with values in every field that is set at creation."""
    made = ApiKey(
        id,
        tenant,
        ODD,
        "developer",
        scopes=("explain", "runs:read"),
        name=f"key {id}",
        created=created,
        created_by="root",
        expires=NOON + 60 * MINUTE,
    )
    return StoredKey(made, f"digest of {id}")


class KeysContract:
    """The suite for `Keys`."""

    def fresh(self) -> AbstractAsyncContextManager[Keys]:
        """An empty store of keys."""
        raise NotImplementedError

    async def test_a_key_is_found_as_it_was_added(self) -> None:
        """Every field of a key and its digest come back; others are not found."""
        async with self.fresh() as keys:
            bare = api_key("b")
            bare = bare._replace(key=msgspec.structs.replace(bare.key, expires=None, scopes=()))
            assert await keys.add(api_key("a")) and await keys.add(bare)
            assert await keys.lookup("a") == api_key("a")
            assert await keys.lookup("b") == bare
            for unknown in ("", "A", "a ", "%", "digest of a"):
                assert await keys.lookup(unknown) is None

    async def test_an_id_is_taken_once(self) -> None:
        """A taken id is refused, for any tenant, and the first key stays; of many at once, one
        wins."""
        async with self.fresh() as keys:
            assert await keys.add(api_key("a"))
            assert not await keys.add(api_key("a"))
            assert not await keys.add(api_key("a", OTHER))
            assert await keys.lookup("a") == api_key("a")
            won: list[bool] = []

            async def add(tenant: str) -> None:
                won.append(await keys.add(api_key("b", tenant)))

            async with anyio.create_task_group() as tasks:
                for number in range(CROWD):
                    tasks.start_soon(add, f"tenant {number}")
            assert won.count(True) == 1

    async def test_lists_are_of_one_tenant(self) -> None:
        """Keys of a tenant are listed latest first, in pages; another tenant's key is no mark."""
        async with self.fresh() as keys:
            for number in range(5):
                await keys.add(api_key(f"k{number}"))
            await keys.add(api_key("other", OTHER))
            assert [each.id for each in await keys.list(TENANT, 3)] == ["k4", "k3", "k2"]
            assert len(await keys.list(TENANT, 10)) == 5
            assert [each.id for each in await keys.list(TENANT, 2)] == ["k4", "k3"]
            assert [each.id for each in await keys.list(TENANT, 2, before="k3")] == ["k2", "k1"]
            assert not await keys.list(TENANT, 2, before="other")
            assert not await keys.list(TENANT, 0)
            assert [each.id for each in await keys.list(OTHER, 10)] == ["other"]
            assert not await keys.list("nemo", 10)

    async def test_revocation(self) -> None:
        """The first revocation stands, and is seen at once; other tenants revoke nothing."""
        async with self.fresh() as keys:
            await keys.add(api_key("a"))
            assert await keys.revoke(OTHER, "a", NOON) is None
            assert await keys.revoke(TENANT, "b", NOON) is None
            assert await keys.lookup("a") == api_key("a")
            first = await keys.revoke(TENANT, "a", NOON + MINUTE)
            assert first is not None and first.revoked == NOON + MINUTE
            assert await keys.revoke(TENANT, "a", NOON + 2 * MINUTE) == first
            found = await keys.lookup("a")
            assert found is not None and found.key == first

    async def test_a_person_is_forgotten(self) -> None:
        """Their keys of one tenant are gone, and work no more; those of others stay."""
        async with self.fresh() as keys:
            others = api_key("c")
            others = others._replace(key=msgspec.structs.replace(others.key, user="bob"))
            for each in (api_key("a"), api_key("b", OTHER), others):
                await keys.add(each)
            assert await keys.erase(TENANT, ODD, dry_run=True) == 1
            assert await keys.erase(TENANT, ODD) == 1
            assert await keys.erase(TENANT, ODD) == 0
            assert await keys.lookup("a") is None
            assert await keys.lookup("b") == api_key("b", OTHER)
            assert await keys.lookup("c") == others

    async def test_whether_there_are_keys(self) -> None:
        """A store has keys as long as one of them is in force, of any tenant."""
        async with self.fresh() as keys:
            assert not await keys.any(NOON)
            await keys.add(api_key("a", OTHER))
            assert await keys.any(NOON)
            assert not await keys.any(NOON + 60 * MINUTE)
            await keys.revoke(OTHER, "a", NOON)
            assert not await keys.any(NOON)

    async def test_last_use(self) -> None:
        """The last use only moves forward, and only for the key's tenant."""
        async with self.fresh() as keys:
            await keys.add(api_key("a"))
            for tenant, at in ((TENANT, MINUTE), (TENANT, 0 * MINUTE), (OTHER, 9 * MINUTE)):
                await keys.touch(tenant, "a", NOON + at)
            await keys.touch(TENANT, "unknown", NOON)
            (listed,) = await keys.list(TENANT, 5)
            assert listed.last_used == NOON + MINUTE


def entry(what: str, who: str = "ann", action: str = "run.started", minute: int = 0) -> AuditEntry:
    """An entry of the audit trail."""
    return AuditEntry(TENANT, who, action, what, at=NOON + minute * MINUTE, via="key1")


class AuditContract:
    """The suite for `Audit`."""

    def fresh(self) -> AbstractAsyncContextManager[Audit]:
        """An empty audit trail."""
        raise NotImplementedError

    async def test_entries_come_back(self) -> None:
        """Entries come back as they were added, latest first, each with its position."""
        async with self.fresh() as audit:
            assert not await audit.entries(TENANT, 5)
            assert await audit.append(TENANT, entry(ODD)) == 1
            assert await audit.append(TENANT, entry("b", "bob")) == 2
            found = await audit.entries(TENANT, 5)
            assert [each.position for each in found] == [2, 1]
            assert msgspec.structs.replace(found[1], position=0) == entry(ODD)

    async def test_tenants_are_separate(self) -> None:
        """Each tenant has its own entries and positions; the tenant of the call counts."""
        async with self.fresh() as audit:
            assert await audit.append(TENANT, entry("a")) == 1
            assert await audit.append(OTHER, entry("b")) == 1
            ours, theirs = await audit.entries(TENANT, 5), await audit.entries(OTHER, 5)
            assert [(each.tenant, each.what) for each in ours] == [(TENANT, "a")]
            assert [(each.tenant, each.what) for each in theirs] == [(OTHER, "b")]

    async def test_pages_and_filters(self) -> None:
        """Pages end before a position; filters by person, action and time combine."""
        async with self.fresh() as audit:
            for number in range(6):
                who, action = ("ann", "bob")[number % 2], ("run.started", "key.created")[number > 2]
                await audit.append(TENANT, entry(str(number), who, action, number))

            async def what(limit: int = 9, before: int | None = None, **which: Any) -> str:
                chosen = AuditFilter(**which)
                found = await audit.entries(TENANT, limit, before=before, which=chosen)
                return "".join(each.what for each in found)

            assert await what() == "543210"
            assert await what(2) == "54"
            assert await what(2, 5) == "32"
            assert await what(9, 1) == "" == await what(0) == await what(9, -3)
            assert await what(who="ann") == "420"
            assert await what(who="ann", action="run.started") == "20"
            assert await what(1, 5, who="ann") == "2"
            assert await what(since=NOON + 2 * MINUTE, until=NOON + 4 * MINUTE) == "432"
            assert await what(who="nemo") == ""

    async def test_many_at_once(self) -> None:
        """Entries added at once all have their own position."""
        async with self.fresh() as audit:
            async with anyio.create_task_group() as tasks:
                for number in range(CROWD):
                    tasks.start_soon(audit.append, TENANT, entry(str(number)))
            found = await audit.entries(TENANT, 2 * CROWD)
            assert [each.position for each in found] == [*range(CROWD, 0, -1)]
            assert {each.what for each in found} == {str(number) for number in range(CROWD)}


def opinion(
    run: str = "a",
    turn: int | None = None,
    name: str = "helpful",
    *,
    score: float | None = None,
    label: str | None = None,
    who: str = "ann",
    minute: int = 0,
) -> Feedback:
    """Feedback on a run."""
    at = NOON + minute * MINUTE
    return Feedback(run, turn, name, score, label=label, comment=ODD, who=who, at=at)


class FeedbackContract:
    """The suite for `FeedbackStore`."""

    def fresh(self) -> AbstractAsyncContextManager[tuple[EventLog, FeedbackStore]]:
        """The log and the feedback of an empty store."""
        raise NotImplementedError

    async def test_feedback_comes_back(self) -> None:
        """Feedback on runs and turns comes back, oldest first, for its run and tenant alone."""
        async with self.fresh() as (log, feedback):
            for run in (key("a"), key("b"), RunKey(OTHER, "a")):
                await log.append(run, events(run.id, 1), 0)
            given = [
                opinion(score=0.5),
                opinion(turn=2, label=ODD, minute=1),
                opinion(turn=2, score=-1e300, name="other", minute=2),
                opinion(turn=2, score=1.0, who=ODD, minute=3),
            ]
            for each in given:
                await feedback.give(key("a"), each)
            assert list(await feedback.of_run(key("a"))) == given
            assert not await feedback.of_run(key("b"))
            assert not await feedback.of_run(RunKey(OTHER, "a"))

    async def test_a_second_one_replaces_the_first(self) -> None:
        """Feedback of the same person, name and turn replaces the earlier one; a run as a whole is
        not a turn."""
        async with self.fresh() as (log, feedback):
            await log.append(key("a"), events("a", 1), 0)
            await feedback.give(key("a"), opinion(score=0.0))
            await feedback.give(key("a"), opinion(turn=1, score=0.0, minute=1))
            await feedback.give(key("a"), opinion(label="good", minute=2))
            assert list(await feedback.of_run(key("a"))) == [
                opinion(turn=1, score=0.0, minute=1),
                opinion(label="good", minute=2),
            ]

    async def test_runs_are_chosen(self) -> None:
        """Runs are chosen by name, label, and bounds of the score, within their tenant."""
        async with self.fresh() as (log, feedback):
            for run in ("a", "b", "c", "d"):
                await log.append(key(run), events(run, 1), 0)
            await feedback.give(key("a"), opinion("a", score=0.5))
            await feedback.give(key("b"), opinion("b", score=0.9))
            await feedback.give(key("b"), opinion("b", 1, score=0.1))
            await feedback.give(key("c"), opinion("c", label="good"))
            await feedback.give(key("d"), opinion("d", name="other", score=0.5))

            async def chosen(tenant: str = TENANT, runs: str = "abcd", **which: Any) -> str:
                wanted = FeedbackFilter("helpful")._replace(**which)
                return "".join(sorted(await feedback.chosen(tenant, [*runs], wanted)))

            assert await chosen() == "abc"
            assert await chosen(runs="cd") == "c"
            assert await chosen(runs="") == "" == await chosen(OTHER)
            assert await chosen(label="good") == "c"
            assert await chosen(least=0.5) == "ab" and await chosen(above=0.5) == "b"
            assert await chosen(most=0.5) == "ab" and await chosen(below=0.5) == "b"
            assert await chosen(least=0.4, most=0.6) == "a"
            assert await chosen(name="other") == "d"

    async def test_a_person_is_forgotten(self) -> None:
        """All feedback of a person is removed, in one tenant, and that of others stays."""
        async with self.fresh() as (log, feedback):
            for run in (key("a"), key("b"), RunKey(OTHER, "a")):
                await log.append(run, events(run.id, 1), 0)
                await feedback.give(run, opinion(run.id, score=1.0))
            await feedback.give(key("a"), opinion(score=1.0, who="bob"))
            assert await feedback.erase(TENANT, "ann", dry_run=True) == 2
            assert await feedback.erase(TENANT, "ann") == 2
            assert await feedback.erase(TENANT, "ann") == 0
            assert [each.who for each in await feedback.of_run(key("a"))] == ["bob"]
            assert not await feedback.of_run(key("b"))
            assert len(await feedback.of_run(RunKey(OTHER, "a"))) == 1

    async def test_refusals(self) -> None:
        """Feedback on an unknown run is refused, and so is more of it than a run may have."""
        async with self.fresh() as (log, feedback):
            await log.append(key("a"), events("a", 1), 0)
            for unknown in (key("b"), RunKey(OTHER, "a")):
                with refused(UnknownRun):
                    await feedback.give(unknown, opinion(score=1.0))
            for number in range(MOST_FEEDBACK):
                await feedback.give(key("a"), opinion(turn=number + 1, score=1.0))
            with refused(UsageError):
                await feedback.give(key("a"), opinion(score=1.0))
            await feedback.give(key("a"), opinion(turn=1, score=2.0))
            assert len(await feedback.of_run(key("a"))) == MOST_FEEDBACK


def planned(run: str, minute: int, tenant: str = TENANT) -> PlannedStart:
    """A start planned for some minutes after noon."""
    at = NOON + minute * MINUTE
    return PlannedStart(tenant, run, at, ODD, user="ann", state='{"a":1}', entry="flows.py")


class SchedulesContract:
    """The suite for `ScheduleStore`."""

    def fresh(self) -> AbstractAsyncContextManager[ScheduleStore]:
        """An empty store of schedules."""
        raise NotImplementedError

    async def test_firings(self) -> None:
        """The first call sets where a schedule counts from; then the latest firing stands."""
        async with self.fresh() as store:
            assert await store.begin(TENANT, "nightly", NOON) == Firing(NOON)
            assert await store.begin(TENANT, "nightly", NOON + MINUTE) == Firing(NOON)
            await store.record(TENANT, "nightly", Firing(NOON + MINUTE, "run", ODD))
            await store.record(TENANT, "nightly", Firing(NOON, "earlier"))
            await store.record(TENANT, "weekly", Firing(NOON, "first"))
            last = Firing(NOON + MINUTE, "run", ODD)
            assert await store.begin(TENANT, "nightly", NOON) == last
            firings = await store.firings(TENANT)
            assert firings == {"nightly": last, "weekly": Firing(NOON, "first")}
            assert await store.firings(OTHER) == {}
            assert await store.begin(OTHER, "nightly", NOON) == Firing(NOON)

    async def test_planned_starts(self) -> None:
        """Starts are due at their instant, the oldest first, for all tenants; each is listed for
        its own."""
        async with self.fresh() as store:
            assert await store.upcoming() is None
            for each in (planned("b", 2), planned("a", 1), planned("a", 3, OTHER)):
                assert await store.plan(each.tenant, each)
            assert not await store.plan(TENANT, planned("a", 9))
            assert await store.upcoming() == NOON + MINUTE
            assert not await store.due(NOON, 5)
            assert list(await store.due(NOON + MINUTE, 5)) == [planned("a", 1)]
            due = await store.due(NOON + 3 * MINUTE, 5)
            assert list(due) == [planned("a", 1), planned("b", 2), planned("a", 3, OTHER)]
            assert list(await store.due(NOON + 3 * MINUTE, 1)) == [planned("a", 1)]
            assert list(await store.planned(TENANT, 5)) == [planned("a", 1), planned("b", 2)]
            assert list(await store.planned(TENANT, 1)) == [planned("a", 1)]

    async def test_a_person_is_forgotten(self) -> None:
        """What was planned for them in one tenant does not start."""
        async with self.fresh() as store:
            others = msgspec.structs.replace(planned("b", 2), user="bob")
            for each in (planned("a", 1), others, planned("a", 3, OTHER)):
                await store.plan(each.tenant, each)
            assert await store.erase(TENANT, "ann", dry_run=True) == 1
            assert await store.erase(TENANT, "ann") == 1
            assert await store.erase(TENANT, "ann") == 0
            assert [*await store.due(NOON + 9 * MINUTE, 9)] == [others, planned("a", 3, OTHER)]

    async def test_settling(self) -> None:
        """A settled start is gone; a failed one is listed with its error, and not due again."""
        async with self.fresh() as store:
            await store.plan(TENANT, planned("a", 1))
            await store.plan(TENANT, planned("b", 1))
            assert not await store.settle(RunKey(OTHER, "a"))
            assert await store.settle(key("a"))
            assert not await store.settle(key("a"))
            assert await store.settle(key("b"), ODD)
            assert not await store.due(NOON + 9 * MINUTE, 5)
            assert await store.upcoming() is None
            failed = msgspec.structs.replace(planned("b", 1), error=ODD)
            assert list(await store.planned(TENANT, 5)) == [failed]
            assert await store.settle(key("b"))
            assert not await store.planned(TENANT, 5)
