"""Runs that wait for the limit of their tenant say so: in lists, and then in the log."""

from pathlib import Path

import pytest

from tests.workers.limits import ModelLoad, limited_folder
from turnloom import Loom, Run
from turnloom.log.events import RunLimited
from turnloom.runtime.spec import tenant_limit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("turnloom.toml").write_text('[limits.tenants]\n"*" = 1\n', "utf-8")
    return limited_folder(tmp_path)


async def limits_of(app: Loom, run: Run) -> list[RunLimited]:
    events = await app.history.events(run.id)
    return [event.data for event in events if event.kind == "run.limited"]


async def test_a_wait_for_the_limit_is_shown_and_on_record(folder: str) -> None:
    load = ModelLoad(held=True)
    async with Loom(store="memory", engine=load) as app:
        first = await app.start(folder)
        await load.begun.wait()
        second = await app.start(folder)
        listed = {each.run: each for each in await app.runs()}
        assert (listed[first.id].status, listed[second.id].status) == ("unfinished", "limited")
        assert tenant_limit(1) in listed[second.id].reason
        assert (await second.summary()).status == "limited"
        assert [each.run for each in await app.runs(status="limited")] == [second.id]
        assert [each.run for each in await app.runs(status="unfinished")] == [first.id]
        assert [each.run for each in await app.runs(1, status=("limited", "unfinished"))] == [
            second.id
        ]
        assert await app.runs(status=("stranded", "finished")) == []
        load.release.set()
        for run in (first, second):
            assert (await run.finished()).kind == "run.finished"
        assert await limits_of(app, first) == []
        (fact,) = await limits_of(app, second)
        assert fact.reason == tenant_limit(1) and fact.seconds >= 0
        for run in (first, second):
            assert (await run.summary()).status == "finished"
            assert (await app.history.replay(run.id)).divergence is None
        tested = (await app.history.backtest(folder, last=2)).runs
        assert [each.differs for each in tested] == [False, False]
