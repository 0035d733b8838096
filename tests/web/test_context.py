"""The context inspector, in a browser."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.support.sites import Site
from tests.web.conftest import Visitor

pytestmark = pytest.mark.doors


@pytest.fixture(scope="module")
def interview(site: Site) -> str:
    """A finished run of `Interview`."""
    site.turnloom("run", "workflows/Interview", "--quiet")
    return str(json.loads(site.turnloom("explain", "last", "--json"))["run"])


def test_it_opens_at_the_last_turn_and_its_largest_new_piece(
    visit: Visitor, interview: str
) -> None:
    shown = visit()
    page = shown.open(f"/runs/{interview}/context")
    expect(page.get_by_role("heading", level=1)).to_contain_text("PlanArchitect, turn 7")
    expect(page).to_have_url(re.compile("turn=7&piece=event\\+65"))
    expect(page.locator(".piece.on")).to_contain_text("Considered")
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("turn=6"))
    assert shown.violations() == []
    assert shown.complaints == []
