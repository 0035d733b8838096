"""The build of the web UI: its checks, and the size of the first view."""

import gzip
import json
from pathlib import Path

import pytest

from tests.support.browsers import browser
from tests.support.sites import STATIC, make

pytestmark = pytest.mark.doors

# Bytes of the first view, compressed.
MOST = 400_000


def test_a_missing_browser_is_an_error_and_no_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="apt-get install"):
        browser.__wrapped__()


@pytest.mark.timeout(600)  # on a fresh clone, it installs the packages first
def test_types_lint_format_and_unit_tests_pass() -> None:
    make("web-check")


def test_the_first_view_is_small_and_asks_no_other_host() -> None:
    make("web")
    manifest = json.loads((STATIC / ".vite/manifest.json").read_text())
    entry = manifest["index.html"]
    needed = {entry["file"], *entry.get("css", ()), "index.html"}
    views = [each for each in manifest.values() if each.get("src", "").startswith("src/runs/")]
    for each in views:
        needed |= {each["file"], *each.get("css", ())}
        needed |= {manifest[name]["file"] for name in each.get("imports", ())}
    sizes = [len(gzip.compress((STATIC / name).read_bytes())) for name in needed]
    assert sum(sizes) <= MOST
    page = (STATIC / "index.html").read_text()
    assert "http" not in page
    assert "style=" not in page
