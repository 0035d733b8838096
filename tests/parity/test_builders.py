"""Nothing that a builder is told is dropped: said twice, it adds to what is there or is refused."""

import inspect
from collections.abc import Callable
from typing import Any, Self

import pytest
from pydantic import BaseModel

import turnloom
from tests.flow.scenes import Work, note
from tests.reaction.sayings import SAYINGS, engine, known
from turnloom import AgentStep, DefinitionError, Flow, Path
from turnloom.agents.spec import Answer, Task
from turnloom.errors import UsageError
from turnloom.flow.spec.steps import agent_of
from turnloom.reaction.spec.builder import AgentBuilder


class Watch:
    """A component."""

    async def around_call(self, task: Task, call_next: Callable[[Task], Any]) -> Answer:
        return await call_next(task)


class Ask(AgentStep[Work]):
    """An agent step."""

    def user_prompt(self, state: Work) -> str:
        return "Well?"

    def apply(self, state: Work, answer: Any, context: Any) -> dict[str, Any]:
        return {"text": answer}


def public(kind: type) -> set[str]:
    """The calls of a builder."""
    return {
        name
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def is_builder(kind: Any) -> bool:
    """Whether a class is told things call by call: it gives itself back, and is no value."""
    if not isinstance(kind, type) or issubclass(kind, BaseModel | tuple):
        return False
    given = [getattr(kind, name).__annotations__.get("return") for name in public(kind)]
    return Self in given


def test_every_builder_is_known() -> None:
    exported = {getattr(turnloom, name) for name in turnloom.__all__}
    assert {each for each in exported if is_builder(each)} == {AgentBuilder, AgentStep, Flow, Path}


def refuses(call: Callable[[], Any]) -> bool:
    """Whether something is refused, at once or by the check."""
    try:
        call()
    except (UsageError, DefinitionError):
        return True
    return False


# ------------------------------------------------------------------ agents on boards

# Calls of which another one adds to what is there; of all others, the second is refused.
ADDING = {"consumes", "publishes", "with_engines", "with_tools", "with_components", "labels"}
OF_BOARDS = {name.partition(".")[0] for name in SAYINGS if name[0].islower()}


def test_every_call_of_an_agent_on_a_board_is_tried() -> None:
    assert public(AgentBuilder) - {"member"} == OF_BOARDS


@pytest.mark.parametrize("call", sorted(OF_BOARDS))
def test_what_is_said_again_of_an_agent_on_a_board_is_refused_or_adds(call: str) -> None:
    """The same words once more are refused, or count; other words are refused, or add."""
    for option in (each for each in SAYINGS if each.startswith(f"{call}.")):
        say = SAYINGS[option].say
        agent = AgentBuilder("lead", known(), lambda: None)
        once = say(agent).member()
        if not refuses(lambda agent=agent, say=say: say(agent)):
            assert call in ADDING and (agent.member() != once or call == "labels")


# ------------------------------------------------------------------ agents of steps

# How each call of an agent step is made, and another one that adds to it, or is refused.
STEPS: dict[str, tuple[Callable[[Ask], Ask], Callable[[Ask], Ask] | None]] = {
    "with_engines": (lambda s: s.with_engines(engine), lambda s: s.with_engines(engine)),
    "with_components": (
        lambda s: s.with_components(Watch()),
        lambda s: s.with_components(Watch()),
    ),
    "labels": (lambda s: s.labels("one"), lambda s: s.labels("two")),
    "best_of": (lambda s: s.best_of(2, len), None),
    "max_concurrency": (lambda s: s.max_concurrency(2), None),
}
WRITTEN = {"instructions", "user_prompt", "build_messages", "apply"}


def test_every_call_of_an_agent_step_is_tried() -> None:
    assert public(AgentStep) - WRITTEN == set(STEPS)


@pytest.mark.parametrize("call", STEPS)
def test_what_is_said_again_of_an_agent_step_is_refused_or_adds(call: str) -> None:
    say, more = STEPS[call]
    step = Ask()
    once = agent_of(say(step))
    assert once != agent_of(Ask()), "it changes nothing"
    if more is None:
        assert refuses(lambda: say(step)) and agent_of(step) == once
    else:
        assert agent_of(more(step)) not in (once, agent_of(Ask()))


@pytest.mark.parametrize("call", STEPS)
def test_what_is_said_of_one_step_is_not_said_of_another(call: str) -> None:
    STEPS[call][0](Ask())
    assert agent_of(Ask()) == agent_of(AgentStep[Work]())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: s.with_engines(),
        lambda s: s.with_engines("gpt"),
        lambda s: s.with_engines(5),
        lambda s: s.with_components(),
        lambda s: s.with_components(object()),
        lambda s: s.with_components(Watch),
        lambda s: s.labels(),
        lambda s: s.labels(""),
        lambda s: s.best_of(1, len),
        lambda s: s.best_of(2, "len"),
        lambda s: s.best_of(2, lambda one, two: 1.0),
        lambda s: s.max_concurrency(0),
        lambda s: s.max_concurrency(True),
    ],
)
def test_what_cannot_mean_anything_is_refused_and_changes_nothing(wrong: Any) -> None:
    step = Ask()
    with pytest.raises(UsageError):
        wrong(step)
    assert agent_of(step) == agent_of(Ask())


def test_a_component_stands_around_a_step_once() -> None:
    watch = Watch()
    with pytest.raises(UsageError):
        Ask().with_components(watch).with_components(watch)


@pytest.mark.parametrize("call", STEPS)
def test_a_step_of_a_flow_that_is_built_does_not_change(call: str) -> None:
    step = Ask()
    Flow("flow", Work).start_with(step).finally_(note("end"))
    with pytest.raises(UsageError):
        STEPS[call][0](step)


# ------------------------------------------------------------------ flows and paths

Build = Callable[[Any], Any]

# How each call of a path is made; `True` says that another one of it adds to the path.
PATHS: dict[str, tuple[Build, bool]] = {
    "then": (lambda path: path.then(note("b")), True),
    "branch": (
        lambda path: path.branch(lambda s: s.number, {1: note("c")}, otherwise=note("d")),
        True,
    ),
    "fork": (lambda path: path.fork(note("e"), note("f"), join=note("g")), True),
    "repeat_until": (lambda path: path.repeat_until(lambda s: True, note("h")), True),
    "await_approval": (lambda path: path.await_approval("boss"), True),
    "on_failure": (lambda path: path.on_failure(note("i")), False),
    "complete": (lambda path: path.complete(), False),
}
FLOWS = {
    "start_with": (lambda flow: flow.start_with(note("a")), False),
    "finally_": (lambda flow: flow.finally_(note("z")), False),
    **PATHS,
}
# What a builder is asked, and not told.
ASKED = {"as_part", "check", "to_mermaid"}


def test_every_call_of_flows_and_paths_is_tried() -> None:
    assert public(Path) - ASKED == set(PATHS)
    assert public(Flow) - ASKED == set(FLOWS)


def in_a_flow(path: Path) -> Flow[Any]:
    """A flow whose fork has a path."""
    begun = Flow("flow", Work).start_with(note("first"))
    return begun.fork(path, note("other"), join=note("join")).finally_(note("last"))


def text(path: Path) -> str:
    """What runs of a flow with this path are pinned to; the same names are told apart."""
    return in_a_flow(path).plan.text


@pytest.mark.parametrize("call", PATHS)
def test_what_is_said_again_of_a_path_is_refused_or_adds(call: str) -> None:
    say, adds = PATHS[call]
    nodes = len(say(Path(note("a"))).line.nodes)
    twice = say(say(Path(note("a"))))
    if adds:
        assert len(twice.line.nodes) == nodes + 1
    else:
        with pytest.raises(DefinitionError) as refused:
            in_a_flow(twice)
        assert "W103" in [each.code for each in refused.value.diagnostics]


@pytest.mark.parametrize("call", ["start_with", "finally_", "on_failure"])
def test_what_can_be_said_once_of_a_flow_is_refused_again(call: str) -> None:
    def build() -> Any:
        flow = Flow("flow", Work).start_with(note("first"))
        if call == "start_with":
            return flow.start_with(note("again")).finally_(note("last"))
        said = FLOWS[call][0](flow)
        return FLOWS[call][0](said).plan

    assert refuses(build)


@pytest.mark.parametrize("call", PATHS)
def test_a_path_of_a_flow_that_is_built_does_not_change(call: str) -> None:
    path = Path(note("a"))
    built = in_a_flow(path)
    before = built.plan.text
    with pytest.raises(UsageError):
        PATHS[call][0](path)
    assert built.plan.text == before and len(path.line.nodes) == 1


def test_a_path_may_be_part_of_two_flows() -> None:
    path = Path(note("a"))
    assert text(path) == text(path)


def given_as_a_path() -> dict[str, Callable[[Any], Any]]:
    """Every way in which a path can be given to a flow."""
    begun = Flow("outer", Work).start_with(note("first"))
    return {
        "branch": lambda it: begun.branch(lambda s: s.number, {1: it}, otherwise=note("b")),
        "otherwise": lambda it: begun.branch(lambda s: s.number, {1: note("b")}, otherwise=it),
        "fork": lambda it: begun.fork(it, note("b"), join=note("c")),
        "repeat_until": lambda it: begun.repeat_until(lambda s: True, it),
        "on_rejection": lambda it: begun.await_approval("boss", on_rejection=it),
        "on_timeout": lambda it: begun.await_approval("boss", timeout=1, on_timeout=it),
        "on_failure": lambda it: begun.on_failure(it),
        "a step's on_failure": lambda it: begun.then(note("b"), on_failure=it),
        "on_low_confidence": lambda it: begun.then(
            note("b"), require_confidence=0.5, on_low_confidence=it
        ),
        "on_failure of a path": lambda it: begun.fork(
            Path(note("b")).on_failure(it), note("c"), join=note("d")
        ),
    }


@pytest.mark.parametrize("way", given_as_a_path())
def test_a_flow_is_no_path(way: str) -> None:
    inner = Flow("inner", Work, timeout=5).start_with(note("x")).finally_(note("y"))
    with pytest.raises(DefinitionError) as refused:
        given_as_a_path()[way](inner).finally_(note("last"))
    assert [each.code for each in refused.value.diagnostics if each.severity == "error"] == ["W130"]


def test_a_flow_is_no_step() -> None:
    inner = Flow("inner", Work).start_with(note("x")).finally_(note("y"))
    with pytest.raises(DefinitionError) as refused:
        Flow("outer", Work).start_with(inner, name="inner").finally_(note("last"))
    assert [each.code for each in refused.value.diagnostics] == ["W121"]


@pytest.mark.parametrize(
    "more",
    [
        Path(note("join")).on_failure(note("x")),
        Path(note("join")).complete(),
        Path(note("join"), note("x")),
        Flow("inner", Work, timeout=5).start_with(note("join")).on_failure(note("x")),
    ],
)
def test_a_path_that_joins_is_one_step_and_nothing_that_would_be_dropped(more: Any) -> None:
    begun = Flow("outer", Work).start_with(note("first")).fork(note("a"), note("b"), join=more)
    with pytest.raises(DefinitionError) as refused:
        begun.finally_(note("last"))
    assert [each.code for each in refused.value.diagnostics] == ["W121"]
