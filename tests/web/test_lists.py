"""Long lists of runs, and runs that wait for a limit, in a browser."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.sites import serving
from tests.web.conftest import Visitor, furnish

pytestmark = pytest.mark.doors

MANY = """
import asyncio
from pydantic import BaseModel, ConfigDict
from turnloom import Flow, Loom

class Count(BaseModel):
    model_config = ConfigDict(frozen=True)
    number: int = 0

def same(state: Count) -> dict[str, int]:
    return {}

async def main() -> None:
    flow = Flow("count", Count).start_with(same).finally_(same, name="end")
    async with Loom() as app:
        app.register_flow(flow)
        for number in range(210):
            await app.run(flow, Count(number=number))

asyncio.run(main())
"""


def start(page: Page, workflow: str) -> str:
    """Start a workflow in the browser; its run."""
    page.goto(re.sub(r"(//[^/]+).*", r"\1/start", page.url))
    page.get_by_role("listitem").filter(has_text=workflow).get_by_role("button").click()
    expect(page).to_have_url(re.compile("/chat$"))
    return page.url.split("/")[-2]


def test_a_long_list_says_which_runs_it_follows(visit: Visitor, tmp_path: Path) -> None:
    furnish(tmp_path)
    with serving(tmp_path) as served:
        program = [sys.executable, "-c", MANY]
        subprocess.run(program, cwd=tmp_path, env=served.environment, check=True)
        shown = visit(served)
        page = shown.open("/runs")
        expect(page.locator(".run-list li").first).to_be_visible()
        expect(page.get_by_role("note")).to_have_count(0)
        for loaded in (100, 150, 200, 210):
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            page.wait_for_function(
                "count => document.querySelector('.run-list').offsetHeight >= 45 * count",
                arg=loaded,
            )
        expect(page.get_by_role("note")).to_contain_text("The latest 200 runs are live")
        assert shown.violations() == []
        with page.expect_response(re.compile("/api/v1/runs\\?cursor=")):
            page.get_by_role("button", name="Read them again").click()


def test_runs_are_listed_that_wait_for_a_limit(visit: Visitor, tmp_path: Path) -> None:
    furnish(tmp_path)
    (tmp_path / "turnloom.toml").write_text('[limits.tenants]\n"*" = 1\n', "utf-8")
    with serving(tmp_path) as served:
        page = visit(served).open("/runs")
        start(page, "Story")
        expect(page.locator(".speaking")).to_be_visible()
        second = start(page, "Story")
        page.goto(f"{served.url}/runs")
        page.get_by_label("Status").select_option(label="waiting for limit")
        row = page.locator(".run-list li")
        expect(row).to_have_count(1)
        expect(row).to_contain_text(second[:10])
        expect(row.locator(".pill")).to_have_text("waiting for limit")
        page.get_by_label("Status").select_option(label="stranded")
        expect(page.get_by_role("link", name="Show all runs")).to_be_visible()
        page.get_by_label("Status").select_option(label="unfinished")
        expect(row).to_have_count(1)
