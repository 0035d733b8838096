"""Runs go when their time is over, some at a time."""

from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.flow.scenes import Work
from tests.upkeep.scenes import approving, cached
from turnloom import Flow, FlowFailed, Loom, StepContext, UsageError
from turnloom.adapters.memory import MemoryStore
from turnloom.runtime.logic import codec
from turnloom.runtime.retention import BATCH
from turnloom.testing import FakeClock
from turnloom.wiring.upkeep import retention_of

DAY = timedelta(days=1)


def breaks(state: Work, ctx: StepContext) -> dict[str, Any]:
    raise ValueError("no")


failing = Flow("failing", Work).start_with(breaks)


@pytest.fixture
async def store() -> AsyncGenerator[Any, None]:
    store = MemoryStore(codec())
    yield store
    await store.aclose()


async def fill(store: Any, clock: FakeClock) -> None:
    """For each of two tenants: three finished runs, a failed and a waiting one."""
    async with Loom(store=store, clock=clock) as app:
        for tenant in ("acme", "globex"):
            for _ in range(3):
                await app.run(cached(), app_id=tenant)
            with pytest.raises(FlowFailed):
                await app.run(failing, app_id=tenant)
            await app.run(approving(), app_id=tenant)


async def left(app: Loom) -> list[int]:
    return [len(await app.runs(app_id=tenant)) for tenant in ("acme", "globex")]


async def test_rules_of_tenants(store: Any) -> None:
    clock = FakeClock(step=timedelta(microseconds=1))
    await fill(store, clock)
    tenants = {"acme": {"retention": "30d", "keep_failed": True}}
    async with Loom(store=store, clock=clock, retention="90d", tenants=tenants) as app:
        clock.advance(29 * DAY)
        assert await app.upkeep.apply_retention() == ([], True)
        clock.advance(2 * DAY)
        assert len((await app.upkeep.apply_retention()).runs) == 3
        assert await left(app) == [2, 5]
        clock.advance(60 * DAY)
        assert len((await app.upkeep.apply_retention()).runs) == 4
        assert await left(app) == [2, 1]
        (record,) = await app.upkeep.removals(app_id="globex")
        assert (record.by, record.what, record.runs) == ("retention", "retention 90d", 4)


async def test_a_tenant_may_keep_all(store: Any) -> None:
    clock = FakeClock(step=timedelta(microseconds=1))
    await fill(store, clock)
    clock.advance(DAY)
    tenants = {"acme": {"retention": ""}}
    async with Loom(store=store, clock=clock, retention="1h", tenants=tenants) as app:
        assert len((await app.upkeep.apply_retention()).runs) == 4
        assert await left(app) == [5, 1]


async def test_batches_are_bounded_and_runs_that_stay_stop_none(store: Any) -> None:
    clock = FakeClock(step=timedelta(microseconds=1))
    await fill(store, clock)
    clock.advance(DAY)
    async with Loom(store=store, clock=clock, retention="1h") as app:
        app.register_flow(cached())
        newest = (await app.runs(app_id="acme"))[2].run
        fork = await app.handle(newest, app_id="acme").fork(2)
        await fork.finished()  # its origin stays as long as it does
        found = [await app.upkeep.apply_retention(2) for _ in range(4)]
        assert [len(each.runs) for each in found] == [1, 2, 2, 2]
        assert [each.is_done for each in found] == [False] * 4
        assert await app.upkeep.apply_retention(2) == ([], True)
        assert await left(app) == [3, 1]


async def test_nothing_is_removed_without_the_setting() -> None:
    async with Loom(store="memory") as app:
        with pytest.raises(UsageError, match="retention"):
            await app.upkeep.apply_retention()
        with anyio.fail_after(60):
            await app.upkeep.keep_retention()


async def test_a_process_that_runs_long_applies_it_again_and_again(store: Any) -> None:
    clock = FakeClock(step=timedelta(microseconds=1))
    await fill(store, clock)
    async with Loom(store=store, clock=clock, retention="1h") as app:
        retention = retention_of(app._open())
        pauses = list[float]()

        async def pause(seconds: float) -> None:
            pauses.append(seconds)
            clock.advance(timedelta(hours=2))
            if len(pauses) == 2:
                await app.aclose()
                raise TimeoutError

        assert retention is not None
        with pytest.raises(TimeoutError):
            await retention.keep(pause)
        assert pauses[0] == pauses[1] > 60
    async with Loom(store=store) as app:
        assert await left(app) == [1, 1]


async def test_a_process_that_runs_long_removes_some_at_a_time(store: Any) -> None:
    clock = FakeClock(step=timedelta(microseconds=1))
    async with Loom(store=store, clock=clock, retention="1h") as app:
        for _ in range(BATCH + 1):
            await app.run(cached(), app_id="acme")
        clock.advance(DAY)
        retention = retention_of(app._open())

        async def pause(seconds: float) -> None:
            raise TimeoutError

        assert retention is not None
        for rest in (1, 0):
            with pytest.raises(TimeoutError):
                await retention.keep(pause)
            assert await left(app) == [rest, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"retention": "soon"},
        {"retention": "0d"},
        {"retention": 90},
        {"keep_failed": "yes"},
        {"tenants": {"acme": "30d"}},
        {"tenants": {"acme": {"slots": 3}}},
        {"tenants": {"acme": {"retention": "x"}}},
        {"tenants": []},
    ],
)
def test_wrong_settings_are_refused(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Loom(store="memory", **wrong)


def test_the_file_may_say_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("turnloom.toml").write_text(
        'retention = "90d"\nkeep_failed = true\n[tenants.acme]\nretention = "1w"\n'
    )
    rules = dict(retention_of(Loom(store="memory")._open())._rules)
    assert (rules["*"].said, rules["*"].keep_failed) == ("90d", True)
    assert (rules["acme"].age, rules["acme"].keep_failed) == (7 * DAY, True)
