"""Paths of which one is walked."""

from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.flow.scenes import Work, facts, failing, flow_of, note, play, taken
from turnloom import Flow, Loom, Path, StepContext, complete


def branching(**more: Any) -> Flow[Work]:
    cases = {"a": [note("one"), note("two")], "b": note("three")}
    return flow_of(note("begin")).branch(lambda state: state.text, cases, **more)


@pytest.mark.parametrize(
    ("text", "walked"), [("a", ["one", "two"]), ("b", ["three"]), ("c", ["other"])]
)
async def test_only_the_path_of_the_value_is_walked_and_the_paths_are_one_again(
    app: Loom, text: str, walked: list[str]
) -> None:
    flow = branching(otherwise=note("other")).finally_(note("end"))
    outcome = await app.run(flow, Work(text=text))
    assert outcome.state.notes == ["begin", *walked, "end"]
    (branch,) = await facts(app, outcome.run_id, "branch.taken")
    assert branch.value == text and branch.case == (text if text in "ab" else "otherwise")


async def test_a_value_without_a_path_goes_on_where_the_paths_would_be_one_again(
    app: Loom,
) -> None:
    outcome = await app.run(branching().finally_(note("end")), Work(text="c"))
    assert outcome.state.notes == ["begin", "end"]
    (branch,) = await facts(app, outcome.run_id, "branch.taken")
    assert (branch.value, branch.path) == ("c", "")


async def test_a_value_without_a_path_fails_where_nothing_follows(app: Loom) -> None:
    outcome = await play(app, branching(), Work(text="c"))
    assert outcome.status == "failed" and outcome.failure is not None
    assert "'branch'" in outcome.failure.message and "'c'" in outcome.failure.message


async def test_a_path_that_completes_ends_the_flow(app: Loom) -> None:
    cases = {"a": [note("one"), complete()], "b": Path().then(note("two")).complete()}
    flow = Flow("work", Work).start_with(note("begin")).branch(lambda state: state.text, cases)
    flow.then(note("end"))
    for text, walked in (("a", ["one"]), ("b", ["two"]), ("c", ["end"])):
        outcome = await app.run(flow, Work(text=text))
        assert outcome.status == "finished" and outcome.state.notes == ["begin", *walked]


async def test_true_is_not_one(app: Loom) -> None:
    flow = flow_of(note("a")).branch(
        lambda state: state.number == 1, {True: note("yes"), False: note("no")}
    )
    assert (await app.run(flow, Work(number=1))).state.notes == ["a", "yes"]
    flow = flow_of(note("b")).branch(lambda state: True, {1: note("one")}, otherwise=note("no"))
    assert (await app.run(flow)).state.notes == ["b", "no"]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Painted(BaseModel):
    model_config = ConfigDict(frozen=True)

    colour: Colour = Colour.RED
    done: str = ""


async def test_a_branch_goes_by_an_enum(app: Loom) -> None:
    def paint(name: str) -> Any:
        async def step(state: Painted, ctx: StepContext) -> dict[str, Any]:
            return {"done": name}

        return step

    flow = (
        Flow("paint", Painted)
        .start_with(paint(""))
        .branch(
            lambda state: state.colour,
            {Colour.RED: Path().then(paint("r"), name="r"), Colour.BLUE: [paint("b")]},
        )
    )
    assert (await app.run(flow, Painted(colour=Colour.BLUE))).state.done == "b"
    assert (await app.run(flow, Painted())).state.done == "r"


async def test_one_step_may_stand_in_two_paths_of_a_branch(app: Loom) -> None:
    flow = flow_of(note("a")).branch(
        lambda state: state.number, {0: note("same"), 1: [note("same"), note("more")]}
    )
    assert (await app.run(flow, Work(number=1))).state.notes == ["a", "same", "more"]


async def test_branches_nest(app: Loom) -> None:
    inner = Path().branch(lambda state: state.text, {"x": note("x"), "y": note("y")})
    flow = flow_of(note("a")).branch(lambda state: state.number, {1: inner}).finally_(note("end"))
    outcome = await app.run(flow, Work(number=1, text="y"))
    assert outcome.state.notes == ["a", "y", "end"]
    assert await taken(app, outcome.run_id) == ["a", "branch:1/branch:y/y", "end"]


async def test_a_choice_that_fails_fails_the_flow(app: Loom) -> None:
    flow = flow_of(note("a")).branch(lambda state: 1 / 0, {1: note("b")}).then(note("c"))
    outcome = await play(app, flow)
    assert outcome.failure is not None and outcome.failure.error == "ZeroDivisionError"
    assert outcome.failure.step == "branch"


async def test_a_failure_in_a_path_is_a_failure_of_the_flow(app: Loom) -> None:
    flow = flow_of(note("a")).branch(lambda state: 1, {1: failing("b")}).then(note("c"))
    outcome = await play(app, flow)
    assert outcome.status == "failed" and outcome.state.notes == ["a"]


async def test_a_branch_may_have_a_name(app: Loom) -> None:
    flow = flow_of(note("a")).branch(lambda state: 1, {1: note("b")}, name="kind")
    outcome = await app.run(flow)
    assert await taken(app, outcome.run_id) == ["a", "kind:1/b"]
