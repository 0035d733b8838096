"""What the parts of the context inspector say, in a browser."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import SECRET, Told, Visitor

pytestmark = pytest.mark.doors


def heights(column: Locator) -> dict[str, float]:
    """The height of each kind in a column of the strip, by its letter."""
    return column.locator(".bar i").evaluate_all(
        "all => Object.fromEntries(all.map(each => "
        "[each.className.match(/kind-(.)/)[1], each.getBoundingClientRect().height]))"
    )


def test_a_column_is_as_high_as_its_tokens_and_stacked_by_kind(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.interview}/context?turn=7")
    columns = page.locator(".column")
    expect(columns).to_have_count(7)
    expect(columns.first).to_have_attribute("title", re.compile("Turn 1, InterviewAgent: 88 tok"))
    expect(columns.last).to_have_attribute("title", re.compile("Turn 7, PlanArchitect: 330 tok"))
    first, last = heights(columns.first), heights(columns.last)
    assert set(last) == {"I", "V", "H"}
    assert sum(first.values()) / sum(last.values()) == pytest.approx(88 / 330, rel=0.1)
    assert last["H"] > last["I"] > last["V"]
    feet = [each.split() for each in page.locator(".column-foot").all_inner_texts()]
    assert feet == [[str(n), "I"] for n in (1, 2, 3, 4)] + [[str(n), "P"] for n in (5, 6, 7)]


def test_a_notch_and_a_line_say_where_the_prompt_cache_broke(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.counter}/context?turn=3&against=previous")
    expect(page.locator(".column .notch")).to_have_count(1)
    expect(page.locator(".column").nth(2).locator(".notch")).to_have_count(1)
    expect(page.locator(".cache")).to_contain_text("22 tokens of 111")
    expect(page.locator(".cache")).to_contain_text("tariff changed")
    changed = page.locator(".change.changed")
    expect(changed.locator("del")).to_contain_text("summer")
    expect(changed.locator("ins")).to_contain_text("winter")
    expect(page.locator(".change")).to_have_count(3)
    for each in page.locator(".change").all():
        expect(each.locator(".because").get_by_role("link", name="event").first).to_be_visible()


def test_a_kind_is_a_colour_a_letter_and_a_pattern(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.counter}/context?turn=3&call=2")
    expect(page.locator(".piece")).to_have_count(10)
    signs: list[list[str]] = page.locator(".piece").evaluate_all(
        """all => all.map(each => {
            const drawn = getComputedStyle(each, '::before');
            const letter = each.querySelector('.kind-letter').textContent;
            return [letter, drawn.backgroundColor, drawn.backgroundImage];
        })"""
    )
    assert [letter for letter, *_ in signs] == list("IIVVHHHTXE")
    kinds = {tuple(each) for each in signs}
    for sign in zip(*kinds, strict=True):
        assert len(set(sign)) == len(kinds) == 6
    shown = page.locator(".gutter > span:not([class])").all_inner_texts()
    assert sum(map(int, shown)) == 128


def test_the_minimap_shows_shares_and_joins_what_is_small(
    visit: Visitor, told: Told, long_run: str
) -> None:
    page = visit().open(f"/runs/{told.interview}/context?turn=7&piece=agents.PlanArchitect")
    blocks = page.get_by_role("group", name="Shares of the prompt").get_by_role("button")
    chosen = page.locator(".minimap [aria-current]")
    expect(chosen).to_have_attribute("title", "Instructions of PlanArchitect: 46 tokens")
    widths = blocks.evaluate_all("all => all.map(each => each.getBoundingClientRect().width)")
    most = blocks.nth(widths.index(max(widths)))
    most.click()
    expect(page.locator(".piece.on")).to_contain_text("Considered")
    assert chosen.evaluate("each => each.getBoundingClientRect().width") / sum(
        widths
    ) == pytest.approx(76 / 330, abs=0.03)
    page = visit().open(f"/runs/{long_run}/context?turn=1400")
    expect(page.locator(".minimap [title*=' small: ']").first).to_be_visible()


def test_a_turn_of_several_calls_says_which_is_shown(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.counter}/context?turn=3&call=2")
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text("Clerk, turn 3, call 2 of 2 ▾")
    head = page.locator(".head")
    expect(head).to_contain_text("It saw 128 tokens in 10 pieces; nothing was left out.")
    expect(head).to_contain_text("Billed: 600. That is 472 more than counted here (characters/4).")
    expect(page.locator(".piece").last).to_contain_text("Answer in one sentence.")
    page.locator(".piece").last.click()
    expect(page.locator("#card")).to_contain_text("The engine FunctionEngine")
    title.get_by_role("button").focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitem", name="Call 1").click()
    expect(title).to_have_text("Clerk, turn 3, call 1 of 2 ▾")
    expect(page.locator(".piece")).to_have_count(8)
    expect(head).to_contain_text("Billed: 40. That is 71 fewer than counted here")
    assert "call=" not in page.url


def test_a_secret_is_a_mark(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.counter}/context?turn=3&piece=context_variables.account")
    expect(page.locator(".piece.on .secret")).to_have_text("⟨secret:account⟩")
    expect(page.locator("#card h2")).to_contain_text("⟨secret:account⟩")
    for view in ("context", "timeline", "variables", "chat"):
        page.goto(f"{page.url.partition('/runs')[0]}/runs/{told.counter}/{view}")
        expect(page.locator(".pill")).to_have_text("finished")
        assert SECRET not in page.content()


def said(page: Page, label: str) -> Locator:
    """The sentence of the card with a label."""
    return page.locator("#card .lines > div").filter(has=page.get_by_text(label, exact=True))


def test_every_card_says_who_gave_its_piece_and_what_it_costs(visit: Visitor, told: Told) -> None:
    page = visit().open("/runs")
    for run, turn in (
        (told.counter, "turn=3&call=2"),
        (told.research, ""),
        (told.review, ""),
        (told.advice, ""),
    ):
        page.goto(f"{page.url.partition('/runs')[0]}/runs/{run}/context?{turn}")
        expect(page.locator(".piece.on")).to_be_visible()
        for piece in page.locator(".piece").all():
            piece.locator(".gutter").click()
            expect(piece).to_have_class(re.compile(" on"))
            expect(said(page, "Given by").locator("dd")).not_to_be_empty()
            expect(said(page, "Here because").locator("dd")).not_to_be_empty()
            expect(said(page, "Costs")).to_contain_text(re.compile("\\d+ tokens?, .*% of this"))


def test_the_buttons_of_a_card(visit: Visitor, told: Told) -> None:
    shown = visit()
    shown.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = shown.open(f"/runs/{told.counter}/context?turn=3&piece=context_variables.tariff")
    card = page.locator("#card")
    expect(card.get_by_role("heading", level=2)).to_have_text('tariff = "winter"')
    expect(said(page, "Since")).to_contain_text("turn 1, when Clerk said “Four crowns")
    expect(said(page, "Before")).to_contain_text("summer")
    expect(said(page, "Costs")).to_contain_text("5 tokens, 5 % of this prompt; 10 tokens over")
    card.get_by_role("button", name="History").click()
    expect(card.locator(".history li")).to_have_count(2)
    expect(card.locator(".history")).to_contain_text("because")
    card.get_by_role("button", name="Link").click()
    expect(card.get_by_text("Copied to the clipboard.")).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    card.get_by_role("button", name="Find everywhere").click()
    expect(page.get_by_role("searchbox")).to_have_value('- tariff: "winter"')
    expect(page.locator(".places li")).to_have_count(1)
    card.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile("against=previous"))


def test_a_rule_that_did_not_fire_says_which_part_failed(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.counter}/context?turn=1")
    route = page.get_by_role("region", name="What came next")
    expect(route).to_contain_text("Then Porter")
    route.get_by_role("button", name="1 rule did not fire").click()
    expect(route).to_contain_text('tariff was "winter", not "spring"')
    expect(route.locator("li b")).to_have_text('tariff = "spring"')


def test_what_was_left_out_stands_below_the_card(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.research}/context")
    left = page.get_by_role("region", name="Left out")
    expect(left.locator(".group p").first).to_contain_text(
        re.compile("6 search results were below 0\\.20 \\((\\d\\.\\d\\d, ){5}\\d\\.\\d\\d\\)\\.")
    )
    card, box = page.locator("#card").bounding_box(), left.bounding_box()
    assert card is not None and box is not None and box["y"] >= card["y"] + card["height"]
    page = visit().open(f"/runs/{told.interview}/context?turn=5")
    expect(left).to_be_visible()
    expect(page.get_by_role("region", name="Left out")).to_contain_text("Nothing.")


def test_other_controls_keep_their_enter(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.counter}/context?turn=3&piece=context_variables.tariff")
    history = page.locator("#card").get_by_role("button", name="History")
    history.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#card .history")).to_be_visible()
    expect(history).to_be_focused()
    page.locator(".piece.on .gutter").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#card")).to_be_focused()
    page.locator("#card").get_by_role("link", name="event").last.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/timeline\\?at="))
