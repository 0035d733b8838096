"""Chats and lists of runs, in a browser."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.support.folders import write_folder
from tests.support.sites import Site, serving
from tests.web.conftest import Told, Visitor, furnish

pytestmark = pytest.mark.doors

ANSWERS = (
    "Our weekly sales report.",
    "Dana copies numbers from three spreadsheets.",
    "When it is in everyone's inbox.",
)


def test_a_newcomer_starts_answers_and_sees_why(visit: Visitor) -> None:
    shown = visit()
    page = shown.open("/")
    page.get_by_role("link", name="New run").click()
    page.get_by_role("listitem").filter(has_text="Interview").get_by_role("button").click()
    for number, answer in enumerate(ANSWERS, 1):
        expect(page.locator(".theirs")).to_have_count(number)
        page.get_by_label("Your answer").fill(answer)
        page.keyboard.press("Enter")
    plan = page.locator(".theirs").last
    expect(plan).to_contain_text("Here is the plan.")
    plan.get_by_role("link", name="Why?").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("PlanArchitect, turn 5")
    expect(page.locator("#card")).to_be_visible()
    assert shown.complaints == []


def test_an_answer_streams_and_survives_a_dropped_connection(
    visit: Visitor, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("dropped")
    furnish(folder)
    with serving(folder) as first:
        page = visit(first).open("/start")
        page.get_by_role("listitem").filter(has_text="Story").get_by_role("button").click()
        expect(page.locator(".speaking")).to_be_visible()
        (folder / "go-1-0").touch()
        expect(page.locator(".draft .said")).to_have_text("There was a harbour. ")
        (folder / "go-1-1").touch()
        expect(page.locator(".draft .said")).to_have_text("There was a harbour. A boat came in. ")
        port = first.port
        first.process.kill()
        first.process.wait()
        expect(page.get_by_text("The connection is lost.")).to_be_visible()
    (folder / "go-1-2").touch()
    with serving(folder, port=port):
        page.get_by_role("button", name="Connect now").click()
        expect(page.locator(".theirs")).to_contain_text("It was empty.")
        expect(page.get_by_text("The connection is lost.")).to_have_count(0)
        expect(page.locator(".theirs")).to_have_count(1)
        page.get_by_role("button", name="Stop this run").click()
        expect(page.locator(".standing")).to_contain_text("stopped")


def test_a_question_is_answered_here_while_a_terminal_waits(visit: Visitor, site: Site) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "turnloom", "run", "workflows/Interview"]
    terminal = subprocess.Popen(
        command, cwd=site.folder, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    try:
        _read_until(ours, "you>")
        page = visit().open("/runs")
        page.get_by_role("region", name="for you").get_by_role("link").first.click()
        page.get_by_label("Your answer").fill(ANSWERS[0])
        page.get_by_role("button", name="Send").click()
        expect(page.locator(".theirs").last).to_contain_text("Who does this today")
        assert "Who does this today" in _read_until(ours, "Who does this today")
        page.get_by_role("button", name="Stop this run").click()
        expect(page.locator(".standing")).to_contain_text("stopped")
    finally:
        terminal.kill()
        terminal.wait()
        os.close(ours)


def _read_until(terminal: int, words: str) -> str:
    said = ""
    while words not in said:
        said += os.read(terminal, 65_536).decode(errors="replace")
    return said


def asked(page: Page) -> Locator:
    """The form that the Generator asks with."""
    page.get_by_role("listitem").filter(has_text="Generator").get_by_role("button").click()
    for number, answer in enumerate(ANSWERS, 1):
        expect(page.locator(".theirs")).to_have_count(number)
        page.get_by_label("Your answer").fill(answer)
        page.keyboard.press("Enter")
    form = page.locator(".schema-form")
    expect(form).to_be_visible()
    return form


def test_a_form_is_made_from_the_schema_of_its_question(visit: Visitor, site: Site) -> None:
    page = visit().open("/start")
    form = asked(page)
    form.get_by_role("button", name="Answer").click()
    expect(form.locator(".text-danger").first).to_be_visible()
    form.get_by_label("adjustments_requested").check()
    form.get_by_role("textbox").first.fill("With the total, please.")
    form.get_by_role("button", name="Answer").click()
    expect(page.locator(".mine").last).to_contain_text("With the total, please.")


def test_what_was_done_stands_between_what_was_said(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.interview}/chat")
    done = page.locator(".deeds").get_by_role("link", name="interview_complete became true")
    expect(done).to_be_visible()
    expect(page.locator(".standing")).to_be_in_viewport()
    done.click()
    expect(page.get_by_role("heading", name="context.changed")).to_be_visible()


def test_thumbs_and_a_comment_are_kept(visit: Visitor, told: Told, site: Site) -> None:
    page = visit().open(f"/runs/{told.interview}/chat")
    last = page.locator(".theirs").last
    last.get_by_role("button", name="A good answer").click()
    last.get_by_label("A comment").fill("It mentions the fallback.")
    last.get_by_role("button", name="Save").click()
    expect(last).to_contain_text("It mentions the fallback.")
    page.reload()
    thumb = page.locator(".theirs").last.get_by_role("button", name="A good answer")
    expect(thumb).to_have_attribute("aria-pressed", "true")
    page = visit().open("/runs")
    page.get_by_label("Feedback").select_option(label="thumbs up")
    expect(page.locator(".run-list li")).to_have_count(1)
    expect(page.locator(".run-list li")).to_contain_text(told.interview[:10])
    page.get_by_label("Feedback").select_option(label="thumbs down")
    expect(page.get_by_role("link", name="Show all runs")).to_be_visible()


def test_a_run_whose_process_is_gone_is_resumed(
    visit: Visitor, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("gone")
    furnish(folder)
    command = [sys.executable, "-m", "turnloom", "run", "workflows/Story"]
    with serving(folder) as served:
        page = visit(served).open("/runs?workflow=Story&status=open")
        lost = subprocess.Popen(command, cwd=folder, stdin=-3, stdout=-3, stderr=-3)
        row = page.locator(".run-list li")
        try:
            expect(row.locator(".pill")).to_have_text("unfinished")
        finally:
            lost.kill()
            lost.wait()
        row.get_by_role("checkbox").check()
        page.get_by_role("button", name="Resume 1").click()
        row.get_by_role("link", name="Story").click()
        for piece in range(3):
            (folder / f"go-1-{piece}").touch()
        expect(page.locator(".theirs")).to_contain_text("It was empty.")
        page.get_by_role("button", name="Stop this run").click()
        expect(page.locator(".standing")).to_contain_text("stopped")


def test_runs_are_searched_filtered_and_stopped(visit: Visitor, told: Told, site: Site) -> None:
    page = visit().open("/runs?workflow=orders")
    expect(page.locator(".run-list li")).to_have_count(2)
    page.get_by_label("Status").select_option("failed")
    expect(page.locator(".run-list li")).to_have_count(1)
    expect(page).to_have_url(re.compile("status=failed"))
    with page.expect_response(re.compile("find=no")):
        page.get_by_label("Search runs").fill("no such run")
    page.get_by_role("link", name="Show all runs").click()
    expect(page.locator(".run-list li").nth(3)).to_be_visible()
    page = visit().open("/start")
    page.get_by_role("listitem").filter(has_text="Interview").get_by_role("button").click()
    expect(page.locator(".theirs")).to_be_visible()
    run = page.url.split("/")[-2]
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_role("checkbox", name=re.compile(run)).check()
    page.get_by_role("button", name="Cancel 1").click()
    row = page.locator(".run-list li").filter(has_text=run[:10])
    expect(row.locator(".pill")).to_have_text("cancelled")


def test_what_a_run_made_stands_beside_its_chat(visit: Visitor, told: Told) -> None:
    shown = visit()
    page = shown.open(f"/runs/{told.research}/chat")
    made = page.get_by_role("complementary", name="Artifacts")
    expect(made.locator("details").first).to_contain_text("by ")
    assert shown.violations() == []
    made.get_by_role("link", name="Why?").first.click()
    expect(page).to_have_url(re.compile("/context\\?turn="))
    page = visit().open(f"/runs/{told.interview}/chat")
    expect(page.locator(".theirs").first).to_be_visible()
    expect(page.get_by_role("complementary", name="Artifacts")).to_have_count(0)


def test_the_list_is_live_and_is_not_asked_for(visit: Visitor, site: Site) -> None:
    page = visit().open("/runs")
    page.clock.install()
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/api/v1/runs?" in request.url or request.url.endswith("/api/v1/runs"):
            asked.append(request.url)

    page.on("request", note)
    with page.expect_response(lambda each: "/runs?limit=" in each.url) as followed:
        page.reload()
    assert followed.value.headers["content-type"].startswith("text/event-stream")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    page.wait_for_load_state()
    page.clock.run_for(1000)
    asked.clear()
    page.clock.fast_forward(120_000)
    page.clock.run_for(4000)
    assert asked == []  # nothing moves, and nothing is polled
    site.turnloom("run", str(site.folder / "workflows/Interview"), "--quiet")
    run = json.loads(site.turnloom("runs", "--json"))[0]["run"]
    row = page.locator(".run-list li").filter(has_text=run[:10])
    expect(row.locator(".pill")).to_have_text("finished")


def test_the_list_is_asked_for_while_it_cannot_be_followed(visit: Visitor, site: Site) -> None:
    page = visit().open("/start")
    page.route("**/api/v1/runs?limit=*", lambda route: route.abort())
    page.goto(f"{site.url}/runs")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    site.turnloom("run", str(site.folder / "workflows/Interview"), "--quiet")
    run = json.loads(site.turnloom("runs", "--json"))[0]["run"]
    expect(page.locator(".run-list li").filter(has_text=run[:10])).to_be_visible()


BILLED = {
    "orchestrator.yaml": "max_turns: 2\n",
    "handoffs.yaml": "[{source_agent: A, target_agent: A, handoff_type: after_work}]\n",
    "agents.yaml": "A:\n  system_message: You are A.\n"
    "  engine: {type: functions, file: model.py, function: answer}\n",
    "model.py": "from turnloom import Answer, Usage\n\n"
    "MODELS = [('gpt-4o', 1_000_000), ('mystery', 9)]\n\n"
    "def answer(task):\n    model, tokens = MODELS.pop(0)\n"
    "    return Answer('Said.', Usage(tokens, 10), model=model)\n",
}


def test_costs_are_said_in_the_list_and_of_the_run(visit: Visitor, site: Site) -> None:
    site.turnloom("run", str(write_folder(site.folder, BILLED, "Billed")), "--quiet")
    run = json.loads(site.turnloom("runs", "--json"))[0]["run"]
    page = visit().open("/runs")
    row = page.locator(".run-list li").filter(has_text=run[:10])
    expect(row.locator(".run-cost")).to_have_text("Cost at least $2.50")
    page = visit().open(f"/runs/{run}/timeline")
    expect(page.locator(".about-cost")).to_have_text("cost at least $2.50")
    expect(page.locator(".totals")).to_contain_text("at least $2.50. No price for mystery.")
    expect(page.locator(".happened").filter(has_text="turn 1")).to_contain_text("$2.50")
    page = visit().open(f"/runs/{run}/context?turn=1")
    expect(page.locator("#card")).to_contain_text("The turn cost $2.50.")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", level=1)).to_contain_text("A, turn 2")
    expect(page.locator("#card")).not_to_contain_text("The turn cost")


def test_the_timeline_leads_to_events_and_the_variables_then(visit: Visitor, told: Told) -> None:
    page = visit().open(f"/runs/{told.orders}/timeline")
    expect(page.locator(".happened[aria-current]")).to_contain_text("NoCourier")
    page = visit().open(f"/runs/{told.interview}/timeline")
    asked = page.locator(".happened.model").first
    asked.click()
    expect(page.get_by_role("heading", name="model.called")).to_be_visible()
    page.locator(".happened").filter(has_text="turn 5").click()
    expect(page.get_by_role("heading", name="turn.started")).to_be_visible()
    page.get_by_role("button", name="event 48").click()
    expect(page.get_by_role("heading", name="route.decided")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export as a page").click()
    assert "<title>" in saved.value.path().read_text()
    page.get_by_role("link", name="Variables then").click()
    changed = page.get_by_role("listitem").filter(has_text="interview_complete")
    expect(changed).to_contain_text("true")
    page.get_by_role("button", name="Change before").click()
    expect(page).to_have_url(re.compile("at=46"))
    expect(changed).to_have_class("now")
    page.keyboard.press("ArrowLeft")
    expect(changed.locator("code").first).to_have_text("false")
    changed.get_by_role("button").click()
    expect(page.locator(".story")).to_be_visible()
    page.get_by_role("slider").fill("80")
    expect(changed).to_contain_text("true")


def test_a_newcomer_sees_why_after_three_clicks(visit: Visitor, site: Site) -> None:
    shown = visit()
    page = shown.open("/")
    page.get_by_role("link", name="New run").first.click()
    page.get_by_role("listitem").filter(has_text="Interview").get_by_role("button").click()
    expect(page.locator(".question").get_by_role("textbox")).to_be_focused()
    page.keyboard.type("I copy numbers from three tools every Friday.")
    page.keyboard.press("Enter")
    why = page.get_by_role("link", name="Why?")
    expect(why).to_have_count(2)
    why.last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("InterviewAgent, turn 2")
    expect(page.locator("#card")).to_contain_text("Here because")
    assert shown.complaints == []
