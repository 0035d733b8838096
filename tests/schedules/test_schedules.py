"""Runs that start by themselves, each once."""

import asyncio
import re
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.docs.markdown import ROOT
from tests.schedules.flows import Report, report
from tests.support.tables import tables_of
from turnloom import Flow, Loom
from turnloom.errors import DefinitionError, UnknownRun, UsageError
from turnloom.testing import FakeClock
from turnloom.testing.contracts import until

FLOWS = ROOT / "tests" / "schedules" / "flows.py"
DAILY = f"""
[[schedule]]
workflow = "{FLOWS}:report"
name = "daily"
cron = "0 7 * * *"
timezone = "Europe/Berlin"
input = {{day = "monday"}}
"""
DAY = timedelta(days=1)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def declare(text: str) -> None:
    Path("turnloom.toml").write_text(text)


def clock_at(text: str) -> FakeClock:
    return FakeClock(datetime.fromisoformat(text).replace(tzinfo=UTC))


async def pages(app: Loom, run: str) -> Any:
    outcome: Any = await app.handle(run).outcome()
    return outcome.state


async def test_a_schedule_fires_at_its_time(here: Path) -> None:
    declare(DAILY)
    clock = clock_at("2026-01-05 12:00")
    async with Loom(store="memory", clock=clock) as app:
        assert not await app.schedules.fire_due()  # it counts from here
        (listed,) = await app.schedules.list()
        assert listed.next == datetime(2026, 1, 6, 6, tzinfo=UTC)
        clock.time = datetime(2026, 1, 6, 5, 59, 59, tzinfo=UTC)
        assert not await app.schedules.fire_due()
        clock.advance(timedelta(seconds=1))
        (fired,) = await app.schedules.fire_due()
        assert (fired.schedule, fired.at, fired.error) == ("daily", listed.next, "")
        assert (await pages(app, fired.run)).model_dump() == {"day": "monday", "pages": 1}
        assert not await app.schedules.fire_due()
        (listed,) = await app.schedules.list()
        assert listed.last is not None and listed.last.run == fired.run
        again = await app.schedules.fire("daily")
        await app.schedules.rested(again)
        assert len(await app.runs()) == 2
        with pytest.raises(UsageError):
            await app.schedules.fire("dialy")


@pytest.mark.parametrize(("missed", "count"), [("skip", 0), ("once", 1)])
async def test_missed_firings(here: Path, missed: str, count: int) -> None:
    declare(f'{DAILY}missed = "{missed}"\n')
    clock = clock_at("2026-01-05 12:00")
    async with Loom(store="memory", clock=clock) as app:
        await app.schedules.fire_due()
        clock.advance(4 * DAY)
        assert len(await app.schedules.fire_due()) == count
        assert not await app.schedules.fire_due()
        clock.time = datetime(2026, 1, 10, 6, 0, 1, tzinfo=UTC)
        assert len(await app.schedules.fire_due()) == 1


@pytest.mark.parametrize(("missed", "count"), [("skip", 0), ("once", 1)])
async def test_a_changed_schedule_counts_from_its_last_firing(
    here: Path, missed: str, count: int
) -> None:
    declare(DAILY + f'missed = "{missed}"\n')
    clock = clock_at("2026-01-05 12:00")
    async with Loom(store=here / "a.db", clock=clock) as app:
        await app.schedules.fire_due()
        clock.time = datetime(2026, 1, 6, 6, tzinfo=UTC)
        (fired,) = await app.schedules.fire_due()
    changed = re.sub('cron = "[^"]*"', 'cron = "0 10 * * *"', DAILY)
    assert changed != DAILY
    declare(changed + f'missed = "{missed}"\n')
    clock.time = datetime(2026, 1, 6, 12, tzinfo=UTC)
    async with Loom(store=here / "a.db", clock=clock) as app:
        made = await app.schedules.fire_due()
        assert len(made) == count and not await app.schedules.fire_due()
        (status,) = await app.schedules.list()
        assert status.next is not None and status.next.day == 7
        assert len({fired.run, *(each.run for each in made)}) == 1 + count


async def test_two_apps_fire_once(here: Path) -> None:
    declare(DAILY)
    clock = clock_at("2026-01-05 12:00")
    async with AsyncExitStack() as stack:
        apps = [
            await stack.enter_async_context(Loom(store=here / "a.db", clock=clock)) for _ in "abc"
        ]
        await asyncio.gather(*(app.schedules.fire_due() for app in apps))
        clock.time = datetime(2026, 1, 6, 6, tzinfo=UTC)
        planned = [await apps[0].start(report, Report(day=f"{n}"), at=clock.now()) for n in "123"]
        for app in apps:
            app.register_flow(report)
        fired = await asyncio.gather(*(app.schedules.fire_due() for app in apps))
        assert not [each for part in fired for each in part if each.error]
        runs = {each.run for part in fired for each in part if each.schedule}
        assert len(runs) == 1
        assert {each.run for each in await apps[1].runs()} == runs | {each.id for each in planned}
        async with asyncio.timeout(60):
            while await apps[2].runs(unfinished=True):  # noqa: ASYNC110 - whichever app drives it
                await asyncio.sleep(0.01)
        for run in await apps[2].runs():
            steps = [each.kind for each in await apps[2].history.events(run.run)]
            assert steps.count("step.started") == 1 and steps[-1] == "run.finished"


async def test_a_start_at_an_instant(here: Path) -> None:
    clock = FakeClock()
    async with Loom(store=here / "a.db", clock=clock) as app:
        run = await app.start(report, Report(day="x"), user_id="ann", at="1h")
        other = await app.start(report, at=clock.now() + timedelta(hours=2), app_id="acme")
        with pytest.raises(UnknownRun):
            await run.outcome()
        (planned,) = await app.schedules.planned()
        assert (planned.run, planned.user, planned.at - clock.now()) == (
            run.id,
            "ann",
            timedelta(hours=1),
        )
        assert not await app.schedules.fire_due()
        clock.advance(timedelta(hours=1))
        (fired,) = await app.schedules.fire_due()
        assert fired.run == run.id
        assert (await run.outcome()).state == Report(day="x", pages=1)
        assert not await app.schedules.planned()
        assert not await app.schedules.cancel(other.id)
        assert await app.schedules.cancel(other.id, app_id="acme")
        clock.advance(timedelta(hours=5))
        assert not await app.schedules.fire_due()
        assert len(await app.runs()) == 1 and not await app.runs(app_id="acme")


async def test_what_cannot_start_is_told_once(here: Path) -> None:
    clock = FakeClock()
    lost = Flow("lost", Report).start_with(lambda state: {"pages": 1}, name="write")
    async with Loom(store=here / "a.db", clock=clock) as app:
        await app.start(lost, at="1h")
    clock.advance(DAY)
    async with Loom(store=here / "a.db", clock=clock) as app:  # it does not know the flow
        (fired,) = await app.schedules.fire_due()
        assert fired.error.startswith("TURNLOOM-")
        assert not await app.schedules.fire_due()
        (planned,) = await app.schedules.planned()
        assert planned.error == fired.error and not await app.runs()
        with pytest.raises(UsageError):
            await app.start(report, at=datetime(2026, 1, 1))  # noqa: DTZ001 - without a zone
        with pytest.raises(UsageError):
            await app.start(report, at="soon")


async def test_a_run_left_behind_is_continued(here: Path) -> None:
    """A process that died after it started the run, and before it noted the firing."""
    declare(DAILY)
    clock = clock_at("2026-01-05 12:00")
    async with Loom(store=here / "a.db", clock=clock) as app:
        await app.schedules.fire_due()
        clock.time = datetime(2026, 1, 6, 6, tzinfo=UTC)
        (fired,) = await app.schedules.fire_due()
    with tables_of(here / "a.db") as tables:
        tables.execute("UPDATE {}firings SET at = at - 86400000000, run = ''")
    clock.advance(timedelta(seconds=40))
    async with Loom(store=here / "a.db", clock=clock) as app:
        (again,) = await app.schedules.fire_due()
        assert again.run == fired.run
        assert (await pages(app, fired.run)).pages == 1
        assert len(await app.runs()) == 1


async def test_serving(here: Path) -> None:
    """A start that is planned while the schedules are served is made in time."""
    async with Loom(store="memory") as app:
        serving = asyncio.create_task(app.schedules.serve())
        run = await app.start(report, at="0s")
        await until(lambda: app.schedules.is_served)
        async with asyncio.timeout(60):
            while not await app.runs():  # noqa: ASYNC110 - nothing tells of runs that begin
                await asyncio.sleep(0.01)
        assert (await run.outcome()).state.pages == 1
        serving.cancel()
        await asyncio.wait({serving})


MISTAKES = """
model = "test"
[[schedule]]
workflow = "nowhere"
cron = "0 7 * * *"

[[schedule]]
workflow = "FLOWS:report"
cron = "61 * * * *"

[[schedule]]
workflow = "FLOWS:reprot"
cron = "* * * * *"

[[schedule]]
workflow = "FLOWS:report"
name = "a"
cron = "* * * * *"
timezone = "Europe/Bonn"

[[schedule]]
workflow = "FLOWS:report"
name = "b"
cron = "* * * * *"
input = {days = 1}

[[schedule]]
workflow = "FLOWS:report"
name = "c"
cron = "* * * * *"
input = {day = 2026-01-01}

[[schedule]]
workflow = "FLOWS:report"
name = "d"
cron = "* * * * *"
misssed = "once"

[[schedule]]
workflow = "FLOWS:report"
name = "e"
cron = 5
missed = "never"

[[schedule]]
name = "f"

[[schedule]]
workflow = "FLOWS:report"
cron = "* * * * *"

[[schedule]]
workflow = "FLOWS:report"
cron = "0 * * * *"
"""


async def test_all_mistakes_are_told_at_once(here: Path) -> None:
    declare(MISTAKES.replace("FLOWS", str(FLOWS)))
    async with Loom(store="memory") as app:
        with pytest.raises(DefinitionError) as error:
            await app.schedules.list()
    found = [(each.line, each.code) for each in error.value.diagnostics]
    assert found == [
        (4, "W201"),
        (9, "W202"),
        (12, "W201"),
        (19, "W203"),
        (25, "W204"),
        (31, "W204"),
        (37, "W200"),
        (42, "W200"),
        (43, "W200"),
        (45, "W200"),
        (45, "W200"),
        (52, "W205"),
    ]
    assert all(each.remedy for each in error.value.diagnostics)


@pytest.mark.parametrize("text", ["schedule = 5", "schedule = [1]", "[schedule]\na = 1"])
async def test_schedules_that_are_none(here: Path, text: str) -> None:
    declare(text)
    async with Loom(store="memory") as app:  # which does not use them
        assert not await app.runs()
        with pytest.raises(DefinitionError):
            await app.schedules.fire_due()
