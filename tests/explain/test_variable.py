"""Why this value: where it is from, what changed it, who read it."""

import msgspec
import pytest

from tests.explain.conftest import Tell, Told
from weft.errors import UsageError
from weft.explain.logic.variable import explain_variable


async def test_a_derived_value_names_its_trigger_and_what_led_to_it(told: Told) -> None:
    found = explain_variable(told.events, "stage")
    assert (found.source, found.first, found.defaulted) == ("derived", "asking", True)
    assert (found.value, found.present) == ("done", True)
    assert [(each.previous, each.value, each.writer) for each in found.changes] == [
        ("asking", "planning", "trigger:stage[0]"),
        ("planning", "done", "trigger:stage[1]"),
    ]
    change = found.changes[0]
    assert change.seq == told.seq("context.changed", 1)
    kinds = [each.kind for each in change.causes]
    assert kinds[0] == "agent.text" and kinds[-1] == "question.answered"
    assert {"model.called", "frame.assembled", "route.decided"} < set(kinds)
    assert [each.seq for each in change.causes] == sorted(
        (each.seq for each in change.causes), reverse=True
    )
    assert "NEXT" in change.causes[0].says


async def test_readers_are_the_frames_that_show_it_and_the_conditions_that_saw_it(
    told: Told,
) -> None:
    stage = explain_variable(told.events, "stage")
    assert [(each.turn, each.agent, each.text) for each in stage.frames] == [
        (4, "Planner", '- stage: "planning"'),
        (5, "Planner", '- stage: "planning"'),
    ]
    known = explain_variable(told.events, "known")
    assert [each.turn for each in known.frames] == [1, 2, 3]
    assert [(each.rule, each.value, each.fired) for each in known.conditions] == [
        (1, False, False),
        (1, False, False),
        (1, True, True),
    ]
    # Rule 1 looks at `stage` only once `known` holds; rule 2 looks whenever it is asked.
    assert [(each.rule, each.value) for each in stage.conditions] == [
        (2, "asking"),
        (2, "asking"),
        (1, "planning"),
        (4, "planning"),
        (4, "done"),
    ]


async def test_a_value_can_be_seen_as_of_any_event(told: Told) -> None:
    change = told.seq("context.changed")
    before = explain_variable(told.events, "known", change - 1)
    assert (before.value, before.at, before.changes) == (False, change - 1, ())
    assert explain_variable(told.events, "known", change).value is True
    unloaded = explain_variable(told.events, "known", 1)
    assert not unloaded.present and "Not loaded yet" in str(unloaded)
    with pytest.raises(UsageError, match=f"1 to {len(told.events)}"):
        explain_variable(told.events, "known", len(told.events) + 1)


async def test_the_environment_shows_what_it_said_and_what_was_made_of_it(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_TEST_LIMIT", "12")
    found = explain_variable((await tell()).events, "limit")
    assert (found.source, found.raw, found.first, found.defaulted) == (
        "environment",
        "12",
        12,
        False,
    )
    assert "'12' → 12" in str(found)
    monkeypatch.setenv("WEFT_TEST_LIMIT", "many")
    found = explain_variable((await tell()).events, "limit")
    assert (found.raw, found.first, found.defaulted) == ("many", 3, True) and found.note
    assert found.note in str(found)
    monkeypatch.setenv("ENVIRONMENT", "production")
    found = explain_variable((await tell()).events, "limit")
    assert not found.present and "production" in found.suppressed
    assert all(each.withheld for each in found.frames) and len(found.frames) == 3
    assert "Suppressed" in str(found)


async def test_an_unknown_name_comes_with_the_nearest_known_one(told: Told) -> None:
    with pytest.raises(UsageError, match="no variable 'stagee'. Did you mean 'stage'"):
        explain_variable(told.events, "stagee")
    with pytest.raises(UsageError, match="There is: .*tier"):
        explain_variable(told.events, "zzzzzzzz")


async def test_the_explanation_says_itself_in_text_and_json(told: Told) -> None:
    found = explain_variable(told.events, "stage")
    text = str(found)
    for part in ("stage is 'done'", "trigger:stage[0]", "← seq", "rule 4", "fired → terminate"):
        assert part in text
    assert msgspec.to_builtins(found)["changes"][1]["value"] == "done"
    assert "none showed it" in str(explain_variable(told.events, "chat_id"))
