"""A retried run gives a step that failed for good all of its attempts again."""

from datetime import timedelta
from typing import Any

import pytest

from tests.flow.ledgers import Ledger, Trip, acting, undoing
from tests.support.timed import Timed
from turnloom import AgentStep, Answer, AssembledContext, Flow, Loom, Retry, StepContext, Task


def failing(fails: list[int]) -> Any:
    """A step that fails as often as a number says; it notes its attempts there."""

    async def shaky(state: Trip, ctx: StepContext) -> dict[str, Any]:
        fails[0] -= 1
        fails.append(ctx.attempt)
        if fails[0] >= 0:
            raise ValueError("not yet")
        return {"said": ["done"]}

    return shaky


@pytest.mark.parametrize("undo", [False, True])
async def test_a_step_has_all_of_its_attempts_again(app: Loom, undo: bool) -> None:
    fails, ledger = [5], Ledger()
    config = {"compensate": undoing(ledger, "order")} if undo else {}
    flow = Flow("tries", Trip).start_with(acting(ledger, "order"), **config)
    run = await app.start(flow.then(failing(fails), retry=Retry(2, delay=0)), Trip())
    assert (await run.outcome()).status == "failed"
    assert fails[1:] == [1, 2, 3]
    await run.retry()
    assert (await run.outcome()).status == "finished"
    assert fails[4:] == [3, 4, 5], "the last attempt is entered again, and two follow"
    assert (await app.history.replay(run.id)).divergence is None


async def test_it_fails_again_after_as_many(app: Loom) -> None:
    fails = [100]
    flow = Flow("never", Trip).start_with(failing(fails), retry=Retry(1, delay=0))
    run = await app.start(flow, Trip())
    for _ in range(3):
        assert (await run.outcome()).status == "failed"
        await run.retry()
    assert (await run.outcome()).status == "failed"
    assert fails[1:] == [1, 2, 2, 3, 3, 4, 4, 5]


async def test_delays_begin_again(timed: Timed) -> None:
    fails = [100]
    delays = Retry(2, delay=10, factor=2, jitter=False)
    run = await timed.start(Flow("late", Trip).start_with(failing(fails), retry=delays), Trip())
    assert await waits(timed, run) == [10, 20]
    end = len(await timed.history.events(run.id))
    await run.retry()
    assert await waits(timed, run, end) == [10, 20]


async def waits(timed: Timed, run: Any, after: int = 0) -> list[float]:
    """The delays of a run after a position, up to its failure."""
    found = list[float]()
    async for event in run.events(after):
        if event.kind == "step.retried":
            found.append((event.data.due - event.at).total_seconds())
        if event.kind == "run.paused":
            timed.clock.time = event.data.due + timedelta(seconds=1)
            await timed.resume(run.id)
    return found


def quoting(asked: list[str], prices: Any) -> type[AgentStep[Trip]]:
    """A step whose agent is asked for a price, which `prices` reads."""

    async def agent(task: Task) -> Answer:
        asked.append("?")
        return Answer("5 coins")

    class Quote(AgentStep[Trip]):
        engine = staticmethod(agent)

        def user_prompt(self, state: Trip) -> str:
            return "How much is it?"

        def apply(self, state: Trip, answer: str, context: AssembledContext) -> dict[str, Any]:
            return {"cost": prices(answer)}

    return Quote


async def test_an_answer_that_cannot_be_applied_is_kept_for_corrected_code(app: Loom) -> None:
    asked: list[str] = []
    run = await app.start(Flow("quote", Trip).start_with(quoting(asked, int)()), Trip())
    for _ in range(2):
        assert (await run.outcome()).status == "failed"
        await run.retry()
    assert (await run.outcome()).status == "failed"
    assert asked == ["?"], "the same answer fails in the same way"
    await run.retry("Quote")
    assert (await run.outcome()).status == "failed"
    assert asked == ["?", "?"], "the step is done again, so its model is asked again"

    def first_word(answer: str) -> int:
        return int(answer.split()[0])

    app.register_flow(Flow("quote", Trip).start_with(quoting(asked, first_word)()))
    await run.retry()
    outcome = await run.outcome()
    assert outcome.status == "finished" and outcome.state.cost == 5
    assert asked == ["?", "?"]
