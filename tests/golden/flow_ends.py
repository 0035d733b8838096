"""Flows whose logs are golden: failures, what surrounds them, and cancelling."""

import asyncio
from pathlib import Path as FilePath
from typing import Any

from tests.flow.scenes import Work, Writer, failing, note
from tests.golden.flows import (
    PATIENCE,
    Noting,
    booking,
    count,
    derived,
    failing_until,
    flowing,
    forever,
    how_paths_ended,
    made,
    seat,
    silent,
    stored,
    too_long,
    writes,
)
from tests.golden.scenes import scene
from tests.support.world import Kill, Script, World, replying
from turnloom import (
    AgentStep,
    Answer,
    Context,
    Flow,
    Guards,
    Loom,
    LoopDetection,
    Path,
    Retry,
    RunBudget,
    Selection,
    StepContext,
    Task,
)

# Seconds after which whatever takes too long is stopped.
# ------------------------------------------------------------------ failures


def undone_flow() -> Flow[Work]:
    """Everything that can come after a failure."""
    return (
        booking("undone")
        .repeat_until(
            lambda state: state.number == 2, Path().then(count, compensate=note("uncount"))
        )
        .then(note("pay"), compensate=failing("refund"))
        .then(note("send"), compensate=too_long, compensate_timeout=PATIENCE)
        .then(failing("weak"), on_failure=note("mend"), recover=True)
        .then(
            failing("bad"),
            compensate=failing_until(1, "unbad"),
            on_failure={OSError: note("never"), ValueError: [note("look"), note("shrug")]},
        )
        .on_failure([note("tell"), failing("file"), note("unreached")])
    )


@scene
async def a_flow_undone(world: World, where: FilePath) -> None:
    """A failure that is recovered from, and one that is not: what was done is made up for, the
    last first, though one compensation fails and one takes too long; then somebody is told."""
    await world.live(flowing(undone_flow()))


@scene
async def a_flow_killed_while_it_is_undone(world: World, where: FilePath) -> None:
    """The same: killed when it stops, before the effect of a compensation is stored, when one has
    failed, when one has begun, in the handler of the flow, and before the end."""
    kills = (
        Kill("flow.stopped"),
        Kill("effect.done", before=True),
        Kill("step.compensated", 2),
        Kill("step.started", 2),
        Kill("step.failed", before=True),
        Kill("run.failed", before=True),
    )
    await world.lives(flowing(undone_flow()), *kills)


@scene
async def a_flow_killed_in_a_fork(world: World, where: FilePath) -> None:
    """Killed after two paths have begun, after a model was called, after it answered, after the
    next step of one path has begun, while the other asks, after the answer, at the join and before
    the end."""
    walked = asyncio.Event()

    async def walk(state: Work, ctx: StepContext) -> None:
        walked.set()

    async def late_seat(state: Work, ctx: StepContext) -> dict[str, Any]:
        await walked.wait()
        return await seat(state, ctx)

    flow = booking("forked").fork(
        Path().then(Noting(writes), name="left").then(walk),
        Path().then(late_seat).then(note("sit")),
        join=how_paths_ended,
    )
    kills = (
        Kill("step.started", 2),
        Kill("model.called"),
        Kill("model.answered"),
        Kill("step.started"),
        Kill("question.asked"),
        Kill("question.answered"),
        Kill("fork.joined"),
        Kill("run.finished", before=True),
    )
    await world.lives(flowing(flow, person=replying("12A")), *kills)


# ------------------------------------------------------------------ around flows


def hook(name: str, **changes: Any) -> Any:
    """A hook that writes variables."""

    def function(context_variables: Context) -> str:
        for variable, value in changes.items():
            context_variables[variable] = value
        return name

    function.__name__ = name
    return function


@scene
async def a_flow_with_hooks_and_variables(world: World, where: FilePath) -> None:
    """Hooks before and after the run and its agents, one of which fails; variables from the
    environment, a secret among them, that steps read and write."""
    world.environment.values.update(FLOW_KEY="s3cr3t-and-long", FLOW_TIER="gold")
    key, tier = ({"type": "environment", "env_var": f"FLOW_{name}"} for name in ("KEY", "TIER"))
    variables = {
        "definitions": {
            "key": {"type": "string", "secret": True, "source": key},
            "tier": {"type": "string", "source": tier},
            "seen": derived("", "string"),
        },
        "agents": {"Writer": {"variables": ["tier", "seen"]}},
    }

    def breaks(context_variables: Context) -> None:
        raise RuntimeError("it broke")

    hooks = [
        {"trigger": "before_chat", "function": hook("opens", seen="opened")},
        {"trigger": "before_agent", "agent": "Writer", "function": hook("before", seen="before")},
        {"trigger": "after_agent", "agent": "Writer", "function": breaks},
        {"trigger": "after_chat", "on": "success", "function": hook("unneeded")},
        {"trigger": "after_chat", "on": "always", "function": hook("closes", seen="closed")},
    ]

    async def look(state: Work, ctx: StepContext) -> dict[str, Any]:
        was, ctx["seen"] = ctx["seen"], f"looked at {ctx['tier']}"
        return {"text": ctx["key"], "notes": [was]}

    async def fail(state: Work, ctx: StepContext) -> None:
        ctx["seen"] = "failed"
        raise ValueError(f"refused {ctx['key']}")

    flow = Flow("around", Work, variables=variables, hooks=hooks).start_with(look)
    await world.live(flowing(flow.then(Writer(writes)).then(fail)))


@scene
async def a_flow_out_of_budget(world: World, where: FilePath) -> None:
    """A loop of an agent runs into the budget, which gets scarce: what was done is made up for."""
    guards = Guards(budget=RunBudget(steps=9, model_calls=3, tokens=20000))
    flow = booking("dear", guards=guards).repeat_until(
        lambda state: state.number == 9, Path().then(Writer(writes)), max_iterations=9
    )
    await world.live(flowing(flow.on_failure(note("tell"))))


def circling(then: Any, resets: int) -> Flow[Work]:
    """A flow whose agent says the same again and again."""
    watch = LoopDetection(window=2, similarity=None, max_resets=resets, then=then)
    return booking(f"circles_{then}", guards=Guards(loop_detection=watch)).repeat_until(
        lambda state: state.number == 9, Path().then(Writer(writes)), max_iterations=5
    )


@scene
async def a_flow_in_circles(world: World, where: FilePath) -> None:
    """An agent in a loop is told so; then a person is asked, who lets it go on. In another run, it
    is stopped, and what was done is made up for."""
    await world.live(flowing(circling("escalate", 1), person=replying("continue")))

    async def script(app: Loom) -> None:
        run = await app.start(circling("stop", 0), user_id="u1", app_id="acme")
        await run.finished()

    await world.live(script)


class Routed(AgentStep[Work]):
    """An agent for whom one of two engines answers, one of which fails."""

    def __init__(self) -> None:
        self.engines = {"small": self._fail, "large": writes}

    async def _fail(self, task: Task) -> Answer:
        raise LookupError("too hard")

    def user_prompt(self, state: Work) -> str:
        """What is asked."""
        return f"What of {state.number}?"

    def apply(self, state: Work, answer: Any, context: Any) -> Any:
        """One more."""
        return {"number": state.number + 1}


@scene
async def a_flow_that_selects(world: World, where: FilePath) -> None:
    """Who answers for an agent is chosen by what came of it before; killed after a choice, and
    after a model failed."""
    select = Selection(candidates=("small", "large"), seed=7, category=_category)
    path = Path().then(Routed(), name="answer", select=select, retry=9)
    flow = Flow("selects", Work).start_with(note("begin"))
    flow.repeat_until(lambda state: state.number == 3, path)
    await world.lives(flowing(flow), Kill("selection.made"), Kill("model.failed"))


def _category(state: Work) -> str:
    return "even" if state.number % 2 == 0 else "odd"


# ------------------------------------------------------------------ the end before its time


def cancelling(flow: Flow[Work], *kinds: str) -> Script:
    """A program that cancels a flow when events of these kinds are stored."""

    async def script(app: Loom) -> None:
        app.register_flow(flow)
        runs = await app.runs(app_id="acme")
        if runs:
            run = await app.resume(runs[0].run, app_id="acme")
        else:
            run = await app.start(flow, user_id="u1", app_id="acme")
        await stored(run, *kinds)
        await run.cancel(by="ada", reason="too dear")
        await run.finished()

    return script


@scene
async def a_flow_cancelled_while_it_waits(world: World, where: FilePath) -> None:
    """A run that waits for a person is cancelled; what was done is made up for, and nobody told."""
    flow = booking("parked").await_approval("boss").on_failure(note("tell"))
    await world.live(cancelling(flow, "run.paused"))


@scene
async def a_flow_cancelled_in_a_fork(world: World, where: FilePath) -> None:
    """Cancelled while a step, an agent and a timer are under way side by side; killed after that
    is asked for, while it is undone, and before the end."""
    flow = booking("stopped").fork(
        made("left").then(forever, compensate=note("unforever")),
        made("middle").then(Writer(silent)),
        Path().then(failing("slow"), retry=Retry(3, delay=50, jitter=False)),
        join=how_paths_ended,
    )
    kills = Kill("cancel.requested"), Kill("step.compensated"), Kill("run.cancelled", before=True)
    under_way = *["step.started"] * 6, "model.called", "timer.set"
    await world.lives(cancelling(flow, *under_way), *kills)
