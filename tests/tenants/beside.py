"""What two tenants keep beside their runs, and every way to read it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tests.tenants.deeds import IDS, Deed, canary
from turnloom.feedback.spec import Feedback, FeedbackFilter
from turnloom.jobs.spec import JobResult, StoredJob
from turnloom.log.spec import RunKey
from turnloom.schedules.spec import Firing, PlannedStart
from turnloom.testing.contracts.artifacts.samples import NOON, SECOND
from turnloom.testing.contracts.facts import key


async def _give(store: Any, tenant: str, deed: Deed) -> Any:
    said = canary(tenant)
    given = Feedback(deed.id, None, "quality", None, label=said, comment=said, who=deed.id, at=NOON)
    return await store.feedback.give(RunKey(tenant, deed.id), given)


async def _forget(store: Any, tenant: str, deed: Deed) -> Any:
    return await store.feedback.erase(tenant, deed.id, dry_run=deed.number == 1)


async def _begin(store: Any, tenant: str, deed: Deed) -> Any:
    return await store.schedules.begin(tenant, deed.id, NOON + deed.number * SECOND)


async def _record(store: Any, tenant: str, deed: Deed) -> Any:
    firing = Firing(NOON + deed.number * SECOND, deed.id, canary(tenant))
    return await store.schedules.record(tenant, deed.id, firing)


async def _plan(store: Any, tenant: str, deed: Deed) -> Any:
    said, at = canary(tenant), NOON + deed.number * SECOND
    start = PlannedStart(tenant, deed.id, at, said, user=said, state=said, entry=said)
    return await store.schedules.plan(tenant, start)


async def _settle(store: Any, tenant: str, deed: Deed) -> Any:
    error = canary(tenant) if deed.number == 1 else ""
    return await store.schedules.settle(key(deed.id, tenant), error)


async def _erase_starts(store: Any, tenant: str, deed: Deed) -> Any:
    return await store.schedules.erase(tenant, canary(tenant), dry_run=deed.number > 1)


async def _add_job(store: Any, tenant: str, deed: Deed) -> Any:
    said = canary(tenant)
    return await store.jobs.add(tenant, StoredJob(deed.id, said, said, 3, NOON, NOON, name=said))


async def _advance(store: Any, tenant: str, deed: Deed) -> Any:
    result = JobResult(deed.number, deed.id, canary(tenant).encode())
    return await store.jobs.advance(tenant, deed.id, NOON + deed.number * SECOND, result)


async def _end(store: Any, tenant: str, deed: Deed) -> Any:
    at = NOON + deed.number * SECOND
    return await store.jobs.end(tenant, deed.id, "failed", at, canary(tenant))


async def _drop(store: Any, tenant: str, deed: Deed) -> Any:
    return await store.jobs.drop(tenant, deed.id)


async def _erase_jobs(store: Any, tenant: str, deed: Deed) -> Any:
    return await store.jobs.erase(tenant, canary(tenant), dry_run=deed.number > 1)


WRITERS: dict[str, Callable[[Any, str, Deed], Awaitable[Any]]] = {
    "FeedbackStore.give": _give,
    "FeedbackStore.erase": _forget,
    "ScheduleStore.begin": _begin,
    "ScheduleStore.record": _record,
    "ScheduleStore.plan": _plan,
    "ScheduleStore.settle": _settle,
    "ScheduleStore.erase": _erase_starts,
    "JobStore.add": _add_job,
    "JobStore.advance": _advance,
    "JobStore.end": _end,
    "JobStore.drop": _drop,
    "JobStore.erase": _erase_jobs,
}


async def _of_run(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [list(await store.feedback.of_run(key(id, tenant))) for id in IDS]


async def _chosen(store: Any, tenant: str, names: Sequence[str]) -> Any:
    every = [sorted(await store.feedback.chosen(tenant, IDS, FeedbackFilter("quality")))]
    for name in names:
        which = FeedbackFilter("quality", canary(name))
        every.append(sorted(await store.feedback.chosen(tenant, IDS, which)))
    return every


async def _firings(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return sorted((await store.schedules.firings(tenant)).items())


async def _planned(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return list(await store.schedules.planned(tenant, 100))


async def _lookup(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [await store.jobs.lookup(tenant, id) for id in IDS]


async def _list(store: Any, tenant: str, names: Sequence[str]) -> Any:
    before = [list(await store.jobs.list(tenant, 100, before=id)) for id in IDS]
    return [list(await store.jobs.list(tenant, 100)), *before]


async def _results(store: Any, tenant: str, names: Sequence[str]) -> Any:
    return [list(await store.jobs.results(tenant, id)) for id in IDS]


READERS: dict[str, Callable[[Any, str, Sequence[str]], Awaitable[Any]]] = {
    "FeedbackStore.of_run": _of_run,
    "FeedbackStore.chosen": _chosen,
    "ScheduleStore.firings": _firings,
    "ScheduleStore.planned": _planned,
    "JobStore.lookup": _lookup,
    "JobStore.list": _list,
    "JobStore.results": _results,
}
