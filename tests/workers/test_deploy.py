"""What `deploy/` holds is well formed, and names options that exist."""

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from turnloom.cli.commands.worker import WorkerCommand

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "systemd" / "turnloom-worker@.service"
OPTIONS = {f"--{each.name}" for each in fields(WorkerCommand)}


def test_options_of_workers_exist() -> None:
    for file in (DEPLOY / "Dockerfile", UNIT, DEPLOY / "README.md"):
        for line in file.read_text("utf-8").splitlines():
            _, worker, given = line.partition("worker")
            if worker and "--workflows" in line:
                assert {*re.findall(r"--[a-z-]+", given)} <= OPTIONS, line


def test_the_compose_file_fits_together() -> None:
    compose = YAML(typ="safe").load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert compose.keys() == {"name", "services", "volumes"}
    worker, database = compose["services"]["worker"], compose["services"]["db"]
    assert (DEPLOY / worker["build"]["context"] / worker["build"]["dockerfile"]).is_file()
    assert worker["depends_on"].keys() == {"db"} and "healthcheck" in database
    assert worker["environment"]["TURNLOOM_SCHEDULER"] == "procrastinate"
    volumes = [each.partition(":")[0] for each in database["volumes"]]
    assert {*volumes} == compose["volumes"].keys()
    # Docker and systemd wait longer than the worker's grace.
    assert int(worker["stop_grace_period"].removesuffix("s")) > WorkerCommand.grace
    assert (
        int(re.findall(r"TimeoutStopSec=(\d+)", UNIT.read_text("utf-8"))[0]) > WorkerCommand.grace
    )


def test_the_units_are_valid(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    unit = tmp_path / "turnloom-worker@1.service"
    # The program need not be installed where the test runs.
    text = re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text("utf-8"))
    unit.write_text(text, "utf-8")
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
