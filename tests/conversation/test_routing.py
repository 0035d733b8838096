"""Whose turn it is: the start, the rules in their order, the user, the default, the end."""

from typing import Any

import pytest

from tests.conversation.talks import Talk, to
from turnloom.agents.spec import Question
from turnloom.conversation.events import ConsideredRule
from turnloom.runs.actions import Ask, Finish

AGENTS = "agents: {A: {}, B: {}, C: {}}"
VARIABLES = """
    definitions:
      done: {type: boolean, source: {type: derived, default: false, triggers: [
        {type: agent_text, agent: A, match: {equals: DONE}}]}}
      stage: {type: string, source: {type: derived, default: one, triggers: [
        {type: agent_text, agent: A, match: {contains: two}, value: two}]}}
      flag: {type: boolean, source: {type: environment, env_var: F, default: true}}
    """


def rules(*lines: str) -> str:
    """Handoff rules: "A > B", "A > B if …", "A > B after", "A > B after if …"."""
    written = ["handoff_rules:"]
    for line in lines:
        passed, _, condition = line.partition(" if ")
        source, _, target, *kind = passed.split()
        word = "after_work" if kind else "condition"
        said = f", condition: '{condition}'" if condition else ""
        written.append(
            f"- {{source_agent: {source}, target_agent: {target}, handoff_type: {word}{said}}}"
        )
    return "\n".join(written)


def talk(*lines: str, setup: str = "{}", **values: Any) -> Talk:
    files = {
        "orchestrator.yaml": setup,
        "agents.yaml": AGENTS,
        "context_variables.yaml": VARIABLES,
        "handoffs.yaml": rules(*lines),
    }
    return Talk(files, **values)


@pytest.mark.parametrize(
    ("setup", "target"),
    [
        ("{}", "A"),
        ("{initial_agent: B}", "B"),
        ("{startup_mode: AgentDriven, initial_agent: C}", "C"),
        ("{startup_mode: BackendOnly, initial_agent: B}", "B"),
        ("{startup_mode: UserDriven, initial_agent: B}", "user"),
    ],
)
def test_the_startup_mode_says_who_begins(setup: str, target: str) -> None:
    route = talk(setup=setup).route()
    assert (route.source, route.target, route.considered) == ("", target, ())
    assert route.reason.startswith("startup: ")


def test_a_conversation_that_the_user_begins_asks_with_its_opening_and_only_then() -> None:
    this = talk(
        "user > B after",
        "B > user after",
        setup="{startup_mode: UserDriven, initial_message_to_user: Hello?}",
    )
    first = this.workflow.decide(this.state)
    assert isinstance(first, Ask) and first.question == Question("t0.0/ask", "Hello?", "")
    this.route()
    this.answer("Hi.")
    assert this.route().target == "B"
    this.say("B", "How are you?")
    later = this.workflow.decide(this.state)
    assert isinstance(later, Ask) and later.question.prompt == ""


def test_the_opening_of_the_workflow_is_no_word_of_the_user() -> None:
    this = talk("user > C after")
    this.answer("Begin.", author="workflow")
    assert this.route().target == "A"


def test_rules_are_asked_in_their_order_and_all_that_were_asked_are_on_record() -> None:
    this = talk(
        "A > terminate after",
        "A > C after if ${flag} == True",
        "A > B if ${done} == True",
        'A > C if ${stage} == "two" AND ${done} == True',
        'A > A if ${stage} == "two"',
        'A > B if ${stage} is "one"',
    )
    route = this.after("A", "on to two")
    assert (route.source, route.target, route.reason) == ("A", "A", "condition rule 5")
    assert route.considered == (
        ConsideredRule(
            3, "B", False, "${done} == True", {"done": False}, "done is False, not True"
        ),
        ConsideredRule(
            4,
            "C",
            False,
            '${stage} == "two" AND ${done} == True',
            {"stage": "two", "done": False},
            "done is False, not True",
        ),
        ConsideredRule(5, "A", True, '${stage} == "two"', {"stage": "two"}),
    )


def test_after_work_comes_after_all_conditions_and_without_a_condition_last() -> None:
    this = talk(
        "A > terminate after",
        "A > C after if ${flag} == True",
        "A > B if ${done} == True",
        flag=True,
    )
    route = this.after("A")
    assert (route.target, route.reason) == ("C", "after_work rule 2")
    assert [each.rule for each in route.considered] == [3, 2]
    this.state.values["flag"] = False
    route = this.after("A")
    assert (route.target, route.reason) == ("terminate", "after_work rule 1")
    assert route.considered[-1] == ConsideredRule(1, "terminate", True)
    assert "flag" in route.considered[1].why_not


def test_what_an_agent_says_is_folded_before_its_route_is_decided() -> None:
    this = talk("A > B if ${done} == True", "A > A after")
    assert this.after("A", "not yet").target == "A"
    assert this.after("A", "done").target == "B"


def test_only_the_rules_of_who_spoke_are_asked() -> None:
    this = talk("A > B if ${done} == True", "B > C after", "C > B after")
    assert this.after("B").target == "C"
    assert this.after("C").considered == (ConsideredRule(2 + 1, "B", True),)


def test_a_suppressed_variable_makes_no_condition_true_and_the_route_says_why() -> None:
    this = talk("A > B if ${flag} == True", "A > C if ${flag} == False")
    this.suppress("flag")
    route = this.after("A")
    assert route.target == "terminate"
    for each in route.considered:
        assert "flag" in each.why_not and "production has none" in each.why_not
    assert [each.saw for each in route.considered] == [{}, {}]


@pytest.mark.parametrize(
    ("setup", "target", "says"),
    [
        ("{}", "terminate", "the end"),
        ("{human_in_the_loop: false}", "terminate", "the end"),
        ("{human_in_the_loop: true}", "user", "human_in_the_loop"),
    ],
)
def test_when_no_rule_fires_the_pattern_decides(setup: str, target: str, says: str) -> None:
    route = talk("A > B if ${done} == True", setup=setup).after("A")
    assert route.target == target
    assert says in route.reason
    assert [(each.rule, each.fired) for each in route.considered] == [(1, False)]


def test_after_the_user_the_rules_of_the_user_count() -> None:
    this = talk("user > C if ${done} == True", "user > B after", setup="{human_in_the_loop: true}")
    this.route()
    assert this.after("A").target == "user"
    this.answer("Go on.")
    route = this.route()
    assert (route.source, route.target, route.reason) == ("user", "B", "after_work rule 2")
    this.say("B")
    this.route()
    this.say("A", "DONE")
    this.answer("And?")
    assert this.route().target == "C"


def test_without_rules_of_the_user_the_agent_that_was_answered_goes_on() -> None:
    this = talk(setup="{human_in_the_loop: true, initial_agent: A}")
    this.after("B")
    this.answer("Yes.")
    route = this.route()
    assert (route.source, route.target) == ("user", "B")
    assert "the agent that the user answered" in route.reason


def test_a_user_who_begins_without_rules_gets_the_first_agent() -> None:
    this = talk(setup="{startup_mode: UserDriven, initial_agent: C}")
    this.route()
    this.answer("Hello.")
    assert this.route().target == "C"


def test_max_turns_ends_a_conversation_after_that_many_turns_of_agents() -> None:
    this = talk("A > A after", setup="{max_turns: 3}")
    this.route()
    assert [this.after("A").target for _ in range(3)] == ["A", "A", "terminate"]
    last = this.workflow.decide(this.state)
    assert last == Finish(reason="max_turns: 3 reached")


def test_answers_of_the_user_are_no_turns() -> None:
    this = talk("A > user after", "user > A after", setup="{max_turns: 2}")
    this.route()
    assert this.after("A").target == "user"
    this.answer("1")
    assert this.route().target == "A"
    assert this.after("A").target == "terminate"


def test_max_turns_goes_before_every_rule() -> None:
    route = talk("A > B after", setup="{max_turns: 1}").after("A")
    assert (route.target, route.considered) == ("terminate", ())


def test_what_was_decided_is_not_decided_again() -> None:
    this = talk("A > B after", "B > terminate after")
    this.after("A")
    assert to(this.workflow.decide(this.state)) == "B"
    this.state.values["done"] = True
    assert to(this.workflow.decide(this.state)) == "B"
    this.after("B")
    assert this.workflow.decide(this.state) == Finish(reason="after_work rule 2")


def test_deciding_changes_nothing() -> None:
    this = talk("A > B if ${done} == True")
    this.say("A", "DONE")
    first, second = this.workflow.decide(this.state), this.workflow.decide(this.state)
    assert first == second
    assert to(first) == "B"


def test_each_decision_of_a_conversation_has_an_id_of_its_own() -> None:
    this = talk("A > user after", "user > A after")
    ids: list[str] = []
    for _ in range(3):
        decision = this.workflow.decide(this.state)
        ids += [id for id, _ in decision.facts]
        this.route()
        this.say("A")
        decision = this.workflow.decide(this.state)
        assert isinstance(decision, Ask)
        ids += [decision.question.id, *(id for id, _ in decision.facts)]
        this.route()
        this.answer("")
    assert len(set(ids)) == len(ids) == 9
