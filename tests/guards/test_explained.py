"""What explanations say of guards."""

from pathlib import Path

from tests.guards.runs import Says, go_on
from turnloom.explain.logic.asking import explain
from turnloom.explain.spec.asked import Asked, Declared
from turnloom.explain.spec.steps import ModelAsked, ToolUsed
from turnloom.explain.spec.timeline import Timeline
from turnloom.explain.spec.turn import TurnExplained
from turnloom.log.spec import Event

LOOPS = {"window": 3, "similarity": None}


def timeline(events: list[Event]) -> Timeline:
    told = explain(events, Asked(), Declared())
    assert isinstance(told, Timeline)
    return told


def turn(events: list[Event], number: int) -> TurnExplained:
    told = explain(events, Asked(turn=number), Declared())
    assert isinstance(told, TurnExplained)
    return told


async def test_the_timeline_tells_of_the_budget(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {"budget": {"steps": 3, "tool_calls": 9}}, engine=Says())
    told = timeline(events)
    assert told.spent == "3 steps, 300 tokens, 3 model calls"
    assert "Budget: used 3 steps, 300 tokens, 3 model calls" in str(told)
    rows = [(row.who, row.note) for row in told.rows if row.what == "budget"]
    assert rows[:-1] == [("normal", "67% of steps left"), ("critical", "0% of steps left")]
    assert rows[-1][0] == "exceeded" and "steps: 1 wanted, 0 of 3 left" in rows[-1][1]


async def test_the_timeline_tells_of_loops(tmp_path: Path) -> None:
    guards = {"loop_detection": {**LOOPS, "strategies": {"exact_repetition": "rotate_agent"}}}
    told = timeline(await go_on(tmp_path, guards, engine=Says("Again."), max_turns=3))
    ((who, note),) = [(row.who, row.note) for row in told.rows if row.what == "loop"]
    assert who == "inject_variation"
    assert note == "exact_repetition of A in turns 1 to 3 in place of rotate_agent"
    assert told.spent == ""


async def test_calls_are_told_with_what_they_reserved_and_used(tmp_path: Path) -> None:
    guards = {"budget": {"model_calls": 9, "tool_calls": 9}}
    events = await go_on(tmp_path, guards, engine=Says(["look"], "Done."), max_turns=1)
    steps = turn(events, 1).steps
    asked = [step for step in steps if isinstance(step, ModelAsked)]
    (used,) = [step for step in steps if isinstance(step, ToolUsed)]
    assert len(asked) == 2 and used.outcome == "returned"
    words = [detail.says for detail in used.within]
    assert words == [
        "budget.reserved: t1/model/tool.0 may use 1 tool call",
        "budget.spent: t1/model/tool.0 used 1 tool call",
    ]


async def test_a_hint_is_a_segment_with_its_reason(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {"loop_detection": LOOPS}, engine=Says("Again."), max_turns=4)
    told = turn(events, 4)
    assert told.verified
    (hint,) = [segment for segment in told.segments if segment.kind == "hint"]
    assert (hint.origin, hint.reason) == (
        "guards.loop_detection",
        "exact_repetition of A in turns 1 to 3",
    )
    assert hint.text in told.prompt


async def test_a_turn_that_there_was_no_budget_for_says_so(tmp_path: Path) -> None:
    events = await go_on(tmp_path, {"budget": {"model_calls": 1}}, engine=Says())
    told = turn(events, 2)
    assert told.status == "failed" and told.error.startswith("BudgetExceeded: ")
    assert any("model_calls: 1 wanted, 0 of 1 left" in step.says for step in told.steps)
