"""Paths that are walked again and again."""

from typing import Any

import pytest

from tests.flow.scenes import Work, facts, flow_of, note, play, taken
from turnloom import Flow, FlowFailed, Loom, Path, StepContext, complete


async def count(state: Work, ctx: StepContext) -> dict[str, Any]:
    return {"number": state.number + 1}


@pytest.mark.parametrize(
    ("goal", "most", "passes", "holds"),
    [(1, 5, 1, True), (3, 5, 3, True), (5, 5, 5, True), (9, 5, 5, False), (9, 1, 1, False)],
)
async def test_a_loop_ends_when_its_condition_holds_or_after_so_many_passes(
    app: Loom, goal: int, most: int, passes: int, holds: bool
) -> None:
    flow = flow_of(note("a")).repeat_until(
        lambda state: state.number >= goal, count, max_iterations=most, name="climb"
    )
    outcome = await app.run(flow.finally_(note("end")))
    assert outcome.state.number == passes and outcome.state.notes == ["a", "end"]
    (ended,) = await facts(app, outcome.run_id, "loop.ended")
    assert (ended.loop, ended.passes) == ("climb", passes)
    assert (ended.reason == "max_iterations") == (not holds)
    held = [each.held for each in await facts(app, outcome.run_id, "loop.passed")]
    assert held == [False] * (passes - 1) + [holds]


async def test_the_path_is_walked_once_before_anybody_asks(app: Loom) -> None:
    flow = flow_of(note("a")).repeat_until(lambda state: True, count)
    assert (await app.run(flow)).state.number == 1


async def test_the_counter_of_an_inner_loop_begins_afresh(app: Loom) -> None:
    inner = Path().repeat_until(lambda state: False, count, max_iterations=3, name="inner")
    flow = flow_of(note("a")).repeat_until(
        lambda state: state.number >= 6, inner, max_iterations=4, name="outer"
    )
    outcome = await app.run(flow)
    assert outcome.state.number == 6
    places = await taken(app, outcome.run_id)
    assert places[1:] == [
        f"outer[{outer}]/inner[{inner}]/count" for outer in (1, 2) for inner in (1, 2, 3)
    ]
    ended = await facts(app, outcome.run_id, "loop.ended")
    assert [(each.loop, each.passes) for each in ended] == [
        ("inner", 3),
        ("inner", 3),
        ("outer", 2),
    ]


async def test_a_path_may_end_the_flow_from_within_a_loop(app: Loom) -> None:
    body = Path(count).branch(lambda state: state.number == 2, {True: [note("enough"), complete()]})
    flow = flow_of(note("a")).repeat_until(lambda state: False, body.then(note("more")))
    outcome = await app.run(flow.finally_(note("end")))
    assert outcome.status == "finished" and outcome.state.notes == ["a", "more", "enough"]


async def test_a_loop_begins_a_path(app: Loom) -> None:
    loop = Path().repeat_until(lambda state: state.number >= 2, count)
    flow = flow_of(note("a")).branch(lambda state: 1, {1: loop}).finally_(note("end"))
    assert (await app.run(flow)).state.number == 2


async def test_a_condition_that_fails_fails_the_flow(app: Loom) -> None:
    flow = flow_of(note("a")).repeat_until(lambda state: state.colour, count, name="climb")
    outcome = await play(app, flow)
    assert outcome.failure is not None and outcome.failure.error == "AttributeError"
    assert outcome.failure.step == "climb[1]"
    assert "'climb'" in outcome.failure.what and "1" in outcome.failure.what
    with pytest.raises(FlowFailed) as raised:
        await app.run(flow)
    assert outcome.failure.what in str(raised.value) and "AttributeError" in str(raised.value)
    assert outcome.failure.what in (await app.history.events(outcome.run_id))[-1].data.error


async def test_a_long_loop_ends(app: Loom) -> None:
    flow = flow_of(note("a")).repeat_until(
        lambda state: state.number == 200, count, max_iterations=200
    )
    assert (await app.run(flow)).state.number == 200


async def test_a_loop_may_hold_a_fork(app: Loom) -> None:
    body = Path(count).fork(note("left"), note("right"), join=note("join"))
    flow: Flow[Work] = flow_of(note("a")).repeat_until(lambda state: state.number == 2, body)
    outcome = await app.run(flow)
    assert outcome.state.notes == ["a", *["left", "right", "join"] * 2]
