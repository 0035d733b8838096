"""Steps that are not sure enough."""

from typing import Any

import pytest

from tests.flow.scenes import Work, facts, note, play
from turnloom import Flow, Loom, Path, StepContext, Update, complete


def sure(confidence: float | None) -> Any:
    async def guess(state: Work, ctx: StepContext) -> Update[Work]:
        return Update(text="a guess", confidence=confidence)

    return guess


def flow_with(confidence: float | None, low: Any, **more: Any) -> Flow[Work]:
    flow = Flow("work", Work).start_with(
        sure(confidence), require_confidence=0.8, on_low_confidence=low, **more
    )
    return flow.finally_(note("end"))


async def test_below_the_threshold_the_low_path_is_walked_and_the_flow_goes_on(app: Loom) -> None:
    outcome = await app.run(flow_with(0.79, [note("check"), note("mend")]))
    assert outcome.state.notes == ["check", "mend", "end"] and outcome.state.text == "a guess"
    first, *_ = await facts(app, outcome.run_id, "step.completed")
    assert (first.confidence, first.is_unsure) == (0.79, True)


@pytest.mark.parametrize("confidence", [0.8, 1, None])
async def test_at_the_threshold_above_it_or_without_a_word_it_is_not(
    app: Loom, confidence: float | None
) -> None:
    outcome = await app.run(flow_with(confidence, note("check")))
    assert outcome.state.notes == ["end"]


async def test_the_low_path_may_end_the_flow(app: Loom) -> None:
    outcome = await app.run(flow_with(0.1, [note("check"), complete()]))
    assert outcome.status == "finished" and outcome.state.notes == ["check"]
    outcome = await app.run(flow_with(0.1, Path(note("check")).complete()))
    assert outcome.state.notes == ["check"]


async def test_being_unsure_is_no_failure(app: Loom) -> None:
    outcome = await play(
        app, flow_with(0.1, note("check"), compensate=note("undo"), on_failure=[note("handle")])
    )
    assert outcome.status == "finished" and outcome.state.notes == ["check", "end"]
    assert not await facts(app, outcome.run_id, "step.failed", "step.compensated")
