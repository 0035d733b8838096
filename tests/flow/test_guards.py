"""Guards of flows: budgets that are never overdrawn, loops that are noticed, and who answers."""

from typing import Any

import pytest

from tests.flow.scenes import Model, Work, Writer, facts, kinds, note, play
from turnloom import (
    AgentStep,
    DefinitionError,
    Flow,
    Guards,
    Loom,
    LoopDetection,
    Path,
    RunBudget,
    Selection,
)


def paired(guards: Guards, engine: Any) -> Flow[Work]:
    """Two agents side by side, after a step that can be made up for."""
    return (
        Flow("pair", Work, guards=guards)
        .start_with(note("book"), compensate=note("cancel"))
        .fork(
            Path().then(Noting(engine), name="left"),
            Path().then(Noting(engine), name="right"),
            join=note("join"),
        )
        .on_failure(note("tell"))
        .finally_(note("end"))
    )


class Noting(Writer):
    """An agent whose words are noted."""

    def apply(self, state: Work, answer: Any, context: Any) -> Any:
        """The answer as a note."""
        return {"notes": [answer]}


async def test_of_two_paths_exactly_one_gets_the_last_model_call(app: Loom) -> None:
    model = Model("here")
    outcome = await play(app, paired(Guards(budget=RunBudget(model_calls=1)), model))
    assert outcome.status == "failed" and len(model.tasks) == 1
    assert outcome.failure is not None and outcome.failure.step in ("left", "right")
    assert outcome.failure.error == (await app.history.events(outcome.run_id))[-1].data.error
    assert outcome.state.notes == ["book", "cancel", "tell"]
    (short,) = (await facts(app, outcome.run_id, "budget.exceeded"))[0].short
    assert (short.resource, short.wanted, short.left) == ("model_calls", 1, 0)


async def test_what_exactly_fits_is_done_and_one_more_step_is_not(app: Loom) -> None:
    enough = await play(app, paired(Guards(budget=RunBudget(steps=5)), Model("here")))
    short = await play(app, paired(Guards(budget=RunBudget(steps=4)), Model("here")))
    assert enough.status == "finished" and enough.state.notes[-1] == "end"
    assert short.status == "failed" and short.state.notes[-2:] == ["cancel", "tell"]


async def test_making_up_is_not_charged(app: Loom) -> None:
    flow = (
        Flow("undone", Work, guards=Guards(budget=RunBudget(steps=2)))
        .start_with(note("first"), compensate=note("second_undo"))
        .then(note("second"), compensate=note("first_undo"))
        .on_failure([note("tell"), note("log")])
        .finally_(note("third"))
    )
    outcome = await play(app, flow)
    assert outcome.state.notes[2:] == ["first_undo", "second_undo", "tell", "log"]
    spent = await facts(app, outcome.run_id, "budget.spent")
    assert sum(each.amounts.steps for each in spent) == 2


async def test_every_attempt_of_a_step_is_charged(app: Loom) -> None:
    async def never(state: Work, ctx: Any) -> None:
        raise ValueError(f"attempt {ctx.attempt}")

    flow = Flow("stubborn", Work, guards={"budget": {"steps": 2}}).start_with(never, retry=9)
    outcome = await play(app, flow)
    assert outcome.status == "failed" and outcome.failure is not None
    assert outcome.failure.error == "budget exceeded" and outcome.failure.step == ""
    assert len(await facts(app, outcome.run_id, "step.started")) == 2
    (short,) = await facts(app, outcome.run_id, "budget.exceeded")
    assert (short.of, short.call) == ("never", "s1/a3")
    assert "'never'" in outcome.failure.message


async def test_a_call_that_is_short_names_the_step_of_its_agent(app: Loom) -> None:
    guards = Guards(budget=RunBudget(model_calls=1))
    flow = Flow("two", Work, guards=guards).start_with(Writer(Model()), name="one")
    outcome = await play(app, flow.finally_(Writer(Model()), name="other"))
    (short,) = await facts(app, outcome.run_id, "budget.exceeded")
    assert (short.of, short.call) == ("other", "t2/model")
    assert outcome.failure is not None and "'other'" in outcome.failure.message


def refining(then: Any, engine: Any) -> Flow[Work]:
    """An agent that is to get better, and does not."""
    watch = LoopDetection(window=3, similarity=None, max_resets=1, then=then)
    return (
        Flow("refine", Work, guards=Guards(loop_detection=watch))
        .start_with(note("book"), compensate=note("cancel"))
        .repeat_until(_is_good, Path().then(Noting(engine), name="draft"), max_iterations=20)
        .finally_(note("end"))
    )


def _is_good(state: Work) -> bool:
    return "good" in state.notes


async def test_an_agent_in_a_loop_is_told_and_the_hint_stands_in_its_frame(app: Loom) -> None:
    model = Model(*["same"] * 3, lambda task: "good" if "differently" in task.system else "same")
    outcome = await play(app, refining("stop", model))
    assert outcome.status == "finished" and outcome.state.notes.count("same") == 3
    (detected,) = await facts(app, outcome.run_id, "loop.detected")
    assert (detected.loop, detected.strategy) == ("exact_repetition", "inject_variation")


async def test_a_loop_that_goes_on_stops_the_flow_and_what_was_done_is_undone(app: Loom) -> None:
    outcome = await play(app, refining("stop", Model("same")))
    assert outcome.status == "failed" and outcome.state.notes == ["book", *["same"] * 6, "cancel"]
    assert await kinds(app, outcome.run_id, "loop.detected") == ["loop.detected"] * 2


@pytest.mark.parametrize(("answer", "status"), [("continue", "waiting"), ("stop", "failed")])
async def test_a_person_says_whether_a_loop_goes_on(app: Loom, answer: str, status: str) -> None:
    outcome = await play(app, refining("escalate", Model("same")))
    assert outcome.status == "waiting" and outcome.question is not None
    run = app.handle(outcome.run_id)
    await run.answer(outcome.question.id, answer)
    again = await run.outcome()
    assert again.status == status
    if status == "waiting":
        assert again.question is not None and again.question.id != outcome.question.id


class Routed(AgentStep[Work]):
    """An agent for whom one of several models answers."""

    def __init__(self, **engines: Any) -> None:
        self.engines = engines

    def user_prompt(self, state: Work) -> str:
        """What is asked."""
        return f"What of {state.number}?"

    def apply(self, state: Work, answer: Any, context: Any) -> Any:
        """The answer as a note."""
        return {"notes": [answer], "number": state.number + 1}


def routing(step: AgentStep[Work], **settings: Any) -> Flow[Work]:
    """A step that is taken often."""
    select = Selection(candidates=("small", "large"), seed=7, category=_category)
    path = Path().then(step, name="answer", select=select, **settings)
    begun = Flow("route", Work).start_with(note("begin"))
    return begun.repeat_until(_is_enough, path, max_iterations=80).finally_(note("end"))


def _category(state: Work) -> str:
    return "even" if state.number % 2 == 0 else "odd"


def _is_enough(state: Work) -> bool:
    return state.number >= 60


async def test_who_answers_better_is_asked_more_often_in_each_category(app: Loom) -> None:
    def small(task: Any) -> Any:
        if _category(Work(number=int(task.transcript[-1].text[8:-1]))) == "even":
            return "small"
        raise ValueError("too hard")

    flow = routing(Routed(small=small, large=lambda task: "large"), retry=20)
    outcome = await play(app, flow)
    made = await facts(app, outcome.run_id, "selection.made")
    odd = [each.chosen for each in made if each.category == "odd"]
    assert outcome.status == "finished" and odd.count("large") > 2 * odd.count("small")
    assert all(len(each.candidates) == 2 for each in made)


async def test_a_selection_among_the_guards_of_a_flow_is_refused(app: Loom) -> None:
    guards = Guards(selection=Selection(candidates=("a", "b")))
    flow = Flow("none", Work, guards=guards).start_with(note("begin"))
    with pytest.raises(DefinitionError) as refused:
        await app.run(flow)
    assert "W127" in [each.code for each in refused.value.diagnostics]
