"""A site with runs of all three forms, and a browser, for all tests of a worker."""

import shutil
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.support.sites import ROOT, Site, Visit, browsing, serving, visiting

Visitor = Callable[..., Visit]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    folder: Path = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "workflows", folder / "workflows")
    with serving(folder) as served:
        yield served


@pytest.fixture(scope="session")
def chromium() -> Generator[Browser]:
    with sync_playwright() as playwright, browsing(playwright) as launched:
        yield launched


@pytest.fixture
def visit(chromium: Browser, site: Site) -> Generator[Visitor]:
    with ExitStack() as visits:

        def enter(**how: object) -> Visit:
            return visits.enter_context(visiting(chromium, site, **how))  # type: ignore[arg-type]

        yield enter
