"""Routes that more than values decide: models, chance, people, and how often one may reply."""

import msgspec

from tests.explain.conftest import Tell, Told, tells
from tests.explain.workshop import CHATTER, CHOICE, pattern
from turnloom import Answer
from turnloom.agents.spec import ToolCall
from turnloom.assembly.events import FrameAssembled
from turnloom.explain.logic.route import NOT_OFFERED, explain_route


async def test_every_route_is_decided_again_as_it_was(busy: Told) -> None:
    seqs = [event.seq for event in busy.events if event.kind == "route.decided"]
    assert len(seqs) == 4
    for seq in seqs:
        found = busy.route(seq)
        assert found.seq == seq and not found.doubt


async def test_a_rule_of_the_model_says_with_which_words_it_was_offered(busy: Told) -> None:
    found = busy.route(busy.seq("route.decided", 1))
    values, nothing, chosen, before, unasked = found.rules
    assert tells(unasked.why_not, "rule 3")
    assert (found.target, found.reason) == ("Writer", "string_llm rule 3")
    assert (values.model, values.sight) == (False, "total = 5")
    assert tells(values.verdict, "no: ", "total", 5, 99)
    assert nothing.model and nothing.verdict.startswith("no: ")
    assert chosen.fired and chosen.offered == "Hand over to Writer. Accepted: false, total: 0."
    assert before.pre and tells(before.wants, "${accepted} == False")
    first, second = found.otherwise
    assert tells(first.says, "total", 99, 5, "rule 1", "terminate")
    assert tells(second.says, "accepted", False, True, "rule 5", "Editor", "Writer")


async def test_a_rule_judged_before_a_reply_says_who_would_have_replied(busy: Told) -> None:
    found = busy.route(busy.seq("route.decided", 3))
    assert (found.source, found.reason) == ("Editor", "condition rule 7, before Editor would reply")
    (otherwise,) = found.otherwise
    assert (otherwise.variable, otherwise.rule, otherwise.anything_else) == ("total", 0, True)
    assert tells(otherwise.says, "total", "Editor")


async def test_what_was_not_offered_could_not_be_chosen(busy: Told) -> None:
    def without_tools(frame: FrameAssembled) -> FrameAssembled:
        kept = tuple(each for each in frame.segments if each.kind != "tool")
        return msgspec.structs.replace(frame, segments=kept)

    events = [
        msgspec.structs.replace(event, data=without_tools(event.data))
        if isinstance(event.data, FrameAssembled)
        else event
        for event in busy.events
    ]
    found = explain_route(events, busy.seq("route.decided", 1), busy.declared)
    assert found.rules[1].why_not == NOT_OFFERED and found.rules[1].sight == ""


async def test_words_for_a_model_are_never_read_as_a_condition(tell: Tell) -> None:
    told = await tell(CHOICE, CHATTER, ())
    found = told.route(told.seq("route.decided", 1))
    assert [(each.rule, each.model) for each in found.rules] == [(1, False), (3, False), (2, True)]
    assert [(each.variable, each.becomes, each.rule) for each in found.otherwise] == [
        ("level", 2, 1),
        ("level", 3, 3),
    ]


async def test_a_choice_of_the_model_counts_when_an_earlier_rule_would_not_have_fired(
    tell: Tell,
) -> None:
    lines = CHATTER | {"A": [Answer("UP", calls=(ToolCall("transfer_to_C_2"),))]}
    told = await tell(CHOICE, lines, ())
    found = told.route(told.seq("route.decided", 1))
    assert (found.target, found.reason) == ("B", "condition rule 1")
    assert [(each.becomes, each.anything_else, each.rule) for each in found.otherwise] == [
        (None, True, 2),
        (3, False, 3),
    ]


async def test_who_replied_as_often_as_it_may_is_passed_over(tell: Tell) -> None:
    files = CHOICE | {
        "agents.yaml": "A: {max_consecutive_auto_reply: 1}\nB: {}\nC: {}",
        "handoffs.yaml": f"""{CHOICE["handoffs.yaml"].rstrip()}
          - {{source_agent: A, target_agent: A, handoff_type: after_work}}
        """,
    }
    told = await tell(files, CHATTER, ())
    found = told.route(told.seq("route.decided", 1))
    assert (found.target, found.reason) == (
        "terminate",
        "max_consecutive_auto_reply: A replied 1 times",
    )
    assert [each.rule for each in found.rules if each.fired] == [4]
    assert [(each.variable, each.target) for each in found.otherwise] == [
        ("level", "B"),
        ("level", "B"),
    ]


async def test_chance_is_named_with_those_it_drew_from(tell: Tell) -> None:
    told = await tell(pattern("RandomPattern"), CHATTER, ())
    found = told.route(told.seq("route.decided", 1))
    assert found.picked and found.picked.seq == told.seq("chance.drawn")
    assert tells(found.picked.says, found.picked.seq, found.target, "B, C")
    assert found.picked.says in str(found) and not found.doubt
    assert [each.rule for each in found.otherwise] == [1, 3]


async def test_a_model_or_a_person_who_picks_is_named(tell: Tell) -> None:
    lines = CHATTER | {"selector": [Answer("B"), Answer("C")]}
    told = await tell(pattern("AutoPattern"), lines, ())
    found = told.route(told.seq("route.decided", 1))
    assert found.picked and (found.picked.by, found.picked.picked) == ("the model", "B")
    asked = await tell(pattern("ManualPattern"), CHATTER, ["C", "terminate"])
    found = asked.route(asked.seq("route.decided", 1))
    assert found.picked and (found.picked.by, found.target) == ("u1", "C")
    assert found.picked.among == ("A", "B", "C", "terminate")


async def test_without_a_rule_somebody_would_have_been_picked(tell: Tell) -> None:
    told = await tell(pattern("RandomPattern"), CHATTER | {"A": ["UP", "."]}, ())
    (first, *_) = told.route(told.seq("route.decided", 1)).otherwise
    assert first.anything_else and (first.rule, first.target) == (0, "")


async def test_a_route_that_is_not_decided_again_as_it_was_is_doubted(busy: Told) -> None:
    seq = busy.seq("route.decided", 1)
    event = busy.events[seq - 1]
    fact = msgspec.structs.replace(event.data, target="Editor")
    forged = [*busy.events[: seq - 1], msgspec.structs.replace(event, data=fact)]
    found = explain_route(forged, seq, busy.declared)
    assert tells(found.doubt, "Writer", "rule 3")
    assert found.doubt in str(found) and found.otherwise == ()
    assert explain_route(busy.events, seq).doubt
