"""Why this value: where it is from, what changed it, who read it."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.explain.conftest import Engine, Tell, Told, tells
from tests.support.folders import write_folder
from turnloom import Loom
from turnloom.adapters.files import parse
from turnloom.cli.explanations import render
from turnloom.errors import UsageError
from turnloom.explain.logic.variable import explain_variable
from turnloom.explain.spec.variable import RefusedValue, VariableChange
from turnloom.variables.events import ContextRefused
from turnloom.variables.logic.checking import describe

# What an agent says decides whether its length, in letters, may be taken.
COUNT = {
    "agents.yaml": "Asker: {system_message: Ask.}",
    "orchestrator.yaml": "max_turns: 3",
    "handoffs.yaml": "[{source_agent: Asker, target_agent: Asker, handoff_type: after_work}]",
    "context_variables.yaml": """
        definitions:
          letters:
            type: integer
            enum: [2, 5]
            description: How much was said.
            source: {type: derived, default: 2, triggers: [{type: function, function: count}]}
          silent: {type: boolean, source: {type: derived, default: true, triggers: []}}
        """,
    "derivations.py": """
        from turnloom import UNCHANGED, derivation

        @derivation
        def count(event, values):
            return len(event.data.text) if event.kind == "agent.text" else UNCHANGED
        """,
}
COUNTED = {"Asker": ["Three", "One", "No"]}


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


async def test_chains_of_causes_share_their_links(told: Told) -> None:
    """A variable that changes in each of thousands of turns has as many long chains."""
    changes = explain_variable(told.events, "stage").changes
    causes = [each for change in changes for each in change.causes]
    assert len({id(each) for each in causes}) == len({each.seq for each in causes}) < len(causes)


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
    assert not unloaded.present
    with pytest.raises(UsageError, match=f"{len(told.events)}"):
        explain_variable(told.events, "known", len(told.events) + 1)


async def test_the_environment_shows_what_it_said_and_what_was_made_of_it(
    tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_LIMIT", "12")
    found = explain_variable((await tell()).events, "limit")
    assert (found.source, found.raw, found.first, found.defaulted) == (
        "environment",
        "12",
        12,
        False,
    )
    assert "'12' → 12" in str(found)
    monkeypatch.setenv("TEST_LIMIT", "many")
    found = explain_variable((await tell()).events, "limit")
    assert (found.raw, found.first, found.defaulted) == ("many", 3, True) and found.note
    assert found.note in str(found)
    monkeypatch.setenv("ENVIRONMENT", "production")
    found = explain_variable((await tell()).events, "limit")
    assert not found.present and "production" in found.suppressed
    assert all(each.withheld for each in found.frames) and len(found.frames) == 3
    assert found.suppressed in str(found)


async def test_an_unknown_name_comes_with_the_nearest_known_one(told: Told) -> None:
    with pytest.raises(UsageError, match="'stagee'.* 'stage'"):
        explain_variable(told.events, "stagee")
    with pytest.raises(UsageError, match="tier"):
        explain_variable(told.events, "zzzzzzzz")


async def test_the_explanation_says_itself_in_text_and_json(told: Told) -> None:
    found = explain_variable(told.events, "stage")
    text = str(found)
    assert tells(text, "stage", "'done'", "trigger:stage[0]", "rule 4", "terminate")
    assert msgspec.to_builtins(found)["changes"][1]["value"] == "done"
    assert not explain_variable(told.events, "chat_id").frames


async def test_refused_writes_stand_among_the_changes(tell: Tell) -> None:
    told = await tell(COUNT, COUNTED)
    found = explain_variable(told.events, "letters")
    assert found.value == 2
    assert [type(write) for write in found.history] == [
        VariableChange,
        RefusedValue,
        VariableChange,
    ]
    (refused,) = found.refused
    assert refused.seq == told.seq("context.refused")
    assert refused.writer == "trigger:letters[0]"
    assert tells(refused.reason, "'letters'", "[2, 5]", 3)
    assert tells(refused.causes[0].says, "Asker", "One")
    text = str(found)
    assert tells(text, "2 → 5", refused.seq, "trigger:letters[0]", refused.reason, "5 → 2")
    assert [part for part in render(found) if refused.says in str(part)]
    assert msgspec.to_builtins(found)["refused"][0]["writer"] == "trigger:letters[0]"
    before = explain_variable(told.events, "letters", refused.seq - 1)
    assert before.refused == () and explain_variable(told.events, "silent").history == []


async def test_a_name_that_was_only_refused_is_known(told: Told) -> None:
    last = told.events[-1]
    fact = ContextRefused("stray", "tool:t", "it cannot be written")
    event = msgspec.structs.replace(last, seq=last.seq + 1, kind=fact.kind, data=fact)
    found = explain_variable([*told.events, event], "stray")
    assert not found.present and [each.writer for each in found.refused] == ["tool:t"]


async def described(app: Loom, run: str, variable: str, **more: Any) -> str:
    found = await app.explain.variable(run, variable, **more)
    assert found.description in str(found)
    assert msgspec.to_builtins(found)["description"] == found.description
    return found.description


async def test_what_a_variable_is_for_is_told_by_what_the_run_began_with(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, COUNT)
    async with Loom(store="memory", engine=Engine(COUNTED)) as app:
        run = (await app.start(folder)).id
        await app.handle(run).finished()
        for text in ("definitions: {letters: {description: Another.}}", "no: yaml: at all"):
            write_folder(tmp_path, {"context_variables.yaml": text})
            assert await described(app, run, "letters") == "How much was said."
        shutil.rmtree(folder)
        assert await described(app, run, "letters", at=1) == "How much was said."
        assert await described(app, run, "silent") == ""
        assert await described(app, run, "chat_id") == ""


@pytest.mark.parametrize(
    "text",
    [
        "definitions: {x: {description: Why., source: {type: derived, triggers: [{type: own}]}}}",
        "context_variables: {definitions: [{name: x, description: Why.}, {}, 5]}",
    ],
)
def test_a_description_needs_no_definition_that_passes_the_check(text: str) -> None:
    document, _ = parse("context_variables.yaml", text)
    assert document and describe(document) == {"x": "Why."}


@pytest.mark.parametrize("text", ["[]", "definitions: 5", "definitions: {x: {description: 5}}"])
def test_what_describes_nothing_says_nothing(text: str) -> None:
    document, _ = parse("context_variables.yaml", text)
    assert document and describe(document) == {}


async def test_what_a_tool_wrote_follows_from_its_call_and_from_the_answers(busy: Told) -> None:
    found = busy.variable("accepted")
    (change,) = found.changes
    assert tells(change.says, "False → True", "tool:plan")
    assert [each.kind for each in change.causes][:9] == [
        "tool.returned",
        "question.answered",
        "question.asked",
        "question.answered",
        "question.asked",
        "effect.done",
        "tool.called",
        "agent.text",
        "model.answered",
    ]
    assert tells(change.causes[6].says, "plan", 'title="⟨secret:token⟩"')
    assert change.causes[-1].kind == "run.started"


async def test_calls_that_go_on_side_by_side_do_not_cause_each_other(busy: Told) -> None:
    (change,) = busy.variable("total").changes
    returned, called, spoke, *_ = [each.says for each in change.causes]
    assert tells(returned, "add", '{"sum":5}') and tells(called, "add", "a=3")
    assert tells(spoke, "Planner", "Let me see.")


async def test_an_object_is_shown_as_what_stands_for_it(busy: Told) -> None:
    found = busy.variable("pool")
    assert (found.present, found.ephemeral, found.undeclared) == (True, True, True)
    assert tells(found.headline, "pool", "<ephemeral Pool>")
    (change,) = found.changes
    assert tells(change.says, "<ephemeral Pool>", "hook:unlock")
    assert tells(change.causes[0].says, "unlock", "before_chat")


async def test_a_value_that_was_removed_is_absent(busy: Told) -> None:
    found = busy.variable("draft")
    assert (found.present, found.undeclared) == (False, True)
    put, removed = [each.says for each in found.changes]
    assert tells(put, "{'n': 1}", "hook:unlock") and tells(removed, "{'n': 1}", "tool:plan")
    assert busy.variable("draft", found.changes[0].seq).present
    assert not busy.variable("draft", 3).present


async def test_an_answer_that_was_not_used_stands_among_the_changes(busy: Told) -> None:
    found = busy.variable("colour")
    (missed,) = found.missed
    assert found.history == [missed] and (found.value, missed.value) == ("grey", "red")
    assert tells(missed.says, "tool:plan", "colour", "'red'")
    assert missed.causes[0].kind == "question.answered"
    assert missed.says in str(found) and missed.says in "".join(map(str, render(found)))


async def test_handoffs_and_hooks_read_it_as_well(busy: Told) -> None:
    found = busy.variable("accepted")
    assert [(each.origin, each.text) for each in found.frames] == [
        ("context_variables.accepted", "- accepted: false"),
        ("tools.transfer_to_Writer_3", "Hand over to Writer. Accepted: false, total: 0."),
    ]
    first, rule, second = found.judged
    assert tells(first.who, "greet", "before_agent", "Planner")
    assert tells(rule.who, "Writer", "5") and tells(rule.verdict, "no: ", "accepted", True, False)
    assert tells(second.who, "greet", "before_agent", "Writer")
    assert tells(second.verdict, "accepted", True, False)
    assert [each.value for each in found.hooks] == [False, True]
    text = str(found)
    for each in found.judged:
        assert each.who in text and each.verdict in text
    assert not explain_variable(busy.events, "accepted").hooks
    assert busy.variable("total").hooks == ()
