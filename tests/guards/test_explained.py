"""What explanations say of guards."""

from pathlib import Path

from tests.guards.runs import Says, go_on
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.spec.steps import ModelCallEntry, ToolEntry

LOOPS = {"window": 3, "similarity": None}


async def test_the_timeline_tells_of_the_budget(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {"budget": {"steps": 3, "tool_calls": 9}}, engine=Says())
    told = timeline(events)
    assert [each.split()[0] for each in told.spent.split(", ")] == ["3", "300", "3"]
    assert told.spent in str(told)
    rows = [(row.who, row.note) for row in told.rows if row.what == "budget"]
    assert [who for who, _ in rows] == ["normal", "critical", "exceeded"]
    assert "67" in rows[0][1] and all("steps" in note for _, note in rows)


async def test_the_timeline_tells_of_loops(tmp_path: Path) -> None:
    guards = {"loop_detection": {**LOOPS, "strategies": {"exact_repetition": "rotate_agent"}}}
    told = timeline(await go_on(tmp_path, guards, engine=Says("Again."), max_turns=3))
    ((who, note),) = [(row.who, row.note) for row in told.rows if row.what == "loop"]
    assert who == "inject_variation"
    assert "exact_repetition" in note and "rotate_agent" in note
    assert told.spent == ""


async def test_calls_are_told_with_what_they_reserved_and_used(tmp_path: Path) -> None:
    guards = {"budget": {"model_calls": 9, "tool_calls": 9}}
    events = await go_on(tmp_path, guards, engine=Says(["look"], "Done."), max_turns=1)
    steps = explain_turn(events, 1).steps
    asked = [step for step in steps if isinstance(step, ModelCallEntry)]
    (used,) = [step for step in steps if isinstance(step, ToolEntry)]
    assert len(asked) == 2 and used.outcome == "returned"
    words = [detail.says for detail in used.within]
    assert [each.partition(":")[0] for each in words] == ["budget.reserved", "budget.spent"]
    assert all("t1/model/tool.0" in each for each in words)


async def test_a_hint_is_a_segment_with_its_reason(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {"loop_detection": LOOPS}, engine=Says("Again."), max_turns=4)
    told = explain_turn(events, 4)
    assert told.verified
    (hint,) = [segment for segment in told.segments if segment.kind == "hint"]
    assert hint.origin == "guards.loop_detection" and "exact_repetition" in hint.reason
    assert hint.text in told.prompt


async def test_a_turn_that_there_was_no_budget_for_says_so(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {"budget": {"model_calls": 1}}, engine=Says())
    told = explain_turn(events, 2)
    assert told.status == "failed" and told.error.startswith("BudgetExceeded: ")
    assert any("model_calls" in step.says for step in told.steps)
