"""What steps are, and what they are told beside the state."""

import asyncio
import threading
from typing import Any

from tests.flow.scenes import SOON, Sees, Work, facts, failing, flow_of, note, play, taken
from turnloom import Flow, Loom, StepContext, Update, UsageError, use_ui_tool


async def test_a_step_is_told_where_it_stands(app: Loom) -> None:
    step = Sees(fails=1)
    outcome = await app.run(flow_of(note("a"), step, retry=1, name="look"))
    first, second = step.contexts
    assert (first.run_id, first.step, first.attempt) == (outcome.run_id, "look", 1)
    assert (second.step, second.attempt) == ("look", 2)
    assert first.idempotency_key == second.idempotency_key
    assert first.execution_id != second.execution_id
    assert first.failure is None and not first.paths and not first.approvals
    assert repr(first) == "StepContext(step='look', attempt=1)"


async def test_two_steps_have_two_keys(app: Loom) -> None:
    first, second = Sees(), Sees()
    await app.run(flow_of(first, second, name="second"))
    (one,), (other,) = first.contexts, second.contexts
    assert one.idempotency_key != other.idempotency_key


async def test_an_effect_is_done_once_whatever_the_attempt(app: Loom) -> None:
    paid: list[str] = []

    async def pay(state: Work, ctx: StepContext) -> dict[str, Any]:
        receipt = await ctx.once("charge", lambda: paid.append("9.50") or f"receipt {len(paid)}")
        if ctx.attempt < 3:
            raise ConnectionError("the answer was lost")
        return {"text": receipt}

    outcome = await app.run(flow_of(pay, retry=2))
    assert outcome.state.text == "receipt 1" and paid == ["9.50"]


async def test_a_plain_function_works_in_a_thread(app: Loom) -> None:
    seen: list[int] = []

    def slow(state: Work, ctx: StepContext) -> dict[str, Any]:
        seen.append(threading.get_ident())
        return {"number": state.number + 1}

    outcome = await app.run(flow_of(slow))
    assert outcome.state.number == 1 and seen != [threading.get_ident()]


async def test_a_class_is_a_step_by_its_run(app: Loom) -> None:
    class Doubles:
        async def run(self, state: Work, ctx: StepContext) -> dict[str, Any]:
            return {"number": state.number * 2}

    class Adds:
        def __init__(self, amount: int) -> None:
            self._amount = amount

        def run(self, state: Work, ctx: StepContext) -> dict[str, Any]:
            return {"number": state.number + self._amount}

    outcome = await app.run(flow_of(Doubles, Adds(3)), Work(number=2))
    assert outcome.state.number == 7
    assert await taken(app, outcome.run_id) == ["Doubles", "Adds"]


async def test_one_step_is_used_twice_under_two_names(app: Loom) -> None:
    flow = Flow("work", Work).start_with(note("look"), name="first").then(note("look"))
    outcome = await app.run(flow)
    assert await taken(app, outcome.run_id) == ["first", "look"]


async def test_a_flow_without_a_last_step_runs(app: Loom) -> None:
    outcome = await app.run(Flow("work", Work).start_with(note("a")).then(note("b")))
    assert outcome.status == "finished" and outcome.state.notes == ["a", "b"]


async def test_a_step_asks_a_person_and_is_entered_again_with_the_answer(app: Loom) -> None:
    entered: list[int] = []

    async def ask(state: Work, ctx: StepContext) -> dict[str, Any]:
        entered.append(ctx.attempt)
        told = await ctx.once("note", lambda: len(entered))
        answer = await use_ui_tool("colour", {"question": "Which colour?"})
        return {"text": answer, "number": told}

    run = await app.start(flow_of(ask))
    waiting = await run.outcome()
    assert waiting.status == "waiting" and waiting.question is not None
    assert (waiting.question.prompt, waiting.question.tool) == ("Which colour?", "colour")
    await run.answer(waiting.question.id, "green")
    outcome = await run.outcome()
    assert (outcome.status, outcome.state.text, outcome.state.number) == ("finished", "green", 1)
    assert entered == [1, 1]


async def test_steps_beside_each_other_ask_at_once(app: Loom) -> None:
    def asks(field: str) -> Any:
        async def ask(state: Work, ctx: StepContext) -> dict[str, Any]:
            return {field: await use_ui_tool(field, {"question": f"Which {field}?"})}

        ask.__name__ = f"ask_{field}"
        return ask

    flow = Flow("work", Work).start_with(note("a"))
    run = await app.start(flow.fork(asks("text"), asks("number"), join=note("join")))
    text, number = (await run.outcome()).questions
    assert (text.tool, number.tool) == ("text", "number")
    await run.answer(number.id, 4)
    assert (await run.outcome()).questions == (text,)
    await run.answer(text.id, "green")
    outcome = await run.outcome()
    assert (outcome.status, outcome.state.text, outcome.state.number) == ("finished", "green", 4)


async def test_a_plain_function_may_not_ask(app: Loom) -> None:
    caught: list[Exception] = []

    def ask(state: Work, ctx: StepContext) -> None:
        try:
            asyncio.run(use_ui_tool("colour", {}))
        except (UsageError, RuntimeError) as error:
            caught.append(error)

    await app.run(flow_of(ask))
    assert len(caught) == 1


async def test_a_step_that_takes_time_hinders_no_other_run(app: Loom) -> None:
    gate = asyncio.Event()

    async def wait(state: Work, ctx: StepContext) -> None:
        await gate.wait()

    slow = await app.start(flow_of(wait))
    await app.run(flow_of(note("a")))
    gate.set()
    assert (await slow.outcome()).status == "finished"


async def test_each_run_is_driven_with_the_code_that_it_was_begun_with(app: Loom) -> None:
    def flow(number: int) -> Flow[Work]:
        async def give(state: Work, ctx: StepContext) -> dict[str, Any]:
            return {"number": number}

        return Flow("work", Work).start_with(give)

    runs = [await app.start(flow(number)) for number in range(3)]
    assert [(await run.outcome()).state.number for run in runs] == [0, 1, 2]


async def test_what_steps_changed_is_on_record(app: Loom) -> None:
    outcome = await app.run(flow_of(note("a", number=3, best=4)))
    (given,) = await facts(app, outcome.run_id, "state.given")
    (done,) = await facts(app, outcome.run_id, "step.completed")
    assert given.state == Work().model_dump()
    assert done.update == {"notes": ["a"], "number": 3, "best": 4}
    assert done.reduced == {"best": 4}


async def test_two_effects_of_one_name_at_once_are_refused(app: Loom) -> None:
    paid: list[int] = []

    async def charge() -> int:
        await asyncio.sleep(0)
        paid.append(1)
        return len(paid)

    async def pay(state: Work, ctx: StepContext) -> None:
        await asyncio.gather(ctx.once("charge", charge), ctx.once("charge", charge))

    outcome = await asyncio.wait_for(play(app, flow_of(pay)), SOON)
    assert outcome.failure is not None and outcome.failure.error == "UsageError"
    assert "'charge'" in outcome.failure.message


class Alone:
    """A step that needs the state only."""

    async def run(self, state: Work) -> dict[str, Any]:
        return {"notes": [f"object {state.number}"]}


async def test_a_step_may_take_the_state_alone(app: Loom) -> None:
    def plain(state: Work) -> dict[str, Any]:
        return {"notes": [f"plain {state.number}"]}

    async def waits(state: Work) -> Update[Work]:
        return Update(notes=[f"async {state.number}"])

    def either(state: Work, ctx: StepContext | None = None) -> dict[str, Any]:
        return {"notes": [ctx.step if ctx else "none"]}

    flow = flow_of(plain, waits, Alone, either, lambda state: {"notes": ["lambda"]})
    outcome = await app.run(flow, Work(number=1))
    assert outcome.state.notes == ["plain 1", "async 1", "object 1", "either", "lambda"]


async def test_what_makes_up_for_a_step_may_take_the_state_alone(app: Loom) -> None:
    def undo(state: Work) -> dict[str, Any]:
        return {"notes": ["undone"]}

    flow = Flow("work", Work).start_with(note("a"), compensate=undo).then(failing("b"))
    assert (await play(app, flow)).state.notes == ["a", "undone"]
