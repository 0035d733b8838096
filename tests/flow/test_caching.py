"""Steps that would come to what they came to before."""

from datetime import timedelta
from typing import Any

import pytest

from tests.flow.scenes import Work, facts, flow_of, note, play
from tests.support.timed import Timed
from turnloom import Flow, Loom, StepContext, Update
from turnloom.explain.spec.timeline import Timeline


class Costly:
    """A step that counts how often it was taken."""

    def __init__(self) -> None:
        self.taken = 0

    async def run(self, state: Work, ctx: StepContext) -> Any:
        self.taken += 1
        if state.text == "fail":
            raise ValueError
        return Update(number=state.number + self.taken, confidence=0.9)


async def test_the_same_step_and_state_is_taken_once(app: Loom) -> None:
    step = Costly()
    flow = flow_of(step, cache=True)
    first, again = await app.run(flow, Work(number=10)), await app.run(flow, Work(number=10))
    assert first.state == again.state == Work(number=11) and step.taken == 1
    (known,) = await facts(app, again.run_id, "step.completed")
    assert known.cached and known.confidence == 0.9


@pytest.mark.parametrize("change", ["state", "step", "flow"])
async def test_another_state_step_or_flow_is_another_matter(app: Loom, change: str) -> None:
    step = Costly()
    await app.run(flow_of(step, cache=True))
    if change == "state":
        await app.run(flow_of(step, cache=True), Work(text="other"))
    elif change == "step":
        await app.run(flow_of(step, cache=True, name="other"))
    else:
        await app.run(Flow("other", Work).start_with(step, cache=True))
    assert step.taken == 2


@pytest.mark.parametrize("seconds", [60, 1])
async def test_a_result_counts_to_the_end_of_its_time(timed: Timed, seconds: int) -> None:
    step = Costly()
    flow = flow_of(step, cache=seconds)
    await timed.run(flow)
    timed.clock.advance(timedelta(seconds=seconds))
    await timed.run(flow)
    assert step.taken == 1
    timed.clock.advance(timedelta(seconds=1))
    await timed.run(flow)
    assert step.taken == 2
    await timed.run(flow)
    assert step.taken == 2


async def test_a_timeline_says_what_was_known_from_before(app: Loom) -> None:
    flow = flow_of(note("costly"), cache=True)
    rows: list[Any] = []
    for _ in range(2):
        told = await app.explain.timeline((await app.run(flow)).run_id)
        assert isinstance(told, Timeline)
        rows += [row for row in told.rows if (row.what, row.who) == ("step", "costly")]
    taken, known = rows
    assert known.note and known.note != taken.note


async def test_without_a_word_nothing_is_kept_and_failures_never_are(app: Loom) -> None:
    step = Costly()
    for _ in range(2):
        await app.run(flow_of(note("a"), step))
        await play(app, flow_of(step, cache=True), Work(text="fail"))
    assert step.taken == 4


async def test_what_was_known_is_joined_to_the_state_of_now(app: Loom) -> None:
    flow = flow_of(note("costly"), cache=True)
    assert (await app.run(flow, Work(notes=["a"]))).state.notes == ["a", "costly"]
    assert (await app.run(flow, Work(notes=["a"]))).state.notes == ["a", "costly"]


async def test_other_variables_are_another_matter(app: Loom) -> None:
    step = Costly()
    for tier in ("gold", "gold", "iron"):
        source = {"type": "static", "value": tier}
        variables = {"definitions": {"tier": {"type": "string", "source": source}}}
        await app.run(Flow("work", Work, variables=variables).start_with(step, cache=True))
    assert step.taken == 2
