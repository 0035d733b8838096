"""Questions as forms, in a browser: approvals, choices, nested answers, several at once."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.folders import write_folder
from tests.support.sites import serving
from tests.web.conftest import Visitor
from tests.web.test_lists import start

pytestmark = pytest.mark.doors

# One answer calls two tools, so that both ask at once.
PARTY = {
    "orchestrator.yaml": "startup_mode: AgentDriven\ninitial_message: Plan it.\nmax_turns: 1\n",
    "agents.yaml": "Host:\n  system_message: Plan the party.\n"
    "  engine: {type: functions, file: party.py, function: plan}\n",
    "structured_outputs.yaml": """\
        models:
          Place:
            type: model
            fields:
              room: { type: literal, values: [hall, garden] }
              address: { type: Address }
          Address:
            type: model
            fields:
              street: { type: string }
              number: { type: integer }
          Meal:
            type: model
            fields:
              vegan: { type: boolean }
        registry: {}
        """,
    "tools.yaml": """\
        tools:
          - agent: Host
            file: party.py
            function: place
            tool_type: UI_Tool
            ui: { component: Place, mode: inline, response: Place }
          - agent: Host
            file: party.py
            function: meal
            tool_type: UI_Tool
            ui: { component: Meal, mode: inline, response: Meal }
        """,
    "party.py": """\
        from turnloom import Answer, ToolCall, use_ui_tool

        def plan(task):
            if not task.exchanges:
                return Answer(calls=(ToolCall("place", {}), ToolCall("meal", {})))
            return Answer(f"Agreed: {[each.value for each in task.exchanges[0].results]}")

        async def place():
            return await use_ui_tool("place", {"prompt": "Where is it?"})

        async def meal():
            return await use_ui_tool("meal", {"prompt": "What is eaten?"})
        """,
}


def test_questions_that_are_open_at_once_are_answered_in_any_order(
    visit: Visitor, tmp_path: Path
) -> None:
    write_folder(tmp_path / "workflows", PARTY, "Party")
    with serving(tmp_path) as served:
        shown = visit(served)
        page = shown.open("/runs")
        start(page, "Party")
        expect(page.locator(".question")).to_have_count(2)
        where = page.locator(".question").filter(has_text="Where is it?")
        eaten = page.locator(".question").filter(has_text="What is eaten?")
        expect(where.get_by_label("garden")).to_be_visible()
        expect(eaten.get_by_label("Yes")).to_be_visible()
        assert shown.violations() == []
        eaten.get_by_label("Yes").check()
        eaten.get_by_role("button", name="Answer").click()
        expect(page.locator(".question")).to_have_count(1)
        where.get_by_label("garden").check()
        where.get_by_label("street").fill("Mill Lane")
        where.get_by_label("number").fill("7")
        where.get_by_role("button", name="Answer").click()
        said = page.locator(".theirs").last
        expect(said).to_contain_text("'street': 'Mill Lane', 'number': 7")
        expect(said).to_contain_text("'vegan': True")
        expect(said.locator(".by b")).to_have_text("Host")


INVOICES = """
from pydantic import BaseModel, ConfigDict
from turnloom import Flow, Loom

class Invoice(BaseModel):
    model_config = ConfigDict(frozen=True)
    amount: int = 120

def booked(invoice: Invoice) -> dict[str, int]:
    return {}

def paid(invoice: Invoice) -> dict[str, int]:
    return {"amount": 0}

app = Loom()
for name, approver in (("mine", "local"), ("hers", "ann")):
    begun = Flow(name, Invoice).start_with(booked)
    asks = begun.await_approval(approver, context=lambda invoice: f"Pay {invoice.amount}?")
    app.register_flow(asks.finally_(paid))
"""


def test_a_person_approves_with_instructions(visit: Visitor, tmp_path: Path) -> None:
    (tmp_path / "invoices.py").write_text(INVOICES, "utf-8")
    with serving(tmp_path, "--app", "invoices:app") as served:
        shown = visit(served)
        page = shown.open("/start")
        mine = page.get_by_role("listitem").filter(has_text="mine")
        mine.get_by_role("button", name="Fill in").click()
        mine.get_by_label("amount").fill("90")
        mine.get_by_role("button", name="Start").click()
        form = page.locator(".question")
        expect(form).to_contain_text("Pay 90?")
        form.get_by_label("approve").check()
        form.get_by_label("instructions").fill("In May, please.")
        assert shown.violations() == []
        form.get_by_role("button", name="Answer").click()
        expect(page.locator(".mine")).to_contain_text("In May, please.")
        expect(page.locator(".standing")).to_contain_text("finished")


def test_the_list_says_for_whom_a_run_waits(visit: Visitor, tmp_path: Path) -> None:
    (tmp_path / "invoices.py").write_text(INVOICES, "utf-8")
    with serving(tmp_path, "--app", "invoices:app") as served:
        page = visit(served).open("/runs")
        for name in ("hers", "mine"):
            start(page, name)
        page.goto(f"{served.url}/runs")
        rows = page.locator(".run-list li")
        expect(rows.filter(has_text="mine").locator(".run-status")).to_contain_text("for local, ")
        expect(rows.filter(has_text="hers").locator(".run-status")).to_contain_text("for ann, ")
        for_me = page.get_by_role("region", name="1 question waits for you")
        expect(for_me).to_contain_text("Pay 120?")
        top, list_ = for_me.bounding_box(), page.locator(".run-list").bounding_box()
        assert top is not None and list_ is not None and top["y"] + top["height"] <= list_["y"]
