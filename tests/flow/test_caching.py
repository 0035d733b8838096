"""Step result cache."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, Field, create_model

from tests.flow.scenes import Work, facts, flow_of, note, play
from tests.support.timed import Timed
from turnloom import AgentStep, Answer, Cache, Flow, Loom, StepContext, Task, Update
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


async def test_an_output_that_is_described_otherwise_is_another_matter() -> None:
    tasks: list[Task] = []

    async def engine(task: Task) -> Answer:
        tasks.append(task)
        return Answer(output={"words": "Hm."})

    def telling(text: str) -> Flow[Work]:
        words = Field(description=text)

        class Tell(AgentStep[Work, BaseModel]):
            output_type = create_model("Said", words=(str, words))

            def instructions(self) -> str:
                return "Tell."

            def user_prompt(self, state: Work) -> str:
                return "Tell."

            def apply(self, state: Work, answer: Any, context: StepContext) -> dict[str, Any]:
                return {"text": answer.words}

        return flow_of(Tell(), cache=True)

    async with Loom(store="memory", engine=engine) as app:
        for text in ("In short.", "In short.", "At length."):
            await app.run(telling(text))
    assert len(tasks) == 2


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


async def test_a_result_is_its_users_own_unless_it_is_shared(app: Loom) -> None:
    """Users do not see each other's results, and tenants not even those that are shared."""

    async def greet(state: Work, ctx: StepContext) -> dict[str, str]:
        return {"text": f"{ctx['user_id']} of {ctx['app_id']}"}

    async def texts(cache: bool | Cache) -> list[str]:
        flow = flow_of(greet, cache=cache)
        people = [("acme", "ann"), ("acme", "bob"), ("acme", "ann"), ("zeta", "bob")]
        ends = [await app.run(flow, Work(), app_id=each, user_id=user) for each, user in people]
        return [each.state.text for each in ends]

    own = ["ann of acme", "bob of acme", "ann of acme", "bob of zeta"]
    assert await texts(cache=True) == await texts(cache=Cache(60)) == own
    assert await texts(Cache(shared=True)) == [*["ann of acme"] * 3, "bob of zeta"]


async def test_a_shared_result_counts_to_the_end_of_its_time(timed: Timed) -> None:
    step = Costly()
    flow = flow_of(step, cache=Cache(60, shared=True))
    for later, taken in ((0, 1), (60, 1), (1, 2)):
        timed.clock.advance(timedelta(seconds=later))
        await timed.run(flow)
        assert step.taken == taken


async def test_other_undeclared_values_are_another_matter(app: Loom) -> None:
    """What a step reads without its having been declared counts as well."""

    async def write(state: Work, ctx: StepContext) -> None:
        ctx["tone"] = state.best

    async def read(state: Work, ctx: StepContext) -> dict[str, int]:
        return {"number": ctx["tone"]}

    async def forget(state: Work, ctx: StepContext) -> dict[str, int]:
        return {"best": 100}

    flow = flow_of(write, forget, read, cache=True)
    ends = [await app.run(flow, Work(best=number)) for number in (1, 2, 1)]
    assert [end.state.number for end in ends] == [1, 2, 1]


async def test_a_step_that_changes_what_it_reads_is_known_by_what_it_read(app: Loom) -> None:
    async def count(state: Work, ctx: StepContext) -> dict[str, int]:
        ctx["seen"] = ctx.get("seen", 0) + 1
        return {"number": ctx["seen"]}

    flow = flow_of(count, cache=True)
    first, again = await app.run(flow), await app.run(flow)
    assert first.state.number == again.state.number == 1
    (known,) = await facts(app, again.run_id, "step.completed")
    assert known.cached


async def test_other_decisions_are_another_matter(app: Loom) -> None:
    """A step reads what was decided, and by whom."""

    async def note_decision(state: Work, ctx: StepContext) -> dict[str, str]:
        return {"text": ctx.approvals["approval"].instructions}

    flow = flow_of(note("begin")).await_approval("ann").then(note_decision, cache=True)
    texts: list[str] = []
    for words in ("gently", "at once"):
        waiting = await app.run(flow, Work())
        assert waiting.question is not None
        run = app.handle(waiting.run_id)
        decision = {"decision": "approve", "instructions": words}
        await run.answer(waiting.question.id, decision, user_id="ann")
        await run.finished()
        texts.append((await run.outcome()).state.text)
    assert texts == ["gently", "at once"]


async def test_objects_that_live_in_one_process_only_are_not_compared(app: Loom) -> None:
    async def open_box(state: Work, ctx: StepContext) -> None:
        ctx["box"] = [object(), state.best]

    async def forget(state: Work, ctx: StepContext) -> dict[str, int]:
        return {"best": 100}

    async def look(state: Work, ctx: StepContext) -> dict[str, int]:
        return {"number": ctx["box"][1]}

    flow = flow_of(open_box, forget).then(look, cache=True)
    ends = [await app.run(flow, Work(best=number)) for number in (1, 2)]
    assert [end.state.number for end in ends] == [1, 2]
