"""Handoffs of every kind in whole runs, and what is on record of them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conversation.casts import (
    VARIABLES,
    Speaking,
    before,
    chooses,
    folder,
    reasons,
    rule,
    speakers,
)
from tests.conversation.talks import examine
from tests.support.folders import write_folder
from tests.support.plays import answering, every, play
from tests.support.programs import begin, drive, make_world
from turnloom import Answer, Engine, Loom, ToolCall
from turnloom.explain.spec.route import RouteExplained

CHOICE = (ToolCall("transfer_to_B_3"),)


async def test_rules_before_a_reply_lead_on_and_on(tmp_path: Path) -> None:
    files = folder(
        {},
        rule("A", "B"),
        before("B", "C", "red is true"),
        before("C", "terminate", "green is true"),
        context_variables=VARIABLES,
    )
    for said, spoke in (("Hm.", "A B"), ("red", "A C"), ("red green", "A"), ("green", "A B")):
        events = await play(tmp_path / said, files, engine=Speaking(A=[said]))
        assert speakers(events) == spoke
    events = await play(tmp_path / "again", files, engine=Speaking(A=["red green"]))
    routes = every(events, "route.decided")[1:]
    assert [(each.source, each.target, each.reason) for each in routes] == [
        ("A", "B", "after_work rule 1"),
        ("B", "C", "condition rule 2, before B would reply"),
        ("C", "terminate", "condition rule 3, before C would reply"),
    ]


async def test_rules_before_a_reply_count_for_who_goes_on(tmp_path: Path) -> None:
    """An agent that hands over to itself would reply like any other."""
    files = folder(
        {"max_turns": 4},
        rule("A", "A"),
        before("A", "B", "red is true"),
        context_variables=VARIABLES,
    )
    events = await play(tmp_path, files, engine=Speaking(A=["Hm.", "red"]))
    assert speakers(events) == "A A B"


async def test_rules_before_a_reply_that_lead_in_a_circle_are_followed_once(tmp_path: Path) -> None:
    files = folder(
        {"max_turns": 2},
        rule("A", "B"),
        before("B", "C", "red is true"),
        before("C", "B", "red is true"),
        context_variables=VARIABLES,
    )
    events = await play(tmp_path, files, engine=Speaking(A=["red"]))
    assert speakers(events) == "A B"
    assert "condition rule 3, before C would reply; B was passed over once and replies" in reasons(
        events
    )


async def test_the_first_speaker_may_be_led_past_too(tmp_path: Path) -> None:
    variables = {
        "definitions": {
            "skip": {"type": "boolean", "source": {"type": "environment", "env_var": "SKIP"}}
        }
    }
    files = folder({}, before("A", "C", "skip is true"), context_variables=variables)
    world = make_world(Speaking(), env={"SKIP": "yes"})
    run = await begin(world, write_folder(tmp_path, files))
    await drive(world, run)
    assert speakers(await world.read(run)) == "C"


async def test_the_order_of_all_kinds_of_rules(tmp_path: Path) -> None:
    files = folder(
        {},
        rule("A", "terminate"),
        rule("A", "C", "red is true", handoff_type="after_work"),
        chooses("A", "B", "When blue is ${blue} and ${workflow_name} is done."),
        rule("A", "C", "green is true"),
        context_variables=VARIABLES,
    )
    cases = {
        "expression": (Answer("green", calls=CHOICE), "C", "condition rule 4"),
        "llm": (Answer("red", calls=CHOICE), "B", "string_llm rule 3"),
        "after": (Answer("red"), "C", "after_work rule 2"),
        "last": (Answer("Hm."), "terminate", "after_work rule 1"),
    }
    for name, (answer, target, reason) in cases.items():
        engine = Speaking(A=[answer])
        events = await play(tmp_path / name, files, engine=engine)
        route = every(events, "route.decided")[1]
        assert (route.target, route.reason) == (target, reason)
        (schema,) = engine.tasks[0].tools
        assert schema.name == "transfer_to_B_3"
        assert schema.description == 'Hand over to B. When blue is false and "Flow" is done.'
    assert [(each.rule, bool(each.why_not)) for each in route.considered] == [
        (4, True),
        (3, True),
        (2, True),
        (1, False),
    ]
    assert "green" in route.considered[0].why_not and "red" in route.considered[2].why_not


async def second_route(where: Path, files: Mapping[str, str], engine: Engine) -> RouteExplained:
    """Why a run went where it went after its first turn."""
    async with Loom(store="memory", engine=engine) as app:
        run = await app.start(write_folder(where, files))
        events = [event async for event in run.events()]
        seq = [event.seq for event in events if event.kind == "route.decided"][1]
        told = await app.explain.route(run.id, seq)
    assert isinstance(told, RouteExplained)
    return told


async def test_a_route_tells_of_each_of_five_rules_why_it_fired_or_not(tmp_path: Path) -> None:
    files = folder(
        {},
        rule("A", "B", "red is true"),
        rule("A", "B", "green is true AND blue is true"),
        chooses("A", "C", "The user is ${red} angry."),
        rule("A", "C", "blue is true", handoff_type="after_work"),
        rule("A", "terminate"),
        context_variables=VARIABLES,
    )
    told = await second_route(tmp_path, files, Speaking(A=["green"]))
    assert [(each.rule, each.fired, each.saw) for each in told.rules] == [
        (1, False, {"red": False}),
        (2, False, {"green": True, "blue": False}),
        (3, False, {}),
        (4, False, {"blue": False}),
        (5, True, {}),
    ]
    assert [bool(each.why_not) for each in told.rules] == [True, True, True, True, False]
    assert [(each.variable, each.rule) for each in told.otherwise] == [("red", 1), ("blue", 2)]
    assert "The user is ${red} angry." in str(told)


async def test_a_handoff_that_a_model_chose_is_explained(tmp_path: Path) -> None:
    files = folder(
        {},
        rule("A", "C", "red is true"),
        chooses("A", "B", "red is true"),
        rule("A", "terminate"),
        context_variables=VARIABLES,
    )
    said = Answer("Hm.", calls=(ToolCall("transfer_to_B_2"),))
    told = await second_route(tmp_path, files, Speaking(A=[said]))
    assert (told.target, told.reason) == ("B", "string_llm rule 2")
    assert [(each.variable, each.rule) for each in told.otherwise] == [("red", 1)]


async def test_an_agent_replies_as_often_in_a_row_as_it_may(tmp_path: Path) -> None:
    agents = {"A": {"max_consecutive_auto_reply": 2}, "B": {}}
    rules = [rule("A", "B"), rule("B", "A")]
    events = await play(tmp_path / "1", folder({}, *rules, agents=agents), engine=Speaking())
    assert speakers(events) == "A B A B"
    assert reasons(events)[-1] == "max_consecutive_auto_reply: A replied 2 times"
    setup = {"human_in_the_loop": True, "max_turns": 6}
    files = folder(setup, *rules, agents=agents)
    events = await play(tmp_path / "2", files, answering("Go on."), Speaking())
    assert speakers(events) == "A B A B user B A"


async def test_an_agent_that_rules_before_a_reply_lead_to_is_limited_too(tmp_path: Path) -> None:
    agents = {"A": {}, "B": {}, "C": {"max_consecutive_auto_reply": 1}}
    files = folder(
        {},
        rule("A", "B"),
        rule("C", "B"),
        before("B", "C", "red is true"),
        agents=agents,
        context_variables=VARIABLES,
    )
    events = await play(tmp_path, files, engine=Speaking(A=["red"]))
    assert speakers(events) == "A C"
    assert reasons(events)[-1] == "max_consecutive_auto_reply: C replied 1 times"


async def test_other_words_for_the_same_mean_the_same(tmp_path: Path) -> None:
    """The words of workflows from elsewhere are normalised, in any case for who is no agent."""
    files = folder(
        {},
        rule("A", "B", "red is true", condition_type="context_expression"),
        rule("A", "B", "The end.", condition_type="llm"),
        rule("A", "Terminate", transition_target="TerminateTarget"),
        rule("B", "C", "green is true", condition_type="context"),
        rule("B", "USER", transition_target="RevertToUserTarget"),
        rule("User", "C", transition_target="AgentTarget"),
        before("C", "A", "blue is true") | {"condition_scope": "before_reply"},
        context_variables=VARIABLES,
    )
    events = await play(tmp_path, files, answering("Hi."), Speaking(A=["red"]))
    assert speakers(events) == "A B user C"
    for word in ("immediate", "context_pre", "pre"):
        conversation, problems = examine(
            folder(
                {"max_turns": 2},
                rule("A", "B"),
                rule("A", "C", "green is true"),
                before("B", "C", "red is true") | {"condition_scope": word},
                context_variables=VARIABLES,
            )
        )
        assert conversation is not None, problems
        assert conversation.rules["B"][0].pre


@pytest.mark.parametrize(
    ("key", "word", "nearest"),
    [
        ("condition_type", "expresion", "expression"),
        ("handoff_type", "condtion", "condition"),
        ("condition_scope", "prre", "pre"),
        ("transition_target", "AgentTarge", "AgentTarget"),
    ],
)
def test_a_word_that_is_misspelt_is_an_error_and_never_means_something_else(
    key: str, word: str, nearest: str
) -> None:
    files = folder({}, rule("A", "B", "red is true") | {key: word}, context_variables=VARIABLES)
    conversation, problems = examine(files)
    assert conversation is None
    told = [problem for problem in problems if problem.code == "W012"]
    assert len(told) == 1 and nearest in f"{told[0].message} {told[0].remedy}"


async def test_agents_that_the_user_does_not_see_are_hidden(tmp_path: Path) -> None:
    files = folder(
        {"orchestration_pattern": "RoundRobinPattern", "max_turns": 3},
        ui_config={"visual_agents": ["B", "user"]},
    )
    events = await play(tmp_path, files, engine=Speaking())
    assert [(each.agent, each.hidden) for each in every(events, "agent.text")] == [
        ("A", True),
        ("B", False),
        ("C", True),
    ]


async def test_a_control_word_is_hidden_and_heard_by_others(tmp_path: Path) -> None:
    trigger = {"type": "agent_text", "agent": "A", "match": {"equals": "NEXT"}, "hide": True}
    source = {"type": "derived", "default": False, "triggers": [trigger]}
    variables = {"definitions": {"done": {"type": "boolean", "source": source}}}
    files = folder({}, rule("A", "B", "done is true"), rule("A", "A"), context_variables=variables)
    engine = Speaking(A=["Not yet.", " next "])
    events = await play(tmp_path, files, engine=engine)
    assert [(each.text, each.hidden) for each in every(events, "agent.text")] == [
        ("Not yet.", False),
        (" next ", True),
        ("B 1", False),
    ]
    assert [message.text for message in engine.tasks[-1].transcript] == ["Not yet.", " next "]
