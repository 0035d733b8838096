"""What people install: a wheel that works where the checkout is not."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.gates.conftest import BIN, ROOT
from tests.support.sites import STATIC, make

PROGRAM = "import turnloom; from turnloom import Loom; print(turnloom.__file__, Loom.__module__)"


def call(*command: str | Path, folder: Path = ROOT) -> str:
    done = subprocess.run(
        command, cwd=folder, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.doors
def test_a_wheel_brings_a_command_and_a_package_that_work(tmp_path: Path) -> None:
    make("web")
    call(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    (wheel,) = tmp_path.glob("turnloom-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    shipped = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.*")}
    assert {name for name in shipped if name.endswith((".json", ".sql", "py.typed"))} <= set(names)
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    built = {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert {name.rpartition(".")[2] for name in built} >= {"html", "js", "css", "svg"}
    assert built <= set(names)
    assert not [name for name in names if not name.startswith(("turnloom/", "turnloom-"))]
    home = tmp_path / "home"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    call(BIN / "uv", "pip", "install", "--offline", "--no-deps", "--python", python, wheel)
    site = next(home.glob("lib/*/site-packages"))
    # After what was installed, so that it is found first; without `site`, no link to our checkout.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    place, module = call(python, "-c", PROGRAM, folder=tmp_path).split()
    assert place.startswith(str(site)) and module.startswith("turnloom.")
    assert "explain" in call(home / "bin" / "turnloom", "--help", folder=tmp_path)
    assert not call(home / "bin" / "turnloom", "check", ROOT / "workflows" / "Interview")
