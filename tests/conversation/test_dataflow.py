"""What is said of variables that are used too early or not at all, and that it is never wrong."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conversation.talks import Talk, examine, to
from turnloom.adapters.files import restore_folder
from turnloom.conversation.events import RouteDecided
from turnloom.conversation.logic.checking import check
from turnloom.errors import Diagnostic

AGENTS = ("A", "B", "C")
NEVER: dict[str, Any] = {"type": "agent_text", "agent": "C", "match": {"equals": "x"}}


def variable(*triggers: dict[str, Any], **source: Any) -> dict[str, Any]:
    """A boolean that triggers set."""
    return {"type": "boolean", "source": {"type": "derived", "triggers": triggers, **source}}


def passing(
    source: str, target: str, condition: str | None = None, pre: bool = False
) -> dict[str, Any]:
    """A rule; without a condition, what follows the work; `pre` is judged before a reply."""
    rule: dict[str, Any] = {"source_agent": source, "target_agent": target}
    if condition is None:
        return {**rule, "handoff_type": "after_work"}
    early = {"condition_scope": "pre"} if pre and source != "user" else {}
    return {**rule, "handoff_type": "condition", "condition": condition, **early}


# A chain with no way back.
CHAIN = [passing("A", "B"), passing("B", "C")]


def folder(
    definitions: dict[str, Any],
    shown: dict[str, list[str]],
    rules: list[dict[str, Any]],
    **setup: Any,
) -> dict[str, str]:
    """The files of a conversation of A, B and C."""
    agents = {name: {"variables": names} for name, names in shown.items()}
    most = {"max_consecutive_auto_reply": setup.pop("most", None)}
    return {
        "orchestrator.json": json.dumps(setup),
        "agents.json": json.dumps(dict.fromkeys(AGENTS, most)),
        "context_variables.json": json.dumps({"definitions": definitions, "agents": agents}),
        "handoffs.json": json.dumps(rules),
    }


def early(files: dict[str, str]) -> list[Diagnostic]:
    """What is said of uses that come too early."""
    conversation, problems = examine(files)
    assert conversation is not None, problems
    return [problem for problem in problems if problem.code == "W065"]


@pytest.mark.parametrize("default", [None, False])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_null_is_told_where_no_path_can_have_set_it(agent: str, default: Any) -> None:
    heard = {"type": "agent_text", "agent": "B", "match": {"equals": "x"}}
    files = folder({"v": variable(heard, default=default)}, {agent: ["v"]}, CHAIN)
    assert bool(early(files)) == (agent in "AB" and default is None)


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "timer_expired", "after": 5, "since": "agent:C"},
        {"type": "function", "function": "f"},
        {"type": "context_changed", "variable": "w", "equals": True},
    ],
)
def test_what_can_happen_at_any_time_is_not_too_late(trigger: dict[str, Any]) -> None:
    anytime = variable({"type": "timer_expired", "after": 5})
    files = folder({"v": variable(NEVER, trigger), "w": anytime}, {"A": ["v", "w"]}, CHAIN)
    assert early(files) == []


def test_a_variable_that_follows_another_is_as_late() -> None:
    follows = {"type": "context_changed", "variable": "w", "equals": True}
    definitions = {"v": variable(follows), "w": variable({**NEVER, "agent": "A"}, NEVER)}
    (told,) = early(folder(definitions, dict.fromkeys(AGENTS, ["v", "w"]), CHAIN))[1:]
    assert "'A'" in told.message and "'w'" in told.message


@pytest.mark.parametrize(
    ("rules", "setup", "is_early"),
    [
        ([passing("A", "B")], {}, True),
        ([passing("A", "B"), passing("B", "A")], {}, False),
        ([passing("A", "A", "stop is false"), passing("A", "B")], {}, False),
        ([passing("A", "user"), passing("user", "B")], {}, True),
        ([passing("A", "user"), passing("user", "B", "stop is true")], {}, False),
        ([passing("A", "B", "stop is true")], {"human_in_the_loop": True}, False),
        ([passing("A", "B")], {"human_in_the_loop": True}, False),
        ([passing("A", "B"), passing("user", "C")], {"human_in_the_loop": True}, True),
        ([passing("A", "B")], {"orchestration_pattern": "RoundRobinPattern"}, False),
        ([passing("B", "C")], {"orchestration_pattern": "RandomPattern"}, False),
        ([passing("user", "A")], {"startup_mode": "UserDriven"}, True),
    ],
)
def test_an_agent_that_comes_again_sees_what_it_set(
    rules: list[dict[str, Any]], setup: dict[str, Any], is_early: bool
) -> None:
    said = {"type": "agent_text", "agent": "A", "match": {"equals": "x"}}
    definitions = {"v": variable(said), "stop": variable(NEVER, {**NEVER, "agent": "A"})}
    definitions["stop"]["source"]["default"] = False
    assert bool(early(folder(definitions, {"A": ["v"]}, rules, **setup))) == is_early


def test_the_trigger_of_an_agent_that_nobody_asks_does_not_count() -> None:
    files = folder({"v": variable(NEVER)}, {"B": ["v"]}, [passing("A", "B"), passing("C", "B")])
    assert [problem.code for problem in examine(files)[1]] == ["W030", "W065"]


def test_a_rule_that_waits_for_what_comes_later_is_told_and_one_that_has_it_now_is_not() -> None:
    said = {"type": "agent_text", "agent": "B", "match": {"equals": "x"}}
    rules = [
        passing("A", "C", "v is true"),
        passing("B", "C", "v is true"),
        passing("A", "B", "v is false"),
    ]
    (told,) = early(folder({"v": variable(said, default=False)}, {}, rules))
    assert told.file == "Flow/handoffs.json" and "Rule 1" in told.message


def test_a_value_that_no_trigger_sets_is_told_once() -> None:
    rules = [passing("A", "B", "v is false"), passing("A", "terminate")]
    files = folder({"v": variable(NEVER), "w": variable()}, {"A": ["user_id"]}, rules)
    assert [each.code for each in examine(files)[1]] == ["W030", "W066", "W032"]


def told_with(code: dict[str, str]) -> list[str]:
    files = folder({"v": variable(), "w": variable()}, {"A": ["v"]}, CHAIN)
    found, _ = restore_folder("Flow", "Flow", files, code)
    return [problem.code for problem in check(found, frozenset())[1]]


def test_what_a_model_is_told_in_a_condition_is_used() -> None:
    asked = {**passing("A", "B", "The ${v} is ready."), "condition_type": "string_llm"}
    rules = [asked, passing("A", "C"), passing("B", "C")]
    files = folder({"v": variable(default=False)}, {}, rules)
    assert examine(files)[1] == []


@pytest.mark.parametrize(
    ("file", "key", "said"),
    [
        ("tools", "tools", {"agent": "A"}),
        ("tools", "lifecycle_tools", {"agent": "A", "trigger": "before_agent"}),
        ("hooks", "hooks", {"hook_agent": "all", "hook_type": "update_agent_state"}),
    ],
)
def test_tools_and_hooks_may_set_every_variable(file: str, key: str, said: dict[str, str]) -> None:
    rules = [passing("A", "B", "v is true"), passing("B", "C", "v is true")]
    rules += [passing("A", "terminate"), passing("B", "terminate")]
    files = folder({"v": variable()}, {"A": ["v"]}, rules)
    assert {each.code for each in examine(files)[1]} == {"W032", "W065"}
    at = {"filename" if file == "hooks" else "file": "f.py", "function": "f"}
    files[f"{file}.json"] = json.dumps({key: [{**said, **at}]})
    assert examine(files)[1] == []


def test_code_that_answers_may_set_every_variable() -> None:
    rules = [passing("A", "B", "v is true"), passing("B", "C", "v is true")]
    rules += [passing("A", "terminate"), passing("B", "terminate")]
    files = folder({"v": variable()}, {"A": ["v"]}, rules)
    engine = {"engine": {"type": "ag2", "file": "f.py", "function": "f"}}
    files["agents.json"] = json.dumps({**dict.fromkeys(AGENTS, {}), "A": engine})
    assert examine(files)[1] == []


def test_code_may_use_every_variable() -> None:
    assert told_with({}) == ["W065", "W066"]
    assert told_with({"tools/t.py": ""}) == ["W065"]


# --------------------------------------------------------------------- never a false alarm

NAMES = ("u", "v", "w")
agents = st.sampled_from(AGENTS)
turns = st.one_of(
    st.builds(
        lambda agent, word, value: {
            "type": "agent_text",
            "agent": agent,
            "match": {"equals": word},
            "value": value,
        },
        agents,
        st.sampled_from("xy"),
        st.booleans(),
    ),
    st.builds(
        lambda agent, count: {"type": "agent_turn_count", "agent": agent, "count": count},
        agents,
        st.integers(1, 2),
    ),
)
changes = st.builds(
    lambda equals: {"type": "context_changed", "variable": "w", "equals": equals}, st.booleans()
)


def variables(triggers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda found, default: variable(*found, default=default),
        st.lists(triggers, min_size=1, max_size=2),
        st.sampled_from([None, False]),
    )


parties = st.sampled_from([*AGENTS, "user"])
rules = st.builds(
    passing,
    parties,
    st.sampled_from([*AGENTS, "user", "terminate"]),
    st.none()
    | st.builds(
        lambda name, value: f"{name} is {value}",
        st.sampled_from(NAMES),
        st.sampled_from(["true", "false"]),
    ),
    st.booleans(),
)
setups = st.fixed_dictionaries(
    {
        "orchestration_pattern": st.sampled_from(["DefaultPattern", "RoundRobinPattern"]),
        "most": st.sampled_from([None, 1]),
        "startup_mode": st.sampled_from(["AgentDriven", "UserDriven"]),
        "human_in_the_loop": st.booleans(),
        "initial_agent": agents,
    }
)


@pytest.mark.doors
@settings(max_examples=150)
@given(
    st.fixed_dictionaries(
        {"u": variables(changes), "v": variables(turns | changes), "w": variables(turns)}
    ),
    st.lists(rules, min_size=2, max_size=8),
    setups,
    st.lists(st.sampled_from("xy"), min_size=12, max_size=12),
)
def test_what_is_said_never_to_happen_never_happens(
    definitions: dict[str, Any], found: list[Any], setup: dict[str, Any], words: list[str]
) -> None:
    files = folder(definitions, dict.fromkeys(AGENTS, [*NAMES]), found, **setup)
    conversation, problems = examine(files)
    assume(conversation is not None)
    told = [each.message for each in problems if each.code in ("W030", "W065")]
    talk = Talk(files)
    for word in words:
        decision = talk.workflow.decide(talk.state)
        for _, fact in decision.facts:
            assert isinstance(fact, RouteDecided)
            fired = [each.rule for each in fact.considered if each.fired]
            assert not any(said.startswith(f"Rule {n} ") for n in fired for said in told)
            talk.record(fact)
        speaker = to(decision)
        if speaker == "terminate":
            return
        if speaker == "user":
            talk.answer(word)
            continue
        assert f"No handoff leads to agent {speaker!r}." not in told
        for name in NAMES:
            if talk.state.values[name] is not None:
                unset = f"Agent {speaker!r} sees {name!r} before any trigger can set it."
                assert unset not in told
        talk.say(speaker, word)


@pytest.mark.parametrize(
    "source",
    [
        {"variables": ["x"]},
        {"state": "x"},
        {"state": "x.name"},
        {"retrieval": {"collection": "c", "query": "about {x.name}"}},
        {"retrieval": {"collection": "c", "query": "q", "filters": {"k": {"state": "x"}}}},
    ],
)
def test_what_sources_read_is_used(source: dict[str, Any]) -> None:
    x = {"type": "object", "source": {"type": "static", "value": {"name": "y"}}}
    files = {
        "agents.json": json.dumps({"A": {"context": {"sources": [source]}}}),
        "context_variables.json": json.dumps({"definitions": {"x": x}}),
    }
    assert examine(files)[1] == []
