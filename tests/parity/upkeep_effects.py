"""What settings of how long runs stay do."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doors.forms import answer
from tests.parity.sweep_effects import SWEEP_SETTINGS
from turnloom import Loom, TurnloomError
from turnloom.testing import FakeClock


def configure(text: str) -> None:
    Path("turnloom.toml").write_text(text, "utf-8")


async def left(folder: str, *, fails: bool = False, **settings: Any) -> int:
    """How many of one run is there, two days after it ended."""

    async def fail(task: Any) -> Any:
        raise TurnloomError("no")

    clock = FakeClock(step=timedelta(microseconds=1))
    engine = fail if fails else answer
    async with Loom(store="memory", engine=engine, clock=clock, **settings) as app:
        await (await app.start(folder)).finished()
        clock.advance(timedelta(days=2))
        await app.upkeep.apply_retention()
        return len(await app.runs())


async def retention_of_the_app(folder: str) -> None:
    assert [await left(folder, retention=age) for age in ("1d", "3d")] == [0, 1]


async def retention_of_a_file(folder: str) -> None:
    configure('retention = "1d"\n')
    assert await left(folder) == 0


async def keep_failed_of_the_app(folder: str) -> None:
    kept = [
        await left(folder, fails=True, retention="1d", keep_failed=each) for each in (False, True)
    ]
    assert kept == [0, 1]


async def keep_failed_of_a_file(folder: str) -> None:
    configure('retention = "1d"\nkeep_failed = true\n')
    assert await left(folder, fails=True) == 1


async def tenants_of_the_app(folder: str) -> None:
    tenants = {"local": {"retention": "3d"}}
    assert await left(folder, retention="1d", tenants=tenants) == 1


async def tenants_of_a_file(folder: str) -> None:
    configure('[tenants.local]\nretention = "1d"\n')
    assert await left(folder) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNLOOM_TENANTS", '{"local": {"retention": "3d"}}')
        assert await left(folder) == 1


UPKEEP_SETTINGS: dict[str, Callable[[str], Any]] = {
    **SWEEP_SETTINGS,
    "Loom.retention": retention_of_the_app,
    "Settings.retention": retention_of_a_file,
    "Loom.keep_failed": keep_failed_of_the_app,
    "Settings.keep_failed": keep_failed_of_a_file,
    "Loom.tenants": tenants_of_the_app,
    "Settings.tenants": tenants_of_a_file,
}
