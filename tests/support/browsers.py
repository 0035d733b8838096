"""A real browser for tests: the system's Chromium, installed by the package manager if needed."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

PACKAGE = "chromium"
NAMES = (PACKAGE, "chromium-browser", "google-chrome")

INSTALL = f"apt-get update && apt-get install --yes --no-install-recommends {PACKAGE}"


@cache
def browser() -> str:
    """The path of Chromium.

    Raises:
        RuntimeError: there is none, and it cannot be installed here.
    """
    with (Path(tempfile.gettempdir()) / "turnloom-browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers of the same tests wait
        found = _found()
        if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(["sh", "-c", INSTALL], env=environment, capture_output=True, check=False)
            found = _found()
    if found is None:
        raise RuntimeError(f"These tests need Chromium. Install it: `sudo sh -c '{INSTALL}'`.")
    return found


def _found() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
