"""Every kind of trigger: what it hears, what it sets, and how another kind is added."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from tests.support.checks import examined
from tests.support.folders import write_folder
from tests.support.programs import begin, drive, make_world
from tests.variables.declared import AT, Moment, ask, derived, hear, trigger, triggers_of
from turnloom.agents.events import AgentText, QuestionAnswered, TurnFinished, UserText
from turnloom.errors import UsageError
from turnloom.kernel.values import Json
from turnloom.log.events import RunStarted
from turnloom.log.spec import Fact
from turnloom.runtime.logic import FACTS
from turnloom.testing import ScriptedEngine
from turnloom.variables.events import ContextChanged, ContextRefused, TimerExpired, TimerSet
from turnloom.variables.logic.cycles import cycle_of
from turnloom.variables.logic.triggers import (
    SUBJECTS,
    TRIGGER_LOADERS,
    Listener,
    Seen,
    Topic,
    register,
)
from turnloom.variables.spec import UNCHANGED
from turnloom.variables.spec.triggers import Setting

STARTED = RunStarted("W", "1", "d", "/w", {}, {})


class Returned(Fact, frozen=True):
    """What a tool gave."""

    kind: ClassVar[str] = "tool.returned"
    tool: str
    result: Json = None


class Failed(Fact, frozen=True):
    """A tool that gave nothing."""

    kind: ClassVar[str] = "tool.failed"
    tool: str


def outcome(said: dict[str, Any], fact: Fact, **definition: Any) -> Any:
    """What a variable with one trigger becomes; `...` if it stays as it is."""
    changes = ask(triggers_of(derived("x", said, **definition)), fact, {"x": "before"})
    assert all(isinstance(change, ContextChanged) for change in changes)
    return changes[0].value if changes else ...


@pytest.mark.parametrize(
    ("said", "type", "text", "value"),
    [
        ({"capture": 1}, "string", "plan B", "B"),
        ({"capture": "name"}, "string", "plan B", "B"),
        ({"capture": 0}, "string", "so plan B", "plan B"),
        ({"capture": 1}, "integer", "plan 12", 12),
        ({"capture": 1}, "boolean", "plan yes", True),
    ],
)
def test_a_group_of_the_pattern_is_taken_and_read_as_the_type(
    said: dict[str, Any], type: str, text: str, value: Json
) -> None:
    one = trigger(regex=r"plan (?P<name>\w+)", **said)
    assert outcome(one, AgentText(1, "A", text), type=type) == value
    assert outcome(one, AgentText(1, "A", "nothing"), type=type) is ...


@pytest.mark.parametrize(("type", "text"), [("integer", "plan B"), ("boolean", "plan maybe")])
def test_a_group_that_is_not_of_the_type_is_refused(type: str, text: str) -> None:
    index = triggers_of(derived("x", trigger(regex=r"plan (\w+)", capture=1), type=type))
    (refused,) = hear(index, "A", text, {"x": None})
    assert isinstance(refused, ContextRefused)
    assert (refused.name, refused.writer) == ("x", "trigger:x[0]")
    assert type in refused.reason


def test_a_group_that_took_no_part_changes_nothing() -> None:
    one = trigger(regex=r"a(b)?", capture=1)
    assert outcome(one, AgentText(1, "A", "a"), type="string") is ...


@pytest.mark.parametrize(("taken", "fires"), [(1, False), (2, True), (3, False)])
def test_the_count_of_turns(taken: int, fires: bool) -> None:
    said = {"type": "agent_turn_count", "agent": "A", "count": 2}
    index = triggers_of(derived("x", said))
    fact = TurnFinished(9, "A")
    changes = index.derive(fact.kind, fact, Moment({}, {"A": taken, "B": 2}), set(), AT)
    assert bool(changes) is fires
    other = TurnFinished(9, "B")
    assert index.derive(other.kind, other, Moment({}, {"A": 2}), set(), AT) == []


RESULT = {"state": "all done", "tags": ["a", "b"], "deep": {"n": [{"ok": False}]}, "null": None}


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({}, True),
        ({"value": "yes"}, "yes"),
        ({"status": "any"}, True),
        ({"status": "error"}, ...),
        ({"path": "state"}, True),
        ({"path": "gone"}, ...),
        ({"path": "state", "equals": "all done"}, True),
        ({"path": "state", "equals": "all"}, ...),
        ({"path": "null", "equals": None}, True),
        ({"path": "deep.n.0.ok", "equals": False}, True),
        ({"path": "deep.n.0.ok", "equals": 0}, ...),
        ({"path": "deep.n.7.ok"}, ...),
        ({"path": "state", "contains": "done"}, True),
        ({"path": "tags", "contains": "b"}, True),
        ({"path": "tags", "contains": "c"}, ...),
        ({"path": "deep", "contains": "n"}, ...),
        ({"path": "state", "equals": "all done", "contains": "x"}, ...),
        ({"from": "deep.n.0"}, {"ok": False}),
        ({"from": "gone"}, ...),
        ({"from": "null"}, None),
    ],
)
def test_a_tool_that_returned(said: dict[str, Any], value: Any) -> None:
    one = {"type": "tool_response", "tool": "t", **said}
    assert outcome(one, Returned("t", RESULT)) == value
    assert outcome(one, Returned("other", RESULT)) is ...


@pytest.mark.parametrize(("status", "fires"), [("success", False), ("error", True), ("any", True)])
def test_a_tool_that_failed(status: str, fires: bool) -> None:
    said = {"type": "tool_response", "tool": "t", "status": status}
    assert (outcome(said, Failed("t")) is True) is fires


def test_an_answer_to_a_tool_is_applied_only_if_that_is_asked_for() -> None:
    fact = QuestionAnswered("q", {"form": {"plan": "B"}}, "u1", "t")
    said = {"type": "ui_response", "tool": "t", "response_key": "form.plan"}
    assert outcome(said, fact) is ...
    assert outcome({**said, "apply": "auto"}, fact) == "B"
    assert outcome({**said, "apply": "auto", "response_key": "form.gone"}, fact) is ...
    assert outcome({**said, "apply": "auto", "tool": "other"}, fact) is ...


@pytest.mark.parametrize(
    ("equals", "value", "fires"),
    [
        (True, True, True),
        (True, 1, False),
        (1, 1.0, True),
        (None, None, True),
        ({"a": [1]}, {"a": [1]}, True),
    ],
)
def test_another_variable_took_a_value(equals: Json, value: Json, fires: bool) -> None:
    said = {"type": "context_changed", "variable": "y", "equals": equals}
    assert (outcome(said, ContextChanged("y", value)) is True) is fires
    assert outcome(said, ContextChanged("z", value)) is ...


@pytest.mark.parametrize(
    ("since", "fact"),
    [
        ("run_start", STARTED),
        ("agent:A", TurnFinished(1, "A")),
        ("variable:y", ContextChanged("y", 1)),
    ],
)
@pytest.mark.parametrize(
    ("after", "seconds"),
    [(90, 90), (0.5, 0.5), ("PT1M30S", 90), ("P1DT1H", 90_000), ("p1w", 604_800)],
)
def test_a_timer_is_set_and_its_expiry_is_heard(
    since: str, fact: Fact, after: Any, seconds: float
) -> None:
    said = {"type": "timer_expired", "after": after, "since": since}
    index = triggers_of(derived("x", said))
    assert ask(index, fact) == [TimerSet("trigger:x[0]", AT + timedelta(seconds=seconds))]
    assert ask(index, UserText("user", "x")) == []
    (change,) = ask(index, TimerExpired("trigger:x[0]"), {"x": False})
    assert change == ContextChanged("x", True, False, "trigger:x[0]")
    assert ask(index, TimerExpired("trigger:x[1]"), {"x": False}) == []


def test_a_wish_for_a_value_of_another_type_is_refused_whoever_has_it() -> None:
    said = {"type": "tool_response", "tool": "t", "from": "n"}
    for value, refused in ((5, False), ("5", True), (True, True), (None, False)):
        index = triggers_of(derived("x", said, type="integer"))
        (change,) = ask(index, Returned("t", {"n": value}), {"x": 1})
        assert isinstance(change, ContextRefused) is refused


class Counted:
    """How often triggers were asked."""

    def __init__(self) -> None:
        self.asked = 0

    def wrap(self, listener: Listener) -> Listener:
        def read(fact: Any, seen: Seen) -> Any:
            self.asked += 1
            return listener.read(fact, seen)

        return listener._replace(read=read)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Triggers that are counted when they are asked."""
    counted = Counted()
    for name, kind in TRIGGER_LOADERS.items():

        def listen(trigger: Any, writer: str, kind: Any = kind) -> Listener:
            return counted.wrap(kind.listen(trigger, writer))

        monkeypatch.setitem(TRIGGER_LOADERS, name, kind._replace(listen=listen))
    return counted


def test_of_ten_thousand_variables_only_those_are_asked_that_can_change(counted: Counted) -> None:
    kinds: list[Any] = [
        lambda n: trigger("A", equals=f"word {n}"),
        lambda n: trigger(f"Agent{n}", contains="word"),
        lambda n: {"type": "agent_turn_count", "agent": f"Agent{n}", "count": 1},
        lambda n: {"type": "tool_response", "tool": f"tool{n}"},
        lambda n: {"type": "context_changed", "variable": f"x{n - 1}", "equals": "never"},
        lambda n: {"type": "timer_expired", "after": 1, "since": f"agent:Agent{n}"},
    ]
    many = [derived(f"x{n}", kinds[n % len(kinds)](n)) for n in range(10_000)]
    index = triggers_of(*many)
    for fact, asked in (
        (AgentText(1, "A", "word 600"), 1),
        (AgentText(1, "A", "no word"), 0),
        (AgentText(1, "Agent7", "word"), 1),
        (TurnFinished(1, "Agent8"), 1),
        (Returned("tool9"), 1),
        (ContextChanged("x9", 1), 1),
        (UserText("user", "word 600"), 0),
        (TimerExpired("trigger:x11[0]"), 1),
    ):
        counted.asked = 0
        ask(index, fact)
        assert counted.asked == asked, fact


def test_ten_thousand_variables_in_a_row_are_no_circle() -> None:
    row = {f"x{n}": [f"x{n + 1}"] for n in range(10_000)}
    assert cycle_of(row) == []
    assert len(cycle_of({**row, "x9999": ["x0"]})) == 10_001
    assert cycle_of({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}) == []
    assert cycle_of({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]


class Shouted(Setting):
    """Fires when a message is loud enough."""

    type: Literal["shouted"]
    agent: str
    marks: int = 1


def listen(trigger: Shouted, writer: str) -> Listener:
    """What it hears and reads."""

    def read(fact: Any, seen: Seen) -> Any:
        return trigger.value if fact.text.count("!") >= trigger.marks else UNCHANGED

    return Listener((("agent.text", trigger.agent),), read)


@pytest.fixture
def another_kind() -> Iterator[None]:
    register(Shouted, listen)
    yield
    del TRIGGER_LOADERS["shouted"]


def test_what_triggers_can_hear_happens_and_has_its_subject() -> None:
    facts = {fact.kind: fact for fact in FACTS}
    for kind, subject in SUBJECTS.items():
        assert not subject or subject in facts[kind].__struct_fields__


@pytest.mark.usefixtures("another_kind")
@pytest.mark.parametrize("deaf", [((("turn.started", "A"),), None), ((), ("turn.started", "A"))])
def test_a_kind_of_trigger_that_could_never_fire_is_refused(
    deaf: tuple[tuple[Topic, ...], Topic | None],
) -> None:
    def listen(trigger: Shouted, writer: str) -> Listener:
        return Listener(deaf[0], lambda fact, seen: trigger.value, restarts=deaf[1])

    register(Shouted, listen)
    with pytest.raises(UsageError, match=r"turn\.started"):
        triggers_of(derived("x", {"type": "shouted", "agent": "A"}))


FILES = {
    "agents.yaml": "A: {system_message: Hi.}",
    "handoffs.yaml": "- {source_agent: A, target_agent: A, handoff_type: after_work}",
    "orchestrator.yaml": "max_turns: 3",
    "context_variables.yaml": """
        definitions:
          loud: {type: string, source: {type: derived, triggers: [
            {type: shouted, agent: A, marks: 2, value: very, once: true}]}}
          after: {type: boolean, source: {type: derived, triggers: [
            {type: context_changed, variable: loud, equals: very}]}}
        """,
}


@pytest.mark.usefixtures("another_kind")
async def test_a_kind_of_trigger_from_elsewhere_is_one_like_the_others(tmp_path: Path) -> None:
    world = make_world(ScriptedEngine({"A": ["Oh!", "Oh!!", "Oh!!!"]}))
    run = await begin(world, write_folder(tmp_path, FILES))
    await drive(world, run)
    changes = [e.data for e in await world.read(run) if e.kind == "context.changed"]
    assert changes == [
        ContextChanged("loud", "very", None, "trigger:loud[0]"),
        ContextChanged("after", True, None, "trigger:after[0]"),
    ]


@pytest.mark.usefixtures("another_kind")
def test_a_kind_from_elsewhere_is_checked_like_the_others(tmp_path: Path) -> None:
    from_elsewhere = FILES["context_variables.yaml"]
    told = problems(tmp_path / "1", from_elsewhere.replace("marks: 2", "mraks: 2"))
    assert [each.code for each in told] == ["W010"] and "'marks'" in told[0].remedy
    told = problems(tmp_path / "2", from_elsewhere.replace("agent: A", "agent: Nobody"))
    assert [each.code for each in told] == ["W020"]
    told = problems(tmp_path / "3", from_elsewhere.replace("value: very", "value: 5"))
    assert [each.code for each in told] == ["W024"]


def test_a_kind_that_is_not_there_any_more_is_not_known(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, FILES["context_variables.yaml"])
    assert problem.code == "W012" and "'shouted'" in problem.message


def problems(where: Path, variables: str) -> list[Any]:
    folder = write_folder(where, {**FILES, "context_variables.yaml": variables})
    return examined(folder)[1]
