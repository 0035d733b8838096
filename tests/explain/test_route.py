"""Why this route: every rule, its verdict, and what would have led elsewhere."""

import msgspec
import pytest

from tests.explain.conftest import FLOW, Tell, Told, tells
from turnloom.errors import UsageError

STEER = FLOW | {
    "handoffs.yaml": """
        handoff_rules:
          - source_agent: Asker
            target_agent: Planner
            handoff_type: condition
            condition: ${known} == True AND ${stage} == "planning"
          - source_agent: Asker
            target_agent: terminate
            handoff_type: condition
            condition: ${limit} == 3
        """
}


async def test_every_rule_has_its_verdict_and_the_values_it_saw(told: Told) -> None:
    found = told.route(told.seq("route.decided", 1))
    assert (found.source, found.target, found.reason) == ("Asker", "user", "after_work rule 3")
    assert [(each.rule, each.fired, each.saw) for each in found.rules] == [
        (1, False, {"known": False}),
        (2, False, {"stage": "asking"}),
        (3, True, {}),
    ]
    assert tells(found.rules[0].why_not, "known", False, True)


async def test_only_a_change_that_is_enough_alone_is_offered(told: Told) -> None:
    found = told.route(told.seq("route.decided", 1))
    # Rule 1 wants two values at once and has neither, so only rule 2 is one change away.
    assert [(each.variable, each.becomes, each.rule) for each in found.otherwise] == [
        ("stage", "done", 2)
    ]
    assert tells(found.otherwise[0].says, "stage", "'done'", "'asking'", "rule 2", "terminate")


async def test_a_rule_that_fired_says_what_would_have_stopped_it(told: Told) -> None:
    handover = next(
        event.seq
        for event in told.events
        if event.kind == "route.decided" and event.data.target == "Planner"
    )
    found = told.route(handover)
    assert [
        (each.variable, each.becomes, each.anything_else, each.rule) for each in found.otherwise
    ] == [
        ("known", False, False, 3),
        ("stage", None, True, 3),
        ("stage", "done", False, 2),
    ]
    assert tells(str(found), "stage", "'planning'")


async def test_an_earlier_rule_that_would_also_fire_comes_first(tell: Tell) -> None:
    files = STEER | {
        "handoffs.yaml": """
            handoff_rules:
              - source_agent: Asker
                target_agent: Planner
                handoff_type: condition
                condition: ${stage} == "done"
              - source_agent: Asker
                target_agent: terminate
                handoff_type: condition
                condition: ${known} == False AND ${stage} == "done"
              - {source_agent: Asker, target_agent: user, handoff_type: after_work}
              - {source_agent: Planner, target_agent: user, handoff_type: after_work}
            """
    }
    told = await tell(files, answers=())
    found = told.route(told.seq("route.decided", 1))
    assert [(each.variable, each.rule) for each in found.otherwise] == [("stage", 1)]


async def test_a_rule_that_no_route_came_to_is_known_from_the_declarations(tell: Tell) -> None:
    handoffs = f"""{STEER["handoffs.yaml"].rstrip()}
          - {{source_agent: Asker, target_agent: Asker, handoff_type: after_work}}
        """
    told = await tell(STEER | {"handoffs.yaml": handoffs}, answers=())
    found = told.route(told.seq("route.decided", 1))
    assert found.target == "terminate" and [each.rule for each in found.rules] == [1, 2, 3]
    assert tells(found.rules[-1].why_not, "rule 2")
    assert [(each.variable, each.rule, each.target) for each in found.otherwise] == [
        ("limit", 3, "Asker")
    ]


async def test_without_a_rule_behind_it_the_pattern_decides(tell: Tell) -> None:
    told = await tell(STEER, answers=())
    (otherwise,) = told.route(told.seq("route.decided", 1)).otherwise
    assert (otherwise.variable, otherwise.rule, otherwise.target) == ("limit", 0, "user")
    assert otherwise.anything_else
    assert tells(otherwise.says, "limit", 3, "user", "human_in_the_loop")


async def test_without_a_rule_the_default_is_named(tell: Tell) -> None:
    files = STEER | {"handoffs.yaml": STEER["handoffs.yaml"].replace("== 3", "== 4")}
    told = await tell(files, answers=())
    found = told.route(told.seq("route.decided", 1))
    assert found.target == "user" and found.reason.startswith("no rule fired")
    assert [(each.variable, each.becomes, each.rule) for each in found.otherwise] == [
        ("limit", 4, 2)
    ]


async def test_any_event_leads_to_the_next_route(told: Told) -> None:
    first, second = told.seq("route.decided"), told.seq("route.decided", 1)
    found = told.route(first + 1)
    assert (found.seq, found.asked) == (second, first + 1)
    assert tells(str(found), first + 1)
    assert not told.route(first).rules
    routes = ", ".join(str(each.seq) for each in told.events if each.kind == "route.decided")
    for seq in (len(told.events), 0, -3, 10_000):
        with pytest.raises(UsageError, match=routes):
            told.route(seq)


async def test_the_explanation_says_itself_in_text_and_json(told: Told) -> None:
    found = told.route(told.seq("route.decided", 1))
    text = str(found)
    assert tells(text, "Asker → user", "rule 1", "known = False")
    assert msgspec.to_builtins(found)["rules"][0]["why_not"] == found.rules[0].why_not
    assert not told.route(1).rules and not told.route(1).otherwise
