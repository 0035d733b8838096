"""Why a run of a flow is as it is: its timeline, its routes, and what its agents saw."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.explain.conftest import tells
from tests.flow.notes import Notes, bad, count, done, flow, note, results, undo
from tests.support.flows import FlowLives
from tests.support.plays import every
from turnloom import AgentStep, Answer, Flow, Message, Path, Retry, Task, from_literal, from_state
from turnloom.errors import UsageError
from turnloom.explain.logic.route import explain_any_route
from turnloom.explain.logic.timeline import timeline
from turnloom.explain.logic.turn import explain_turn
from turnloom.explain.spec.explanations import NOTHING_DECLARED
from turnloom.explain.spec.route import FlowRouteExplained
from turnloom.log.spec import Event


def everything() -> Flow[Notes]:
    """A flow that goes through everything, and fails at last."""
    built = flow().branch(lambda state: state.n, {0: done("none"), 1: done("one")})
    built.repeat_until(lambda state: state.n == 2, Path(count), max_iterations=5)
    built.fork(
        Path()
        .then(bad("flaky"), retry=Retry(1, delay=5, jitter=False))
        .on_failure([note("saved")]),
        done("side"),
        join=results,
    )
    built.await_approval("boss", context="Go on?", name="ok")
    return built.then(bad("last"), compensate=undo("last")).on_failure([note("told")])


@pytest.fixture
async def events() -> Sequence[Event]:
    return await FlowLives(everything(), Notes(), lambda asked: "approve").live()


def route(events: Sequence[Event], kind: str, number: int = 0) -> FlowRouteExplained:
    seqs = [event.seq for event in events if event.kind == kind]
    found = explain_any_route(events, seqs[number], NOTHING_DECLARED)
    assert isinstance(found, FlowRouteExplained) and found.seq == seqs[number]
    read = msgspec.convert(msgspec.json.decode(msgspec.json.encode(found)), FlowRouteExplained)
    assert read == found
    return found


async def test_the_timeline_has_steps_attempts_and_durations(events: Sequence[Event]) -> None:
    told = timeline(events)
    rows = {(each.what, each.who): each for each in told.rows}
    flaky = rows["step", "fork.0/flaky"]
    assert flaky.seconds == 5 and tells(flaky.note, "Doomed: flaky", "2")
    assert tells(rows["compensation", "branch:0/none~"].note, "undo_none")
    assert tells(rows["stop", "flow"].note, "last", "Doomed: last")
    assert tells(rows["question", "boss"].note, "boss answered", '"approve"')
    steps = [each.who for each in told.rows if each.what == "step"]
    assert steps == [
        *("first", "branch:0/none", "loop[1]/count", "loop[2]/count", "fork.0/flaky"),
        *("fork.1/side", "fork.0/!saved", "fork/results", "last", "!/told"),
    ]


async def test_why_a_branch_or_a_loop_went_on_as_it_did(events: Sequence[Event]) -> None:
    (branch,) = route(events, "branch.taken").went_by
    assert tells(branch, "0", "0")
    first, ended = route(events, "loop.passed"), route(events, "loop.ended")
    assert tells(first.decided, "1", "loop") and tells(first.came_of[0], "loop[2]/count")
    once, twice = [each.partition(": ")[2] for each in ended.went_by]
    assert once == first.decided and tells(twice, "2", "loop")


async def test_why_an_approval_led_where_it_led(events: Sequence[Event]) -> None:
    found = route(events, "approval.decided")
    assert tells(found.decided, "boss", "ok", "approve")
    asked, answered = found.went_by
    assert tells(asked, "boss", "Go on?") and tells(answered, "boss answered", '"approve"')
    assert tells(found.came_of[0], "last")


async def test_why_a_flow_stopped_and_what_was_made_up_for(events: Sequence[Event]) -> None:
    found = route(events, "flow.stopped")
    assert len(found.went_by) == 1
    assert tells(found.causes[0].says, "last", "Doomed: last")
    came_of = [
        ("undo_last", "last"),
        ("undo_side", "fork.1/side"),
        ("undo_none", "branch:0/none"),
        ("undo_first", "first"),
        ("!/told", '{"said":["told"]}'),
        ("last", "Doomed: last"),
    ]
    for line, values in zip(found.came_of, came_of, strict=True):
        assert tells(line, *values), line
    assert "raise Doomed(name)" in str(route(events, "step.failed", -1))


async def test_a_place_where_nothing_was_decided(events: Sequence[Event]) -> None:
    found = explain_any_route(events, 1, NOTHING_DECLARED)
    assert isinstance(found, FlowRouteExplained) and found.asked == 1 < found.seq
    with pytest.raises(UsageError, match=f"{len(events)}"):
        explain_any_route(events, len(events), NOTHING_DECLARED)


class Telling(AgentStep[Notes]):
    """An agent step that keeps what its engine is given."""

    thread = "talk"

    def __init__(self, tasks: list[Task]) -> None:
        async def answer(task: Task) -> Answer:
            tasks.append(task)
            return Answer(f"answer {len(tasks)}")

        self.engine = answer

    def instructions(self) -> str:
        return "Be brief.\nAlways."

    def user_prompt(self, state: Notes) -> str:
        return f"What after {len(state.said)} notes?"

    def apply(self, state: Notes, answer: Any, context: Any) -> Any:
        return {"said": [answer]}


class Writing(Telling):
    """One that says itself what its agent hears."""

    def build_messages(self, state: Notes, context: Any) -> Sequence[Message]:
        told = context.to_prompt_string() or "nothing"
        return [
            Message(0, "user", f"Given {told}"),
            Message(0, "Writing", "Hm."),
            *self.last(state),
        ]

    def last(self, state: Notes) -> Sequence[Message]:
        return [Message(0, "user", self.user_prompt(state))]


async def test_no_byte_of_a_prompt_is_unattributed() -> None:
    """With context, a thread, and messages of the step's own."""
    tasks: list[Task] = []
    context = [from_state("said"), from_literal("Always cite sources.")]
    built = flow()
    for number, kind in enumerate((Telling, Telling, Writing, Writing)):
        sources = context if number % 2 else []
        built.then(kind(tasks), name=f"{kind.__name__}{number}", context=sources)
    events = await FlowLives(built, Notes()).live()
    assert events[-1].kind == "run.finished"
    assert len(tasks) == len(every(events, "turn.started")) == 4
    for number, task in enumerate(tasks, 1):
        found = explain_turn(events, number)
        assert found.prompt.encode() == task.prompt.encode()
        assert "".join(segment.text for segment in found.segments) == task.prompt
        assert found.verified and not found.doubts
        assert sum(segment.tokens for segment in found.segments) == found.tokens
    onward = explain_turn(events, 1).onward
    assert onward is not None and tells(onward.reason, "Telling1")
    assert "Always cite sources." in tasks[1].prompt and "answer 1" in tasks[1].prompt
    assert "Given said" in tasks[3].prompt or "Always cite sources." in tasks[3].prompt
