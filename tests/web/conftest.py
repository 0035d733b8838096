"""A site with runs of all three forms, and a browser, for all tests of a worker."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.support.marathon import marathon
from tests.support.sites import ROOT, Site, Visit, browsing, serving, visiting

Visitor = Callable[..., Visit]
FOLDERS = Path(__file__).parent / "folders"
HANDBOOK = Path(__file__).parent / "handbook"
SECRET = "NO-93-8601"
TURNS = 1450  # more than 10,000 events


@dataclass(frozen=True)
class Told:
    """The ids of finished runs: a conversation, a board, flows, one that searched, and
    one whose turns call their model twice."""

    interview: str
    research: str
    review: str
    orders: str
    advice: str
    counter: str


def furnish(folder: Path) -> None:
    """Put the workflows into a folder that the site serves."""
    shutil.copytree(ROOT / "workflows", folder / "workflows")
    shutil.copytree(ROOT / "docs/snippets/Advice", folder / "workflows/Advice")
    for each in FOLDERS.iterdir():
        shutil.copytree(each, folder / "workflows" / each.name)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    folder = tmp_path_factory.mktemp("site")
    furnish(folder)
    with serving(folder) as served:
        yield served


@pytest.fixture(scope="session")
def told(site: Site) -> Told:
    for example in ("research_library", "document_review", "order_processing"):
        program = [sys.executable, str(ROOT / f"examples/{example}.py")]
        subprocess.run(program, cwd=site.folder, env=site.environment, check=True, stdout=-3)
    site.turnloom("run", "workflows/Interview", "--quiet")
    site.turnloom("ingest", str(HANDBOOK), "--collection", "handbook")
    site.turnloom("run", "workflows/Advice", "--quiet")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COUNTER_ACCOUNT", SECRET)
        site.turnloom("run", "workflows/Counter", "--quiet")
    listed = json.loads(site.turnloom("runs", "--json"))
    ids = {each["workflow"]: each["run"] for each in reversed(listed)}  # the latest of each
    names = ("Interview", "research", "review", "orders", "Advice", "Counter")
    return Told(*(ids[name] for name in names))


@pytest.fixture(scope="session")
def long_run(site: Site) -> str:
    """The id of a finished run of many turns."""
    site.turnloom("run", str(marathon(site.folder, TURNS)), "--quiet")
    (run,) = json.loads(site.turnloom("runs", "--workflow", "Marathon", "--json"))
    return str(run["run"])


@pytest.fixture
def chromium() -> Generator[Browser]:
    """A browser for one test: as long as it is open, its loop runs in this thread."""
    with sync_playwright() as playwright, browsing(playwright) as launched:
        yield launched


@pytest.fixture
def visit(chromium: Browser, site: Site) -> Generator[Visitor]:
    with ExitStack() as visits:

        def enter(at: Site = site, **how: object) -> Visit:
            return visits.enter_context(visiting(chromium, at, **how))  # type: ignore[arg-type]

        yield enter
