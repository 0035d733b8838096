"""What views show while they read, where there is nothing, and without a server, in a browser."""

import re
import shlex
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.support.sites import Site, serving
from tests.web.conftest import Told, Visitor

pytestmark = pytest.mark.doors

API = re.compile("/api/v1/(?!me)")
VIEWS = ("chat", "context", "timeline", "variables")


def addresses(run: str) -> list[str]:
    """A path of each view."""
    return ["/runs", "/start", *(f"/runs/{run}/{view}" for view in VIEWS)]


def test_a_view_that_is_read_says_so(visit: Visitor, told: Told) -> None:
    shown = visit()
    held: list[Route] = []
    shown.page.route(API, lambda route: held.append(route))
    for path in addresses(told.interview):
        page = shown.open(path)
        expect(page.get_by_role("status", name="Loading")).to_be_visible()
        assert shown.violations() == []


def test_a_view_without_a_server_says_so_and_goes_on_by_itself(visit: Visitor, told: Told) -> None:
    shown = visit()
    page = shown.page
    page.clock.install()
    lost = page.get_by_role("heading", name="The server does not answer")
    for path in addresses(told.interview):
        page.route(API, lambda route: route.abort())
        shown.open(path)
        pass_time(page, lost, 1)
        assert shown.violations() == []
        page.unroute(API)
        pass_time(page, lost, 0)
        expect(page.get_by_role("status", name="Loading")).to_have_count(0)


def pass_time(page: Page, places: Locator, count: int) -> None:
    """Let minutes pass for a page, until there are so many of something."""
    for _ in range(60):
        page.clock.run_for(2000)
        if places.count() == count:
            return
    expect(places).to_have_count(count)


def test_a_list_that_lost_its_server_stays(visit: Visitor, told: Told) -> None:
    shown = visit()
    shown.page.clock.install()
    shown.page.route(re.compile("/runs\\?.*limit="), lambda route: route.abort())
    page = shown.open("/runs?workflow=Advice")
    rows = page.locator(".run-list li")
    expect(rows).to_have_count(1)
    page.route(API, lambda route: route.abort())
    pass_time(page, page.get_by_text("The server does not answer. This list is as it was."), 1)
    expect(rows).to_have_count(1)


def test_a_problem_is_told_in_its_words(visit: Visitor, told: Told) -> None:
    page = visit().open("/runs/no-such-run/timeline")
    expect(page.get_by_role("alert")).to_contain_text("no-such-run")
    expect(page.get_by_role("alert")).to_contain_text("TURNLOOM-")
    page = visit().open(f"/runs/{told.interview}/context?turn=99")
    expect(page.locator(".note")).to_contain_text("99")


def test_a_server_without_runs_says_how_to_begin(visit: Visitor, tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        shown = visit(served)
        page = shown.open("/runs")
        expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
        assert shown.violations() == []
        page.get_by_role("link", name="Start a workflow").click()
        expect(page.get_by_role("heading", name="This server has no workflows")).to_be_visible()
        assert shown.violations() == []


def commands(page: Page) -> set[str]:
    """The commands that a page offers."""
    copied = page.locator("button[title^='turnloom ']").evaluate_all(
        "all => all.map(each => each.title)"
    )
    return {*copied, *page.locator(".command code").all_inner_texts()}


def test_every_view_shows_a_command_that_prints_the_same(
    visit: Visitor, told: Told, site: Site
) -> None:
    shown = visit()
    for path, there, words in (
        ("/runs?workflow=orders&status=failed", ".run-list li", told.orders[:10]),
        (f"/runs/{told.interview}/chat", ".theirs", "Who does this today"),
        (f"/runs/{told.interview}/timeline?at=48", ".event .data", "PlanArchitect"),
        (f"/runs/{told.interview}/variables?at=46", ".values li.now", "interview_complete"),
        (f"/runs/{told.interview}/context?turn=5", "#card", "PlanArchitect"),
        (f"/runs/{told.interview}/context?turn=6&against=previous", ".change", "event 59"),
        (f"/runs/{told.interview}/context?turn=7&find=three+spreadsheets", ".places", "seq 26"),
    ):
        page = shown.open(path)
        expect(page.locator(there).first).to_be_visible()
        expect(page.locator("button[title^='turnloom '], .command code").first).to_be_visible()
        printed = "".join(
            site.turnloom(*shlex.split(each)[1:]) for each in commands(page) if "FILE" not in each
        )
        assert words in printed, path
