"""What failing steps lead to: attempts, handlers, compensation, the end."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from tests.flow.scenes import SOON, Sees, Work, facts, failing, flow_of, kinds, note, play, taken
from tests.support.programs import Program
from tests.support.world import World
from turnloom import Flow, FlowFailed, Loom, Path, Retry, Run, StepContext
from turnloom.flow.spec.nodes import StepNode


class Witness:
    """Makes steps that say in which order they were taken, and what they were told."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.failures: dict[str, Any] = {}

    def __call__(self, name: str, error: Exception | None = None) -> Any:
        async def step(state: Work, ctx: StepContext) -> dict[str, Any]:
            self.seen.append(name)
            self.failures[name] = ctx.failure
            if error is not None:
                raise error
            return {"notes": [name]}

        step.__name__ = name
        return step


async def hangs(state: Work, ctx: StepContext) -> None:
    await asyncio.sleep(60)


@pytest.fixture
def witness() -> Witness:
    return Witness()


# ------------------------------------------------------------------ attempts


async def test_two_retries_are_three_attempts_with_the_same_state(app: Loom) -> None:
    step = Sees(fails=2, number=5)
    outcome = await app.run(flow_of(note("a"), step, retry=2), Work(number=1))
    assert outcome.status == "finished" and outcome.state.number == 5
    assert step.states == [Work(number=1, notes=["a"])] * 3
    assert await taken(app, outcome.run_id) == ["a", "Sees", "Sees", "Sees"]
    retried = await facts(app, outcome.run_id, "step.retried")
    assert [(each.attempt, each.error, each.message) for each in retried] == [
        (1, "ValueError", "not yet"),
        (2, "ValueError", "not yet"),
    ]


async def test_what_an_attempt_does_to_its_state_is_not_seen_by_the_next(app: Loom) -> None:
    seen: list[list[str]] = []

    async def spoil(state: Work, ctx: StepContext) -> None:
        seen.append([*state.notes])
        state.notes.append("spoilt")
        if ctx.attempt == 1:
            raise ValueError

    await app.run(flow_of(spoil, retry=1), Work(notes=["a"]))
    assert seen == [["a"], ["a"]]


async def delay(program: Program, run: Run, world: World) -> float:
    """For how long a run rests once it was driven."""
    due = await program.drive(run.id)
    assert due is not None
    return (due - world.clock.now()).total_seconds()


async def test_attempts_wait_longer_each_time_but_not_for_ever() -> None:
    step, world = Sees(fails=4), World()
    flow = flow_of(step, retry=Retry(4, delay=10, factor=3, max_delay=60, jitter=False))
    async with Program(world) as program:
        run = await program.app.start(flow)
        for attempt, seconds in enumerate((10, 30, 60, 60), 1):
            assert await delay(program, run, world) == seconds
            world.clock.advance(timedelta(seconds=seconds - 1))
            assert await delay(program, run, world) == 1
            assert len(step.states) == attempt
            world.clock.advance(timedelta(seconds=1))
        await program.drive(run.id)
        assert (await run.outcome()).status == "finished" and len(step.states) == 5


async def test_however_often_a_delay_grows_it_can_be_said() -> None:
    step, world = Sees(fails=4), World()
    longest = Retry(4).max_delay
    async with Program(world) as program:
        flow = flow_of(step, retry=Retry(4, delay=10, factor=1e200, jitter=False))
        run = await program.app.start(flow)
        for seconds in (10, longest, longest, longest):
            assert await delay(program, run, world) == seconds
            world.clock.advance(timedelta(seconds=seconds))
        await program.drive(run.id)
        assert (await run.outcome()).status == "finished"


async def test_chance_takes_off_up_to_half_of_a_delay() -> None:
    world = World()
    async with Program(world) as program:
        run = await program.app.start(flow_of(Sees(fails=1), retry=Retry(1, delay=40)))
        seconds = await delay(program, run, world)
        assert 20 <= seconds <= 40
        world.clock.advance(timedelta(seconds=seconds))
        await program.drive(run.id)
        assert (await run.outcome()).status == "finished"


@pytest.mark.parametrize("given", [None, 30])
async def test_a_step_may_run_out_of_time_that_it_gave_itself(
    app: Loom, given: float | None
) -> None:
    async def hasty(state: Work, ctx: StepContext) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(30)

    outcome = await play(app, flow_of(hasty, retry=1, timeout=given, compensate=hasty))
    assert outcome.status == "failed" and (failure := outcome.failure) is not None
    assert (failure.error, failure.message, failure.attempt) == ("TimeoutError", "", 2)


async def test_a_step_that_takes_too_long_is_stopped_and_what_it_gives_late_is_nothing(
    app: Loom,
) -> None:
    ended: list[str] = []

    async def slow(state: Work, ctx: StepContext) -> dict[str, Any]:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("stopped")
            return {"text": "late"}
        return {"text": "in time"}

    outcome = await play(app, flow_of(slow, timeout=0.05))
    assert outcome.status == "failed" and outcome.state == Work() and ended == ["stopped"]
    assert outcome.failure is not None
    assert outcome.failure.error == "TimeoutError" and "0.05" in outcome.failure.message


async def test_each_attempt_has_the_whole_time(app: Loom) -> None:
    async def slow_at_first(state: Work, ctx: StepContext) -> dict[str, Any]:
        if ctx.attempt == 1:
            await asyncio.Event().wait()
        return {"text": "in time"}

    outcome = await app.run(flow_of(slow_at_first, timeout=1, retry=1))
    assert outcome.state.text == "in time"


async def test_a_step_in_time_is_left_alone(app: Loom) -> None:
    outcome = await app.run(flow_of(note("a"), note("b"), timeout=5))
    assert outcome.state.notes == ["a", "b"]
    assert not await facts(app, outcome.run_id, "step.failed", "step.retried")


async def test_a_flow_that_takes_too_long_is_made_up_for(app: Loom, witness: Witness) -> None:
    flow = Flow("work", Work, timeout=1.5).start_with(note("a"), compensate=witness("undo"))
    flow.then(hangs, compensate=witness("never"))
    outcome = await play(app, flow.on_failure(witness("tell")))
    assert outcome.status == "failed" and witness.seen == ["undo", "tell"]
    assert outcome.failure is not None and outcome.failure.error == "timed out"
    assert "1.5" in outcome.failure.message
    (stopped,) = await facts(app, outcome.run_id, "flow.stopped")
    (skipped,) = await facts(app, outcome.run_id, "step.skipped")
    assert (stopped.cause, skipped.step) == ("timed out", "hangs")


# ------------------------------------------------------------------ the record


async def test_a_failure_has_its_step_type_message_stack_time_and_attempt(app: Loom) -> None:
    flow = flow_of(note("a"), failing("pay", LookupError("no card")), retry=1)
    with pytest.raises(FlowFailed) as raised:
        await app.run(flow)
    for value in ("'work'", "'pay'", "LookupError", "no card"):
        assert value in str(raised.value)
    outcome = raised.value.outcome
    (failed,) = await facts(app, outcome.run_id, "step.failed")
    for failure in (failed, outcome.failure):
        assert (failure.step, failure.error, failure.message) == ("pay", "LookupError", "no card")
        assert failure.attempt == 2 and failure.at is not None and failure.frame == ""
        assert "Traceback" in failure.stack and "LookupError: no card" in failure.stack
    assert (await app.history.events(outcome.run_id))[-1].kind == "run.failed"


async def test_a_flow_without_failures_touches_nothing_that_handles_them(
    app: Loom, witness: Witness
) -> None:
    step = note("a")
    flow = Flow("work", Work).start_with(
        step, compensate=witness("undo"), on_failure=[witness("handle")], recover=True
    )
    outcome = await app.run(flow.on_failure(witness("tell")).finally_(note("b")))
    assert outcome.state.notes == ["a", "b"] and witness.seen == []


# ------------------------------------------------------------------ the order


async def test_handler_then_own_compensation_then_the_others_backwards_then_the_flow(
    app: Loom, witness: Witness
) -> None:
    flow = (
        Flow("order", Work)
        .start_with(note("reserve"), compensate=witness("release"))
        .then(note("weigh"))
        .then(note("pay"), compensate=witness("refund"))
        .then(failing("ship"), compensate=witness("recall"), on_failure=[witness("notify")])
        .then(note("thank"), compensate=witness("unthank"))
        .on_failure(Path(witness("tell")).then(witness("archive")))
    )
    outcome = await play(app, flow)
    assert witness.seen == ["notify", "recall", "refund", "release", "tell", "archive"]
    assert outcome.status == "failed"
    assert [failure.step for failure in witness.failures.values()] == ["ship"] * 6
    order = await kinds(app, outcome.run_id, "step.failed", "step.handled", "step.comp", "run.f")
    done = [each for each in order if each != "step.completed"]
    assert done == ["step.failed", "step.handled", *["step.compensated"] * 3, "run.failed"]
    assert outcome.state.notes[-3:] == ["release", "tell", "archive"]


async def test_a_step_that_never_began_is_not_made_up_for(app: Loom, witness: Witness) -> None:
    flow = flow_of(
        note("a"),
        note("b"),
        validate=(lambda state: False, "it is not ready"),
        compensate=witness("undo"),
    )
    outcome = await play(app, flow)
    assert outcome.status == "failed" and witness.seen == []


async def test_a_handler_is_chosen_by_the_type_of_the_error(app: Loom, witness: Witness) -> None:
    handlers = {
        ConnectionError: [witness("reconnect")],
        LookupError: [witness("look")],
        Exception: [witness("shrug")],
    }
    for error, handled in (
        (ConnectionResetError(), "reconnect"),
        (KeyError("k"), "look"),
        (ValueError(), "shrug"),
    ):
        witness.seen.clear()
        await play(app, flow_of(failing("a", error), on_failure=handlers))
        assert witness.seen == [handled]


async def test_an_error_that_no_handler_is_for_is_not_handled(app: Loom, witness: Witness) -> None:
    flow = flow_of(failing("a"), on_failure={LookupError: [witness("look")]}, recover=True)
    outcome = await play(app, flow)
    assert outcome.status == "failed" and witness.seen == []


async def test_a_handled_failure_lets_the_flow_go_on_with_recover(
    app: Loom, witness: Witness
) -> None:
    flow = (
        Flow("work", Work)
        .start_with(note("a"), compensate=witness("undo"))
        .then(failing("b"), on_failure=[witness("mend")], recover=True)
        .finally_(note("c"))
    )
    outcome = await app.run(flow)
    assert outcome.status == "finished" and outcome.state.notes == ["a", "mend", "c"]
    assert witness.seen == ["mend"] and outcome.failure is None
    (recovered,) = await facts(app, outcome.run_id, "step.recovered")
    assert recovered.step == "b"


async def test_a_handler_that_fails_is_on_record_and_the_rest_is_done(
    app: Loom, witness: Witness
) -> None:
    flow = (
        Flow("work", Work)
        .start_with(note("a"), compensate=witness("undo"))
        .then(
            failing("b"),
            on_failure=[witness("first", RuntimeError("no mail")), witness("second")],
            recover=True,
        )
        .on_failure(witness("tell"))
    )
    outcome = await play(app, flow)
    assert outcome.status == "failed" and witness.seen == ["first", "undo", "tell"]
    failed = await facts(app, outcome.run_id, "step.failed")
    assert [(each.step, each.message) for each in failed] == [
        ("b", "b cannot"),
        ("first", "no mail"),
    ]
    assert outcome.failure is not None and outcome.failure.step == "b"


async def test_a_compensation_that_fails_is_on_record_and_the_rest_is_done(
    app: Loom, witness: Witness
) -> None:
    flow = (
        Flow("work", Work)
        .start_with(note("a"), compensate=witness("undo_a"))
        .then(note("b"), compensate=witness("undo_b", RuntimeError("too late")))
        .then(failing("c"))
        .on_failure(witness("tell"))
    )
    outcome = await play(app, flow)
    assert outcome.status == "failed" and witness.seen == ["undo_b", "undo_a", "tell"]
    first, second = await facts(app, outcome.run_id, "step.compensated")
    assert (first.step, first.by, first.error, first.message) == (
        *("b", "undo_b"),
        *("RuntimeError", "too late"),
    )
    assert (second.step, second.by, second.error) == ("a", "undo_a", "")


async def test_a_compensation_has_the_time_of_its_step(app: Loom, witness: Witness) -> None:
    flow = (
        Flow("work", Work)
        .start_with(witness("a"), compensate=witness("undo_a"))
        .then(witness("b"), compensate=hangs, timeout=0.05)
        .finally_(failing("end"))
    )
    outcome = await play(app, flow)
    made = await facts(app, outcome.run_id, "step.compensated")
    assert [each.error for each in made] == ["TimeoutError", ""]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_compensation_that_hangs_is_stopped_and_the_rest_is_done(
    app: Loom, witness: Witness, cancelled: bool
) -> None:
    begun = asyncio.Event()

    async def waits(state: Work, ctx: StepContext) -> None:
        begun.set()
        if not cancelled:
            raise ValueError
        await asyncio.sleep(60)

    run = await app.start(
        Flow("work", Work)
        .start_with(note("a"), compensate=witness("undo_a"))
        .then(note("b"), compensate=hangs, compensate_timeout=0.05)
        .finally_(waits)
    )
    async with asyncio.timeout(SOON):
        await begun.wait()
        assert not cancelled or await run.cancel()
        assert (await run.outcome()).status == ("cancelled" if cancelled else "failed")
    made = await facts(app, run.id, "step.compensated")
    assert [(each.step, each.error) for each in made] == [("b", "TimeoutError"), ("a", "")]
    assert "0.05" in made[0].message and witness.seen == ["undo_a"]


@pytest.mark.parametrize(
    ("said", "seconds"),
    [({}, 300), ({"timeout": 5}, 5), ({"timeout": 5, "compensate_timeout": 60}, 60)],
)
def test_no_compensation_has_all_the_time_in_the_world(
    said: dict[str, Any], seconds: float
) -> None:
    (node,) = flow_of(note("a"), compensate=note("undo"), **said).plan.paths["main"].line.nodes
    assert isinstance(node, StepNode) and node.undo_seconds == seconds


async def test_the_stack_of_a_failure_begins_in_the_code_of_the_program(app: Loom) -> None:
    outcome = await play(app, flow_of(failing("pay")))
    assert outcome.failure is not None
    lines = outcome.failure.stack.splitlines()
    assert "scenes.py" in lines[1] and lines[-1] == "ValueError: pay cannot"


async def test_the_last_handler_may_fail_too(app: Loom, witness: Witness) -> None:
    flow = flow_of(failing("a")).on_failure([witness("tell", RuntimeError()), witness("never")])
    outcome = await play(app, flow)
    assert outcome.status == "failed" and witness.seen == ["tell"]
    assert outcome.failure is not None and outcome.failure.step == "a"


async def test_each_pass_that_was_completed_is_made_up_for_once(
    app: Loom, witness: Witness
) -> None:
    async def count(state: Work, ctx: StepContext) -> dict[str, Any]:
        return {"number": state.number + 1}

    flow = (
        Flow("work", Work)
        .start_with(note("a"))
        .repeat_until(
            lambda state: state.number == 3, Path().then(count, compensate=witness("undo"))
        )
        .then(failing("b"))
    )
    await play(app, flow)
    assert witness.seen == ["undo"] * 3


async def test_a_cancelled_run_makes_up_for_what_was_done(app: Loom, witness: Witness) -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def wait(state: Work, ctx: StepContext) -> None:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            stopped.set()

    flow = Flow("work", Work).start_with(note("a"), compensate=witness("undo")).then(wait)
    run = await app.start(flow)
    await begun.wait()
    assert await run.cancel(by="ada", reason="too dear")
    outcome = await run.outcome()
    assert outcome.status == "cancelled" and witness.seen == ["undo"] and stopped.is_set()


async def test_a_guard_that_does_not_hold_fails_without_taking_the_step(app: Loom) -> None:
    step = Sees()
    flow = flow_of(
        note("a"), step, validate=(lambda state: state.number > 0, "there is nothing to count")
    )
    outcome = await play(app, flow)
    assert outcome.status == "failed" and step.states == []
    assert outcome.failure is not None
    assert (outcome.failure.step, outcome.failure.error, outcome.failure.message) == (
        "Sees",
        "ValidationFailed",
        "there is nothing to count",
    )
    assert (await app.run(flow, Work(number=1))).status == "finished"
