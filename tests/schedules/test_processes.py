"""Several processes on one file fire each start once."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT
from tests.schedules.flows import Report, report
from turnloom import Loom

pytestmark = pytest.mark.doors


async def test_processes_fire_once(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with Loom(store=store) as app:
        planned = [await app.start(report, Report(day=str(n)), at="0s") for n in range(20)]
        children = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.schedules.firing",
                str(store),
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(3)
        ]
        async with asyncio.timeout(120):
            for child in children:
                assert child.stdout is not None
                assert await child.stdout.readline() == b"ready\n"
            done = await asyncio.gather(*(child.communicate(b"\n") for child in children))
        fired = [line.split() for out, _ in done for line in out.decode().splitlines()]
        assert not [words for words in fired if len(words) > 1]  # problems
        assert sorted(run for (run,) in fired) == sorted(run.id for run in planned)
        for run in planned:
            kinds = [event.kind for event in await app.history.events(run.id)]
            assert kinds.count("step.started") == 1 and kinds[-1] == "run.finished"
