"""What the pages show when something is filled in, opened or broken, in a browser."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.folders import write_folder
from tests.support.sites import ROOT, Site, serving
from tests.web.conftest import Told, Visitor, furnish
from tests.web.test_chat import asked

pytestmark = pytest.mark.doors

PROGRAM = '''
"""An app with a flow that asks two people, and one that fails."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from turnloom import Flow, Loom, Path


class Address(BaseModel):
    model_config = ConfigDict(frozen=True)
    street: str = ""


class Parcel(BaseModel):
    model_config = ConfigDict(frozen=True)
    speed: Literal["slow", "fast"] = "slow"
    weight: float = Field(1.0, description="In kilograms.")
    to: Address = Address()


def weigh(parcel: Parcel) -> None:
    if parcel.weight > 30:
        raise ValueError("no scales for that")


def send(parcel: Parcel) -> None: ...


app = Loom()
app.register_flow(
    Flow("parcels", Parcel)
    .start_with(weigh)
    .fork(
        Path().await_approval("local", name="stamp"),
        Path().await_approval("local", name="seal"),
        join=send,
    )
    .finally_(send, name="out")
)
'''


@pytest.fixture
def parcels(tmp_path: Path) -> Path:
    furnish(tmp_path)
    (tmp_path / "parcels_app.py").write_text(PROGRAM, "utf-8")
    return tmp_path


def fill(page: Page, weight: str) -> None:
    """Start the flow with a state from its form."""
    page.goto(re.sub(r"(//[^/]+).*", r"\1/start", page.url))
    item = page.get_by_role("listitem").filter(has_text="parcels")
    item.get_by_role("button", name="Fill in").click()
    item.get_by_label("weight").fill(weight)
    item.get_by_label("fast").check()
    item.get_by_label("street").fill("Quay 3")
    item.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile("/chat$"))


def test_a_flow_starts_from_a_form_and_asks_several_at_once(visit: Visitor, parcels: Path) -> None:
    with serving(parcels, "--app", "parcels_app:app") as served:
        shown = visit(served)
        page = shown.open("/start")
        fill(page, "2.5")
        forms = page.locator(".question")
        expect(forms).to_have_count(2)
        assert shown.violations() == []
        page.get_by_role("link", name="Timeline").click()
        page.get_by_role("link", name="Variables").click()
        state = page.get_by_role("main")
        expect(state).to_contain_text("Quay 3")
        page.get_by_role("link", name="Chat").click()
        forms.nth(1).get_by_label("approve").check()
        forms.nth(1).get_by_role("button", name="Answer").click()
        expect(forms).to_have_count(1)
        forms.first.get_by_label("approve").check()
        forms.first.get_by_role("button", name="Answer").click()
        expect(page.locator(".standing")).to_contain_text("The run is finished")
        fill(page, "31")
        expect(page.locator(".standing")).to_contain_text("no scales for that")
        page.goto(f"{served.url}/runs")
        row = page.locator(".run-list li").first
        expect(row.locator(".run-status")).to_contain_text("no scales for that")


def test_a_browser_that_is_offline_still_reaches_a_server_on_its_machine(
    visit: Visitor, told: Told
) -> None:
    page = visit().open("/start")
    page.add_init_script("Object.defineProperty(navigator, 'onLine', { get: () => false })")
    page.evaluate("Object.defineProperty(navigator, 'onLine', { get: () => false })")
    page.evaluate("dispatchEvent(new Event('offline'))")
    page.get_by_role("link", name="Turnloom").click()
    expect(page.locator(".run-list li").first).to_be_visible()


def test_a_view_that_cannot_be_loaded_says_so(visit: Visitor, told: Told) -> None:
    shown = visit()
    page = shown.open(f"/runs/{told.interview}/chat")
    expect(page.locator(".theirs").first).to_be_visible()
    page.route("**/assets/Context-*.js", lambda route: route.abort())
    page.get_by_role("link", name="Context", exact=True).click()
    expect(page.get_by_role("heading", name="This page broke")).to_be_visible()
    assert shown.violations() == []
    page.go_back()
    expect(page.locator(".theirs").first).to_be_visible()


def test_pages_without_tls_start_runs_and_copy(visit: Visitor, site: Site) -> None:
    page = visit().open("/nowhere")
    page.add_init_script(
        "Object.defineProperty(window, 'isSecureContext', { value: false });"
        "delete Crypto.prototype.randomUUID; delete Navigator.prototype.clipboard;"
    )
    page.goto(f"{site.url}/start")
    page.get_by_role("listitem").filter(has_text="Interview").get_by_role("button").click()
    expect(page.locator(".theirs")).to_be_visible()
    page.get_by_role("link", name="Timeline").click()
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied").first).to_be_visible()


@pytest.mark.parametrize("theme, size", [("light", (1360, 820)), ("dark", (390, 844))])
def test_what_opens_is_accessible(
    visit: Visitor, told: Told, theme: str, size: tuple[int, int]
) -> None:
    shown = visit(theme=theme, size=size)
    found: dict[str, list[str]] = {}
    page = shown.open("/start")
    form = asked(page)
    form.get_by_role("button", name="Answer").click()
    expect(form.locator(".text-danger").first).to_be_visible()
    found["form"] = shown.violations()
    shown.open("/runs")
    rows = page.locator(".run-list li")
    rows.first.get_by_role("checkbox").check()
    rows.nth(1).hover()
    found["list"] = shown.violations()
    page.get_by_role("button", name="Colours").click()
    found["menu"] = shown.violations()
    piece = "context_variables.interview_complete"
    shown.open(f"/runs/{told.interview}/context?turn=5&piece={piece}")
    expect(page.locator("#card")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    found["keys"] = shown.violations()
    shown.open("/runs?workflow=none")
    expect(page.get_by_role("link", name="Show all runs")).to_be_visible()
    found["empty"] = shown.violations()
    assert {name: each for name, each in found.items() if each} == {}


def test_single_letters_can_be_turned_off_as_keys(visit: Visitor, told: Told) -> None:
    shown = visit()
    page = shown.open(f"/runs/{told.interview}/context?turn=5&piece=agents.PlanArchitect")
    expect(page.locator(".piece.on")).to_be_visible()
    page.keyboard.press("?")
    page.get_by_label("Single letters and signs are keys").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator(".piece.on")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("?")
    page.keyboard.press("ArrowRight")  # is not a letter
    expect(page).to_have_url(re.compile("turn=6"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="keys").click()
    page.get_by_label("Single letters and signs are keys").check()
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect(page).to_have_url(re.compile("against=previous"))


def test_the_story_of_a_value_has_an_address(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.interview}/variables?at=46")
    page.get_by_role("button", name="interview_complete").click()
    expect(page).to_have_url(re.compile("at=46&name=interview_complete"))
    page.reload()
    expect(page.locator(".story")).to_contain_text("event 46")


def test_a_long_run_is_seen_at_a_glance(visit: Visitor, long_run: str) -> None:
    page = visit().open(f"/runs/{long_run}/context?turn=700")
    glance = page.get_by_role("slider", name="Turn")
    expect(glance).to_have_attribute("aria-valuetext", re.compile("^turn 700, "))
    glance.fill("1199")
    expect(page.get_by_role("heading", level=1)).to_contain_text("turn 1200")
    expect(page.locator(".column[aria-current]")).to_be_in_viewport()
    expect(page.locator(".minimap .here")).to_be_visible()


def test_a_timeline_is_narrowed_by_words(visit: Visitor, told: Told) -> None:
    shown = visit()
    page = shown.open(f"/runs/{told.interview}/timeline")
    expect(page.locator(".happened").first).to_be_visible()
    page.get_by_role("searchbox").fill("planarchitect terminate")
    expect(page.locator(".happened")).to_have_count(1)
    expect(page.locator(".only")).to_contain_text("1 of ")
    page.locator(".happened").click()
    expect(page).to_have_url(re.compile(r"only=planarchitect\+terminate.*at=\d"))
    expect(page.get_by_role("heading", name="route.decided")).to_be_visible()
    assert shown.violations() == []
    page.reload()
    expect(page.locator(".happened")).to_have_count(1)
    page.get_by_role("searchbox").fill("nothing of the kind")
    expect(page.get_by_role("heading", name="No row has these words")).to_be_visible()


HUGE = {
    "orchestrator.yaml": "max_turns: 2\n",
    "handoffs.yaml": "[{source_agent: A, target_agent: A, handoff_type: after_work}]\n",
    "agents.yaml": "A:\n  system_message: You are A.\n"
    "  engine: {type: functions, file: model.py, function: answer}\n",
    "model.py": "def answer(task):\n"
    "    return '<img src=x onerror=alert(1)> ' + 'word ' * 150_000 + 'at the very end.'\n",
}


def test_a_huge_text_is_folded_and_is_text(visit: Visitor, site: Site) -> None:
    site.turnloom("run", str(write_folder(site.folder, HUGE, "Huge")), "--quiet")
    run = json.loads(site.turnloom("runs", "--workflow", "Huge", "--json"))[0]["run"]
    shown = visit()
    for view, text in (("chat", ".theirs"), ("context?turn=2", ".piece.on")):
        page = shown.open(f"/runs/{run}/{view}")
        place = page.locator(text).last
        expect(place).to_contain_text("<img src=x onerror=alert(1)> word word")
        assert len(place.inner_text()) < 20_000
        place.get_by_role("button", name="more characters").click()
        expect(place).to_contain_text("at the very end.")
    page = shown.open(f"/runs/{run}/context?turn=2&find=at+the+very+end.")
    expect(page.locator(".piece mark")).to_be_visible()
    assert shown.complaints == []


def test_a_timeline_has_tools_questions_and_hooks(visit: Visitor, site: Site) -> None:
    site.turnloom("run", str(ROOT / "docs/snippets/Booking"), "--quiet")
    run = json.loads(site.turnloom("runs", "--workflow", "Booking", "--json"))[0]["run"]
    page = visit().open(f"/runs/{run}/timeline")
    for kind, name in (("tool", "free_tables"), ("question", "local"), ("hook", "send_receipt")):
        expect(page.locator(f".happened.{kind}").filter(has_text=name)).to_be_visible()
    page.locator(".happened.hook").click()
    expect(page.get_by_role("heading", name="lifecycle.tool_call")).to_be_visible()
