"""What happened in a turn: every model call, tool and hook, with what came of it."""

import msgspec
import pytest

from tests.explain.conftest import Tell, Told, of, said, tells
from tests.explain.workshop import LINES, TOKEN, WORKSHOP
from turnloom.agents.spec import Answer, Exchange, ToolCall, ToolResult, Usage
from turnloom.explain.logic.describe import describe
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.spec import steps
from turnloom.explain.spec import steps as details
from turnloom.explain.spec.turn import TurnExplained
from turnloom.kernel.marks import mark
from turnloom.kernel.values import as_data
from turnloom.runtime.logic import codec


async def test_the_prompt_with_tools_a_form_and_a_secret_is_the_engines_to_the_byte(
    busy: Told,
) -> None:
    assert [task.turn for task in busy.tasks] == [1, 1, 1, 2, 2, 2]
    for task in busy.tasks:
        found = busy.turn(task.turn)
        revealed = found.prompt.replace(mark("token"), TOKEN)
        assert revealed.encode() == task.prompt.encode()
        assert found.prompt == "".join(segment.text for segment in found.segments)
        assert found.exchanges[: len(task.exchanges)] == task.exchanges
        assert found.verified and sum(each.tokens for each in found.segments) == found.tokens
    first, second = busy.turn(1), busy.turn(2)
    assert TOKEN in busy.tasks[0].prompt and TOKEN not in str(first)
    assert [each.kind for each in first.segments][-5:] == ["history", *["tool"] * 4]
    assert "Accepted: false, total: 0." in first.segments[-1].text
    assert [each.origin for each in second.segments][-1] == "structured_outputs.Report"


async def test_each_model_call_says_with_what_it_was_asked(busy: Told) -> None:
    asked = of(busy.turn(1), steps.ModelCallEntry)
    assert [(each.n, each.given, each.outcome) for each in asked] == [
        (1, 0, "answered"),
        (2, 1, "answered"),
        (3, 2, "answered"),
    ]
    assert [each.request for each in asked] == [
        event.data.request
        for event in busy.events
        if event.kind == "model.called" and event.data.turn == 1
    ]
    assert [call.tool for each in asked for call in each.calls] == [
        "plan",
        "add",
        "subtract",
        "transfer_to_Writer_3",
    ]
    assert [tells(each, "Let me see.") for each in said(asked[0].within)] == [True]
    assert busy.turn(1).usage == Usage(30, 3) and busy.turn(2).usage == Usage(60, 6)


async def test_a_tool_says_what_it_wrote_asked_and_did(busy: Told) -> None:
    plan, add, subtract = of(busy.turn(1), steps.ToolEntry)
    assert (plan.tool, plan.call, plan.arguments, plan.outcome, plan.result) == (
        "plan",
        1,
        {"title": mark("token")},
        "returned",
        [True, True],
    )
    told = [
        ("pay", f'{{"paid":"{mark("token")}"}}'),
        ("u1", "'Like this?'", "u1", '{"accepted":true,"colour":"red"}'),
        ("u1", "'Sure?'", "u1", '{"accepted":true}'),
        ("total", "tool:plan", "'many'"),
        ("colour", "plan", "'red'"),
        ("accepted", "False → True", "tool:plan"),
        ("draft", "{'n': 1}", "tool:plan"),
    ]
    for line, values in zip(said(plan.within), told, strict=True):
        assert tells(line, *values), line
    questions = [each for each in plan.within if isinstance(each, details.QuestionEntry)]
    assert all(each.status == "answered" and each.at and each.by == "u1" for each in questions)
    assert plan.seconds is not None and 0 <= plan.waited <= plan.seconds
    assert plan.waited == pytest.approx(sum(each.waited or 0 for each in questions))
    assert (add.result, add.waited) == ({"sum": 5}, 0)
    assert [tells(each, "total", "0 → 5", "trigger:total[0]") for each in said(add.within)] == [
        True
    ]
    assert (subtract.call, subtract.arguments, subtract.outcome) == (2, {"a": 1}, "failed")
    assert tells(subtract.error, "UnknownTool: ", "'subtract'")


async def test_hooks_say_how_they_ended_and_why_they_were_skipped(busy: Told) -> None:
    greet, check, praise = of(busy.turn(1), steps.HookEntry)
    assert (greet.trigger, greet.status, greet.result) == ("before_agent", "success", "hello")
    assert (check.status, check.attempts, check.error) == (
        "error",
        2,
        "RuntimeError: not today",
    )
    assert check.elapsed_ms and check.elapsed_ms >= 100 and not check.restored
    assert praise.status == "skipped" and tells(praise.says, "praise", "after_agent", "check")
    (skipped,) = of(busy.turn(2), steps.HookEntry)
    assert tells(skipped.result, "${accepted} == False", "accepted")


async def test_outputs_and_transfers_stand_where_they_happened(busy: Told) -> None:
    (chosen,) = of(busy.turn(1), steps.TransferEntry)
    assert (chosen.rule, chosen.target) == (3, "Writer")
    second = busy.turn(2)
    refused, thick, thin = (each.within[0] for each in of(second, steps.ModelCallEntry))
    assert isinstance(refused, details.RefusedOutputEntry) and refused.raw == "No report."
    assert isinstance(thick, details.OutputEntry) and thick.output == {
        "title": "Sheds",
        "pages": 10,
    }
    assert isinstance(thin, details.OutputEntry) and (thin.model, thin.hidden) == ("Report", False)
    assert [(each.auto, each.call, each.outcome) for each in of(second, steps.ToolEntry)] == [
        (True, 2, "failed"),
        (True, 3, "returned"),
    ]
    assert second.exchanges[1].text == as_data(thick.output)
    assert tells(second.exchanges[1].problem, "bind", "ValueError: too thick")
    assert second.onward and second.onward.reason == "after_work rule 6"


async def test_steps_come_in_the_order_in_which_they_began(busy: Told) -> None:
    for number in (1, 2):
        seqs = [step.seq for step in busy.turn(number).steps]
        assert seqs == sorted(seqs)
        inner = [
            each.seq for step in busy.turn(number).steps for each in getattr(step, "within", ())
        ]
        assert len({*seqs, *inner}) == len(seqs) + len(inner)


async def test_tampering_with_what_later_calls_were_given_shows(busy: Told) -> None:
    events = list(busy.events)
    forged = {
        "tool.returned": {"result": [False]},
        "tool.failed": {"message": "It works."},
        "agent.text": {"text": "Let me not."},
    }
    for kind, values in forged.items():
        place = busy.seq(kind) - 1
        fact = msgspec.structs.replace(events[place].data, **values)
        log = [*events]
        log[place] = msgspec.structs.replace(events[place], data=fact)
        found = explain_turn(log, 1)
        assert not found.verified, kind
        assert found.doubts


async def test_a_turn_can_be_explained_at_every_point_of_it(busy: Told) -> None:
    known = codec()
    for length in range(busy.seq("turn.started"), len(busy.events) + 1):
        found = explain_turn(busy.events[:length], 1)
        assert found.verified, (length, found.doubts)
        again = msgspec.json.decode(msgspec.json.encode(found), type=TurnExplained)
        assert again == found and str(again) == str(found)
    stored = [known.decode(known.encode(event)) for event in busy.events]
    assert explain_turn(stored, 2) == busy.turn(2)


async def test_what_waits_says_so(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNLOOM_TEST_TOKEN", TOKEN)
    told = await tell(WORKSHOP, LINES, [])
    found = told.turn(1)
    plan, add = of(found, steps.ToolEntry)
    assert (found.status, plan.outcome, add.outcome) == ("open", "open", "returned")
    assert tells(str(found), "plan", as_data(plan.arguments), "u1", "'Like this?'")


async def test_a_model_call_says_what_the_engine_called_itself(tell: Tell) -> None:
    calls = ToolCall("look", {"at": "sky"}), ToolCall("look", {"at": "sun"})
    results = ToolResult("blue"), ToolResult(error="too bright")
    line = Answer("NEXT", before=(Exchange("Hm.", calls, results),))
    told = await tell(said={"Asker": [line], "Planner": ["DONE"]})
    found = told.turn(1)
    (asked,) = of(found, steps.ModelCallEntry)
    assert tells(said(asked.within)[0], "look", '{"at":"sky"}', '"blue"')
    assert tells(said(asked.within)[1], "look", '{"at":"sun"}', "too bright")
    assert said(asked.within)[0] in str(found)
    again = msgspec.json.decode(msgspec.json.encode(found), type=TurnExplained)
    assert again == found and found.verified


async def test_a_model_call_says_who_answered_and_what_the_engine_added(tell: Tell) -> None:
    added = ("That is it.\x1b ", "\nAnswer again.")
    lines = {"Asker": [Answer("NEXT", model="gpt-5-2026", added=added)], "Planner": ["DONE"]}
    told = await tell(said=lines)
    found, later = told.turn(1), told.turn(2)
    (asked,) = of(found, steps.ModelCallEntry)
    assert asked.model == "gpt-5-2026" and tells(asked.says, "Engine", "gpt-5-2026")
    assert asked.within[0] == details.AddedTextEntry(told.seq("model.answered"), added)
    line = said(asked.within)[0]
    assert tells(line, r'"That is it.\u001b ", "\nAnswer again."') and line in str(found)
    shown = msgspec.json.decode(msgspec.json.encode(found))["steps"][0]
    assert shown["model"] == "gpt-5-2026"
    first = shown["within"][0]
    assert (first["type"], first["texts"]) == ("added by engine", [*added])
    (plain,) = of(later, steps.ModelCallEntry)
    assert plain.model == "" and "gpt" not in plain.says
    assert not [each for each in plain.within if isinstance(each, details.AddedTextEntry)]
    rows = {row.what: row.note for row in timeline(told.events).rows}
    assert (rows["turn 1"], rows["turn 2"]) == ("gpt-5-2026", "")
    assert tells(describe(told.events[told.seq("model.answered") - 1].data), "gpt-5-2026")
