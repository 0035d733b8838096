"""Workers that are killed and stopped, a server that restarts, connections that are cut."""

from pathlib import Path

import pytest

from tests.workers.chaos import unleash

pytestmark = pytest.mark.doors

SECONDS = 60
WORKERS = 4


@pytest.mark.timeout(600)
async def test_a_disturbed_load_ends_as_an_undisturbed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EFFECTS", str(tmp_path / "twins"))
    report = await unleash(SECONDS, WORKERS, tmp_path)
    assert report.is_clean, str(report)
    assert report.runs > 20 and report.disturbances.total() > 5
