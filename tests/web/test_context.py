"""The context inspector, in a browser."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.support.sites import Site
from tests.web.conftest import Told, Visitor

pytestmark = pytest.mark.doors

# Elements of a page that stays quick, however long its run is.
MOST = 2500


def test_it_opens_at_the_last_turn_and_its_largest_new_piece(visit: Visitor, told: Told) -> None:
    shown = visit()
    page = shown.open(f"/runs/{told.interview}/context")
    expect(page.get_by_role("heading", level=1)).to_contain_text("PlanArchitect, turn 7")
    expect(page).to_have_url(re.compile("turn=7&piece=event\\+65"))
    expect(page.locator(".piece.on")).to_contain_text("Considered")
    assert shown.complaints == []


def test_keys_go_from_turn_to_turn_and_from_piece_to_piece(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.interview}/context?turn=5&piece=agents.PlanArchitect")
    expect(page.locator(".piece.on")).to_contain_text("at most three steps")
    for key, place in (
        ("j", "piece=context_variables.agents"),
        ("k", "piece=agents.PlanArchitect"),
        ("ArrowRight", "turn=6"),
        ("Shift+ArrowLeft", "turn=5"),
        ("ArrowLeft", "turn=4"),
        ("Shift+ArrowRight", "turn=4"),
    ):
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(place))
    page.keyboard.press("Enter")
    expect(page.locator("#card")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_card_keeps_the_focus_while_another_turn_is_read(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.interview}/context?turn=5&piece=agents.PlanArchitect")
    expect(page.locator(".piece.on")).to_contain_text("at most three steps")
    held: list[Route] = []
    page.route("**/turns/4", lambda route: held.append(route))
    with page.expect_request("**/turns/4"):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator("#card")).to_be_focused()
    held[0].continue_()
    expect(page.get_by_role("heading", level=1)).to_contain_text("InterviewAgent, turn 4")
    expect(page.locator("#card")).to_be_focused()


def test_a_card_joins_origin_cause_and_cost(visit: Visitor, told: Told) -> None:
    piece = "context_variables.interview_complete"
    page = visit().open(f"/runs/{told.interview}/context?turn=5&piece={piece}")
    card = page.locator("#card")
    expect(card.get_by_role("heading", level=2)).to_have_text("interview_complete = true")
    expect(card).to_contain_text("context_variables.yaml:46")
    expect(card).to_contain_text("NEXT")
    expect(card.get_by_role("link", name="event 46")).to_be_visible()
    expect(card).to_contain_text("21 tokens over this run")
    command = card.get_by_role("button", name="Copy as command")
    expect(command).to_have_attribute(
        "title", f"turnloom explain {told.interview} --variable interview_complete --at 50"
    )
    card.get_by_role("link", name="event 46").click()
    expect(page.get_by_role("heading", name="context.changed")).to_be_visible()


def test_why_not_says_what_would_have_sufficed(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.interview}/context?turn=5")
    route = page.get_by_role("region", name="What came next")
    expect(route).to_contain_text("handoffs.yaml:18")
    route.get_by_role("button", name="1 rule did not fire").click()
    expect(route.locator("li b")).to_have_text("plan_accepted = true")


def test_a_comparison_marks_what_came_and_why(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.interview}/context?turn=6")
    expect(page.locator(".piece.on")).to_be_visible()
    page.keyboard.press("d")
    expect(page).to_have_url(re.compile("against=previous"))
    expect(page.locator(".change ins")).to_have_count(2)
    expect(page.locator(".changes > li").first).to_contain_text("12 unchanged pieces")
    expect(page.locator(".change").last.get_by_role("link", name="event 59")).to_be_visible()
    page.get_by_label("Compared with turn").fill(f"{told.interview}:1")
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator(".change.gone").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".change")).to_have_count(0)


def test_a_sentence_is_found_in_every_prompt_and_where_it_entered(
    visit: Visitor, told: Told
) -> None:
    page = visit().open(f"/runs/{told.interview}/context?turn=7")
    expect(page.locator(".piece.on")).to_be_visible()
    page.keyboard.press("/")
    page.get_by_role("searchbox").fill("copies numbers from three")
    page.keyboard.press("Enter")
    found = page.get_by_role("region", name="Find in every prompt")
    expect(found.locator(".places li")).to_have_count(5)
    expect(found).to_contain_text("event 26")
    expect(page.locator(".column .hit")).to_have_count(5)
    found.locator(".places button").first.click()
    expect(page).to_have_url(re.compile("turn=3.*piece=event\\+27"))
    expect(page.locator(".piece.on mark")).to_be_visible()


def test_what_was_left_out_is_grouped_and_opens(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.research}/context")
    left = page.get_by_role("region", name="Left out")
    expect(left.locator(".group")).to_have_count(2)
    expect(left.locator(".group").first.locator("li")).to_have_count(6)
    left.locator("li button").first.click()
    expect(page.locator("#card blockquote")).to_be_visible()
    expect(page).to_have_url(re.compile("piece=out"))


def test_what_if_decides_the_turn_again_within_its_budget(visit: Visitor, told: Told) -> None:
    shown = visit()
    page = shown.open(f"/runs/{told.advice}/context?turn=1")
    left = page.get_by_role("region", name="Left out")
    left.get_by_role("button", name="What if 0.15?").click()
    expect(left.locator("output")).to_contain_text("The same prompt of 45 tokens")
    left.get_by_role("spinbutton").fill("0.9")
    expect(left.locator("output del")).to_have_text("− vacation.md#0")
    expect(left.locator("output")).to_contain_text("Another prompt of 30 tokens, 15 fewer")
    expect(left.locator("output")).to_contain_text("certain")
    command = left.locator("output").get_by_role("button", name="Copy as command")
    expect(command).to_have_attribute("title", re.compile("--turn 1 --what-if 6=0.9"))
    left.get_by_role("spinbutton").fill("7")
    expect(left.locator("output")).to_have_count(0)
    assert shown.violations() == []


def test_what_if_says_why_a_turn_cannot_be_decided_here(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.research}/context")
    left = page.get_by_role("region", name="Left out")
    left.get_by_role("button", name="What if").click()
    expect(left.locator("output")).to_contain_text("which this program does not declare")


def test_flows_and_failed_runs_are_explained_too(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.review}/context")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Reviewer, turn 1")
    expect(page.get_by_role("region", name="What came next")).to_contain_text("editor approved")
    page = visit().open(f"/runs/{told.orders}/context")
    expect(page.get_by_role("heading", name="No turn was taken yet")).to_be_visible()


def test_live_the_strip_grows_and_the_selection_stays(visit: Visitor, site: Site) -> None:
    page = visit().open("/start")
    page.get_by_role("listitem").filter(has_text="Story").get_by_role("button").click()
    expect(page).to_have_url(re.compile("/chat$"))
    for number in range(3):
        (site.folder / f"go-1-{number}").touch()
    page.get_by_role("link", name="Context").click()
    expect(page.locator(".column")).to_have_count(2)
    page.locator(".column").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("turn 1")
    address = page.url
    for turn in (2, 3, 4):
        for number in range(3):
            (site.folder / f"go-{turn}-{number}").touch()
    expect(page.locator(".column")).to_have_count(4)
    expect(page.locator(".pill")).to_have_text("finished")
    assert page.url == address
    expect(page.locator(".head")).to_contain_text("Billed: 4,901, of which 3,900 cached.")
    expect(page.get_by_role("heading", level=1)).to_contain_text("turn 1")


def test_many_turns_do_not_slow_it(visit: Visitor, long_run: str) -> None:
    page = visit().open(f"/runs/{long_run}/context?turn=1400")
    expect(page.locator(".piece.on")).to_be_visible()
    expect(page.locator(".column[aria-current]")).to_be_in_viewport()
    assert page.locator("*").count() < MOST
    page.locator(".fold button").click()
    expect(page.locator(".piece")).to_have_count(230)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", level=1)).to_contain_text("turn 1401")
    assert len([each for each in asked if "/events" in each or "/turns" in each]) == 1


@pytest.mark.parametrize(
    "view, there",
    [("chat", ".theirs"), ("timeline", ".happened"), ("variables", ".values li")],
)
def test_every_view_of_a_long_run_is_a_small_page(
    visit: Visitor, long_run: str, view: str, there: str
) -> None:
    page = visit().open(f"/runs/{long_run}/{view}")
    expect(page.locator(there).first).to_be_visible()
    if view == "timeline":
        expect(page.locator(".event")).to_contain_text(re.compile("of 10\\d\\d\\d"))
        page.locator(".waterfall").evaluate("each => each.scrollTo(0, each.scrollHeight)")
        expect(page.locator(".happened").last).to_contain_text("finished")
    if view == "variables":
        expect(page.locator(".scrubber")).to_contain_text(re.compile("of 10\\d\\d\\d"))
        page.get_by_role("slider").fill("5000")
        expect(page).to_have_url(re.compile("at=5000"))
    if view == "chat":
        expect(page.locator(".standing")).to_contain_text("finished")
        expect(page.locator(".standing")).to_be_in_viewport()
    assert page.locator("*").count() < 2 * MOST
