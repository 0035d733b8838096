"""Long lists of runs, their filters, and what runs wait for, in a browser."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.support.folders import write_folder
from tests.support.sites import Site, serving
from tests.web.conftest import Told, Visitor, furnish

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
    item = page.get_by_role("listitem").filter(has_text=workflow)
    item.get_by_role("button").click()
    if page.get_by_role("region", name="Flows").get_by_role("heading", name=workflow).count():
        item.get_by_role("button", name="Start").click()
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


# Fails until a file is there.
SHAKY = {
    "orchestrator.yaml": "startup_mode: BackendOnly\ninitial_message: Go.\nmax_turns: 1\n",
    "agents.yaml": "A:\n  system_message: You are A.\n"
    "  engine: {type: functions, file: shaky.py, function: answer}\n",
    "shaky.py": "from pathlib import Path\n\n"
    "def answer(task):\n    return Path('bridge').read_text()\n",
}


def test_failed_runs_are_retried_together(visit: Visitor, tmp_path: Path) -> None:
    write_folder(tmp_path / "workflows", SHAKY, "Shaky")
    with serving(tmp_path) as served:
        page = visit(served).open("/runs")
        for _ in range(2):
            start(page, "Shaky")
            expect(page.locator(".standing")).to_contain_text("failed")
        (tmp_path / "bridge").write_text("Across.")
        page.goto(f"{served.url}/runs")
        expect(page.locator(".pill.bad")).to_have_count(2)
        for box in page.get_by_role("checkbox").all():
            box.check()
        chosen = page.get_by_role("group", name="Chosen runs")
        expect(chosen.get_by_role("button", name="Cancel 0")).to_be_disabled()
        chosen.get_by_role("button", name="Retry 2").click()
        expect(page.locator(".pill.good")).to_have_count(2)
        expect(chosen).to_have_count(0)


COLLECTING = """
import asyncio
from pydantic import BaseModel
from turnloom import Batch, Loom, Task, artifact_type

@artifact_type
class Parcel(BaseModel):
    number: int

async def load(task: Task) -> None:
    return None

async def main() -> None:
    async with Loom() as app:
        board = app.board()
        board.agent("loader").consumes(Parcel, batch=Batch(size=2)).with_engines(load)
        for number in range(3):
            await board.publish(Parcel(number=number))
            await board.run_until_idle()

asyncio.run(main())
"""


def test_a_run_says_what_it_collects(visit: Visitor, tmp_path: Path) -> None:
    furnish(tmp_path)
    with serving(tmp_path) as served:
        program = [sys.executable, "-c", COLLECTING]
        subprocess.run(program, cwd=tmp_path, env=served.environment, check=True)
        page = visit(served).open("/runs?status=collecting")
        row = page.locator(".run-list li")
        expect(row).to_have_count(1)
        expect(row.locator(".pill")).to_have_text("collecting 1 of 2")
        expect(row.locator(".run-status")).to_contain_text(re.compile("for artifacts, \\d"))
        row.get_by_role("link", name="board").click()
        page.get_by_role("link", name="Timeline").click()
        page.locator(".happened.set").click()
        opened = page.locator(".event").get_by_role("link", name="Run board-")
        opened.click()
        expect(page.locator(".totals")).to_contain_text("From 3 runs")
        expect(page.locator(".happened").filter(has_text="turn 1")).to_be_visible()


def test_a_stranded_run_says_why_and_is_resumed(visit: Visitor, told: Told, site: Site) -> None:
    page = visit().open("/start")
    reason = "no worker has its code"

    def strand(route: Route) -> None:
        reply = route.fetch()
        given = reply.json()
        for run in given.get("items", [given]):
            run |= {"status": "stranded", "reason": reason}
        route.fulfill(response=reply, json=given)

    page.route(re.compile("/api/v1/runs(\\?|$)"), strand)
    page.route(re.compile("/api/v1/runs\\?.*limit="), lambda route: route.abort())
    page.goto(f"{site.url}/runs?workflow=Advice")
    row = page.locator(".run-list li").first
    expect(row.locator(".pill")).to_have_text("stranded")
    expect(row.locator(".run-status")).to_contain_text(re.compile(f"\\d.*: {reason}"))
    run = start(page, "Interview")
    expect(page.locator(".theirs")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)
    page.route(re.compile(f"/api/v1/runs/{run}$"), strand)
    expect(page.locator(".standing")).to_contain_text(reason)
    with page.expect_request(re.compile(f"/runs/{run}/resume$")):
        page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Stop this run").click()
    expect(page.locator(".standing")).to_contain_text("stopped")


def test_every_filter_narrows_the_list(visit: Visitor, told: Told, site: Site) -> None:
    shown = visit()
    rows = shown.page.locator(".run-list li")
    page = shown.open("/runs?workflow=Advice")
    expect(rows).to_have_count(1)
    page.get_by_label("Workflow").select_option("Counter")
    expect(rows).to_contain_text(told.counter[:10])
    page.get_by_label("User").fill("nobody")
    expect(page.get_by_role("link", name="Show all runs")).to_be_visible()
    page.get_by_label("User").fill("local")
    expect(rows).to_have_count(1)
    page = shown.open("/runs?workflow=Counter&since=2100-01-01T00:00:00Z")
    expect(page.get_by_role("link", name="Show all runs")).to_be_visible()
    page.get_by_label("Time").select_option(label="the last hour")
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="Turnloom").click()
    page.get_by_label("Search runs").fill(f"counter {told.counter[:12]}")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(told.counter[:10])
