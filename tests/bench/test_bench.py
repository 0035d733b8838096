"""The benchmarks work: each finds numbers, in a size that says nothing about speed."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from bench.__main__ import SCENARIOS, main
from bench.measures import QUICK, Measure

# Some import four model libraries, on whatever else the machine does.
pytestmark = [pytest.mark.repeats, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
SMALL = msgspec.structs.replace(QUICK, parked=20, crowd=10, calls=2, callers=2, imports=1)

# Differences of a process that hardly grows: they may be nothing, or less.
DIFFERENCES = ("Python memory", "process memory", "tasks of")


@pytest.mark.doors
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_finds_ratios(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measures = [*SCENARIOS[name](SMALL, tmp_path)]
    assert measures
    for each in measures:
        assert each.scenario == name and math.isfinite(each.ratio), each
        if not each.case.startswith(DIFFERENCES):
            assert each.value > 0 and each.ratio > 0, each
    if name == "parked":
        assert measures[-1].value == 0, "a parked run holds a task"
    if name == "hops":  # a neighbour that is missing is named
        assert "flock-core" in capsys.readouterr().err
        assert not any("Flock" in each.against for each in measures)


def bench(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_findings_go_to_standard_output() -> None:
    done = bench(["--quick", "--json", "-", "assembly"])
    found = json.loads(done.stdout)
    cases = [each["case"] for each in found["measures"]]
    assert found["quick"] and cases and all(case in done.stderr for case in cases)


def test_findings_go_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    assert main(["--quick", "--json", str(file), "resume", "assembly"]) == 0
    measures = json.loads(file.read_text())["measures"]
    assert list(dict.fromkeys(each["scenario"] for each in measures)) == ["resume", "assembly"]
    shown = capsys.readouterr().out
    assert all(each["case"] in shown for each in measures)


def test_an_unknown_scenario_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["memroy"])
    assert refused.value.code == 2
    told = capsys.readouterr().err
    assert "memroy" in told and "memory, sqlite" in told


@pytest.mark.parametrize(("target", "over"), [(None, False), (2.0, False), (1.9, True)])
def test_a_ratio_above_its_target_is_over(target: float | None, over: bool) -> None:
    assert Measure("memory", "a turn", 10.0, "µs/turn", "a loop", 2.0, target).over is over
