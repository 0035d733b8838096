"""The lock of the web UI serves every platform, and names no host."""

import json
from collections import defaultdict
from typing import Any

from tests.gates.conftest import ROOT

LOCK = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))
PACKAGES: dict[str, dict[str, Any]] = LOCK["packages"]

# Where people build the web UI: each with the processors that are common there.
PLATFORMS = {
    ("linux", "x64"),
    ("linux", "arm64"),
    ("darwin", "x64"),
    ("darwin", "arm64"),
    ("win32", "x64"),
    ("win32", "arm64"),
}


def natives() -> dict[str, set[tuple[str, str]]]:
    """The platforms of each package that has parts for some of them only."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for name, package in PACKAGES.items():
        for part in package.get("optionalDependencies", ()):
            locked = PACKAGES.get(f"node_modules/{part}", {})
            found[name] |= {
                (os, cpu) for os in locked.get("os", ()) for cpu in locked.get("cpu", ())
            }
    return {name: platforms for name, platforms in found.items() if platforms}


def test_every_native_package_is_locked_for_every_platform() -> None:
    found = natives()
    assert "node_modules/rolldown" in found
    for name, platforms in found.items():
        assert platforms >= PLATFORMS, f"{name} lacks {PLATFORMS - platforms}"


def test_every_optional_part_is_locked() -> None:
    """npm forgets those of other platforms when it renews a lock beside installed packages."""
    for name, package in PACKAGES.items():
        for part in package.get("optionalDependencies", ()):
            inner = f"{name}/node_modules/{part}"
            assert f"node_modules/{part}" in PACKAGES or inner in PACKAGES, f"{name} lacks {part}"


def test_every_package_has_a_digest_and_no_host() -> None:
    for name, package in PACKAGES.items():
        if name:
            assert package.get("integrity", "").startswith("sha512-"), name
            assert "resolved" not in package, name
