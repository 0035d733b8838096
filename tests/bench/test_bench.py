import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import SCENARIOS
from bench.measures import Measure

pytestmark = pytest.mark.repeats

ROOT = Path(__file__).parents[2]

# Differences of a process that hardly grows: they may be nothing, or less.
DIFFERENCES = ("Python memory", "process memory", "tasks of")


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.timeout(240)  # every scenario, on whatever else the machine does
def test_every_scenario_finds_ratios(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    done = bench("--quick", "--json", str(file))
    assert done.returncode == 0, done.stderr
    found = json.loads(file.read_text())
    assert found["quick"]
    measures = found["measures"]
    assert list(dict.fromkeys(each["scenario"] for each in measures)) == list(SCENARIOS)
    for each in measures:
        assert each["case"] in done.stdout
        assert math.isfinite(each["ratio"]), each
        if not each["case"].startswith(DIFFERENCES):
            assert each["value"] > 0, each
            assert 0 < each["ratio"] < 10_000, each
    (tasks,) = (each["value"] for each in measures if each["case"] == "tasks of 100 runs")
    assert tasks == 0, "a parked run holds a task"
    assert "flock-core is not installed" in done.stderr  # a neighbour that is missing is named
    assert "Flock" not in done.stdout


def test_findings_go_to_standard_output() -> None:
    done = bench("--quick", "--json", "-", "assembly")
    cases = [each["case"] for each in json.loads(done.stdout)["measures"]]
    assert cases and all(case in done.stderr for case in cases)


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    done = bench("memroy")
    assert done.returncode == 2
    assert "no scenario memroy; there is memory, sqlite" in done.stderr


@pytest.mark.parametrize(("target", "over"), [(None, False), (2.0, False), (1.9, True)])
def test_a_ratio_above_its_target_is_over(target: float | None, over: bool) -> None:
    assert Measure("memory", "a turn", 10.0, "µs/turn", "a loop", 2.0, target).over is over
