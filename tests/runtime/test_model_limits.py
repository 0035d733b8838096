"""Limits of model calls, which `turnloom.toml` declares, hold for all runs of a process."""

import asyncio
from pathlib import Path

import pytest

from tests.workers.limits import ModelLoad, limited_folder
from turnloom import Loom, Run
from turnloom.errors import UsageError
from turnloom.testing.contracts.facts import until


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return limited_folder(tmp_path)


def configure(text: str) -> None:
    Path("turnloom.toml").write_text(text, "utf-8")


async def limited(app: Loom, run: Run) -> list[str]:
    """The reasons for which a run waited."""
    events = await app.history.events(run.id)
    return [event.data.reason for event in events if event.kind == "model.limited"]


@pytest.mark.parametrize("name", ["fast", "*"])
async def test_calls_at_once(folder: str, name: str) -> None:
    configure(f'[limits.models]\n"{name}" = {{ at_once = 1 }}\n')
    load = ModelLoad(held=True)
    async with Loom(store="memory", engine=load) as app:
        runs = [await app.start(folder)]
        await load.begun.wait()
        runs += [await app.start(folder) for _ in range(2)]
        for run in runs[1:]:
            async for event in run.events():
                if event.kind == "model.limited":
                    assert event.data.reason == "1 at once"
                    break
        load.release.set()
        for run in runs:
            assert (await run.finished()).kind == "run.finished"
        assert (load.calls, load.most) == (3, 1)
        assert await limited(app, runs[0]) == []
        for run in runs:
            assert (await app.history.replay(run.id)).divergence is None


async def test_a_run_that_waits_long_frees_its_slot(folder: str) -> None:
    """It is parked, and others are driven in its slot; it can be cancelled."""
    configure("[limits.models]\nfast = { per_minute = 1 }\n")
    load = ModelLoad()
    async with Loom(store="memory", engine=load, slots=1) as app:
        first, second = await app.start(folder), await app.start(folder)
        assert (await first.finished()).kind == "run.finished"
        async for event in second.events():
            if event.kind == "model.limited":
                break
        third = await app.start(limited_folder(Path("other"), "slow"))
        assert (await third.finished()).kind == "run.finished"
        assert await limited(app, second) == ["1 per minute"]
        assert await second.cancel()
        assert (await second.finished()).kind == "run.cancelled"
        assert load.calls == 2


@pytest.mark.doors
async def test_a_parked_run_continues_when_the_limit_allows_it(folder: str) -> None:
    configure("[limits.models]\nfast = { at_once = 1 }\n")
    load = ModelLoad(held=True)
    async with Loom(store="memory", engine=load) as app:
        first = await app.start(folder)
        await load.begun.wait()
        second = await app.start(folder)
        async with asyncio.timeout(60):
            while (await second.holder()) or not await limited(app, second):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        load.release.set()
        for run in (first, second):
            assert (await run.finished()).kind == "run.finished"
        assert load.most == 1
        kinds = [event.kind for event in await app.history.events(second.id)]
        assert kinds.index("model.limited") < kinds.index("run.resumed")
        assert (await app.history.replay(second.id)).divergence is None


@pytest.mark.parametrize(
    "text",
    [
        "limits = 3",
        "[limits]\nmodel = 3",
        "[limits.tenants]\nacme = 0",
        "[limits.tenants]\nacme = true",
        "[limits.models]\nfast = 3",
        "[limits.models]\nfast = {}",
        "[limits.models]\nfast = { calls = 3 }",
        "[limits.models]\nfast = { at_once = -1 }",
    ],
)
def test_what_is_no_limit_is_refused(folder: str, text: str) -> None:
    configure(text)
    with pytest.raises(UsageError) as caught:
        Loom()
    assert caught.value.code == UsageError.code


async def test_tenants_have_limits_of_their_own(folder: str) -> None:
    configure('tenant_slots = 3\n[limits.tenants]\nacme = 1\n"*" = 2\n')
    for tenant, most in (("acme", 1), ("other", 2)):
        load = ModelLoad(held=True)
        async with Loom(store="memory", engine=load) as app:
            runs = [await app.start(folder, app_id=tenant) for _ in range(3)]
            await until(lambda load=load, most=most: load.calls >= most)
            load.release.set()
            for run in runs:
                await run.finished()
            assert load.most == most
