"""Flows whose logs are golden."""

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel

from tests.flow.scenes import Work, Writer, failing, note
from tests.golden.scenes import scene
from tests.support.world import Kill, Person, Script, World, at_rest, replying
from turnloom import (
    Answer,
    Budget,
    Flow,
    Loom,
    Option,
    Path,
    RagCollection,
    Retry,
    Run,
    StepContext,
    Task,
    ToolCall,
    Update,
    complete,
    escalate_to,
    from_literal,
    from_retrieval,
    from_state,
    from_variables,
    use_ui_tool,
)
from turnloom.log.events import ENDS
from turnloom.testing import InMemorySearch

# Seconds after which whatever takes too long is stopped.
PATIENCE = 5.0


def flowing(flow: Flow[Any], state: Any = None, person: Person | None = None) -> Script:
    """A program that starts a flow, or goes on with it, and lets whoever is asked answer."""

    async def script(app: Loom) -> None:
        app.register_flow(flow)
        runs = await app.runs(app_id="acme")
        if runs:
            run = await app.resume(runs[0].run, app_id="acme")
        else:
            run = await app.start(flow, state, user_id="u1", app_id="acme")
        position = 0
        while (rest := await at_rest(run, position)).kind not in ENDS:
            position = rest.seq
            question = await run.question()
            if question is None:  # it waits for a time, or somebody answered before the kill
                continue
            said = person(question) if person else None
            if said is not None:
                await run.answer(question.id, said, user_id=question.to or None)

    return script


async def stored(run: Run, *kinds: str) -> None:
    """Wait until events of all of these kinds are stored, each as often as it is named."""
    left = Counter(kinds)
    async for event in run.events():
        left[event.kind] -= 1
        if not +left:
            return


def let_time_pass() -> None:
    """Let the patience be over of whoever waits in this loop now."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + PATIENCE + 1  # type: ignore[method-assign]


async def count(state: Work, ctx: StepContext) -> dict[str, Any]:
    """One more."""
    return {"number": state.number + 1}


def double(state: Work, ctx: StepContext) -> dict[str, Any]:
    """Twice as much, in a thread."""
    return {"number": state.number * 2, "counts": {"doubled": 1}}


async def forever(state: Work, ctx: StepContext) -> None:
    """Never ends by itself."""
    await asyncio.Event().wait()


async def too_long(state: Work, ctx: StepContext) -> None:
    """Never ends in time."""
    let_time_pass()
    await asyncio.Event().wait()


async def silent(task: Task) -> Answer:
    """An engine that never answers."""
    await asyncio.Event().wait()
    raise AssertionError


async def how_paths_ended(state: Work, ctx: StepContext) -> dict[str, Any]:
    """Joins a fork."""
    return {"notes": [f"{each.name} {each.status}" for each in ctx.paths]}


async def seat(state: Work, ctx: StepContext) -> dict[str, Any]:
    """Does something once, and asks."""
    price = await ctx.once("price", lambda: 40)
    return {"text": await use_ui_tool("seat", {"prompt": f"Which seat for {price}?"})}


class Adds:
    """A step that is an object."""

    def __init__(self, amount: int) -> None:
        self._amount = amount

    async def run(self, state: Work, ctx: StepContext) -> dict[str, Any]:
        """The sum."""
        return {"number": state.number + self._amount}


def failing_until(attempt: int, name: str = "flaky") -> Any:
    """A step that fails before that attempt, and has an effect once."""

    async def step(state: Work, ctx: StepContext) -> dict[str, Any]:
        paid = await ctx.once("pay", lambda: f"paid in attempt {ctx.attempt}")
        if ctx.attempt < attempt:
            raise ConnectionError(f"no line in attempt {ctx.attempt}")
        return {"notes": [paid]}

    step.__name__ = name
    return step


async def writes(task: Task) -> Answer:
    """An engine that says whose turn it answers."""
    return Answer(f"{task.agent} wrote.")


class Noting(Writer):
    """An agent whose words are noted."""

    def apply(self, state: Work, answer: Any, context: Any) -> Any:
        """The answer as a note."""
        return {"notes": [answer]}


def booking(name: str, **settings: Any) -> Flow[Work]:
    """A flow that begins with a step that can be made up for."""
    flow = Flow(name, Work, **settings)
    return flow.start_with(note("book"), compensate=note("unbook"))


def made(name: str) -> Path:
    """A path of one step that can be made up for."""
    return Path().then(note(name), compensate=note(f"un{name}"))


# ------------------------------------------------------------------ steps and paths


async def guess(state: Work, ctx: StepContext) -> Update[Work]:
    """Is not sure."""
    return Update(text="a guess", confidence=0.4)


@scene
async def a_flow_of_plain_steps(world: World, where: FilePath) -> None:
    """Steps that are async, in a thread, an object, or unsure; branches that have a path for the
    state or none; a loop whose condition holds, and one that reaches its limit; the last step."""
    flow = (
        Flow("plain", Work, version="7")
        .start_with(note("begin", number=1, best=3))
        .then(double, validate=(lambda state: state.number > 0, "there is nothing to double"))
        .then(Adds(3))
        .branch(lambda state: state.number, {4: note("four"), 5: note("five")}, name="size")
        .branch(lambda state: state.text, {"a": note("a")}, otherwise=note("other"), name="kind")
        .branch(lambda state: state.text, {"b": note("b")}, name="none")
        .then(guess, require_confidence=0.8, on_low_confidence=[note("check"), note("mend")])
        .repeat_until(lambda state: state.number >= 7, count, name="climb")
        .repeat_until(
            lambda state: state.number == 0, Path().then(count, name="more"), max_iterations=2
        )
        .finally_(note("end", best=1))
    )
    await world.live(flowing(flow))


class Library(RagCollection):
    """What agents look things up in."""

    name = "golden-library"


class Verdict(BaseModel):
    """What a judge says."""

    good: bool
    why: str
    confidence: float | None = None


def weigh(item: str) -> int:
    """How heavy an item is."""
    return len(item)


class Weighs(Writer):
    """An agent with a tool and a memory."""

    tools = (weigh,)
    thread = "talk"

    def __init__(self) -> None:
        super().__init__(self._answer)

    async def _answer(self, task: Task) -> Answer:
        if not task.exchanges and len(task.transcript) < 2:
            calls = ToolCall("weigh", {"item": "teapot"}), ToolCall("weigh", {"thing": "cup"})
            return Answer("Let me see.", calls=calls)
        return Answer(f"After {len(task.exchanges)} calls: DONE")


class Judge(Writer):
    """An agent whose answers have a form, which it misses at first."""

    output_type = Verdict

    def __init__(self) -> None:
        super().__init__(self._answer)

    async def _answer(self, task: Task) -> Answer:
        if not task.exchanges:
            return Answer("Good!")
        return Answer('{"good": true, "why": "it is short", "confidence": 0.6}')

    def apply(self, state: Work, answer: Any, context: Any) -> Any:
        """The reason as a text, and what it was shown."""
        return {"text": answer.why, "notes": [context.to_prompt_string()]}


def derived(default: Any, kind: str, *triggers: dict[str, Any]) -> dict[str, Any]:
    """A variable that follows from what happens."""
    source = {"type": "derived", "default": default, "triggers": [*triggers]}
    return {"type": kind, "source": source}


SAYS_DONE = {"type": "agent_text", "agent": "Weighs", "match": {"contains": "DONE"}}
TONE = {"type": "string", "source": {"type": "static", "value": "calm"}}


@scene
async def a_flow_with_agents(world: World, where: FilePath) -> None:
    """Agents that are shown context from every source, part of which has no room; call a tool,
    once wrongly; remember what was said in their thread; and answer in a form at the second try."""
    shelf = InMemorySearch()
    shelf.seed(("Tea is a drink.", 0.9), ("Too far off.", 0.2))
    sources = [
        from_state("number", title="Number"),
        from_literal("Be kind.", priority=5),
        from_variables("tone"),
        from_retrieval(Library, query=lambda state: f"tea {state.number}", min_relevance=0.5),
        from_literal("Long and of little use. " * 20, priority=-1),
    ]
    variables = {
        "definitions": {"tone": TONE, "done": derived(False, "boolean", SAYS_DONE)},
        "agents": {"Weighs": {"variables": ["tone"]}},
    }
    flow = (
        Flow("agents", Work, variables=variables)
        .start_with(Weighs())
        .then(Weighs(), name="again")
        .then(
            Judge(),
            context=sources,
            budget=Budget(60),
            require_confidence=0.7,
            on_low_confidence=note("check"),
        )
    )

    async def script(app: Loom) -> None:
        app.register_collection(Library, shelf)
        await flowing(flow, Work(number=3))(app)

    await world.live(script)


@scene
async def a_flow_with_nested_forks(world: World, where: FilePath) -> None:
    """A fork in a fork is joined; in another one a path fails, its sibling is cut off, and the
    path around recovers; a path recovers from its own failure; all of them are joined."""
    begun = asyncio.Event()

    async def waits(state: Work, ctx: StepContext) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def bad(state: Work, ctx: StepContext) -> None:
        await begun.wait()
        raise ValueError("bad cannot")

    joined = Path(note("a")).fork(note("b"), Path(note("c")), join=note("inner"), name="joined")
    broken = made("d").fork(Path(waits), Path(note("e"), bad), join=note("never"), name="broken")
    broken.on_failure(Path(note("rescue")))
    mended = Path().then(failing("worse")).on_failure([note("mend")])
    flow = booking("nested").fork(joined, broken, mended, join=how_paths_ended)
    await world.live(flowing(flow.finally_(note("end"))))


@scene
async def a_flow_whose_fork_fails(world: World, where: FilePath) -> None:
    """A path of a fork fails for good while others never end, ask a person, or wait for their next
    attempt: they are cut off, what they did is made up for, and somebody is told."""
    gate = asyncio.Event()

    async def bad(state: Work, ctx: StepContext) -> None:
        await gate.wait()
        raise ValueError("bad cannot")

    flow = booking("failing").fork(
        made("left").then(forever, compensate=note("unforever")),
        Path().await_approval("boss"),
        Path().then(failing("slow"), retry=Retry(3, delay=50, jitter=False)),
        Path().then(bad, compensate=note("unbad")),
        join=how_paths_ended,
    )

    async def script(app: Loom) -> None:
        run = await app.start(flow.on_failure(note("tell")), user_id="u1", app_id="acme")
        await stored(run, *["step.started"] * 5, "question.asked", "timer.set")
        gate.set()
        await run.finished()

    await world.live(script)


# ------------------------------------------------------------------ people


@scene
async def a_flow_with_approvals(world: World, where: FilePath) -> None:
    """Somebody approves with a word more, somebody wants more time, somebody rejects, which leads
    to a path; then nobody answers, the next one is asked, and time ends the flow; a step asks."""
    options = [Option("yes", "Publish", "It goes out today."), Option("no", rejects=True)]
    last = escalate_to("board", context="Nobody else is there.", timeout=20, on_timeout=_late())
    flow = (
        booking("approvals")
        .then(seat)
        .await_approval("boss", context=lambda state: f"{state.text}?", name="first")
        .await_approval("press", options=options, on_rejection=note("rewrite"), name="second")
        .await_approval("chief", timeout=60, on_timeout=last, name="third")
        .finally_(note("never"))
    )
    said = replying("12A", {"decision": "approve", "instructions": "hurry"}, "defer", "no")

    def person(question: Any) -> Any:
        if question.due is not None:
            world.clock.advance(timedelta(seconds=61))
        return said(question)

    await world.live(flowing(flow, person=person))


def _late() -> list[Any]:
    return [note("remind"), complete()]


@scene
async def a_flow_rejected(world: World, where: FilePath) -> None:
    """An approval that leads nowhere but to the end; killed between the question and its answer,
    before the answer counts, and while it is made up for."""
    flow = booking("rejected").await_approval("boss", name="ok").on_failure(note("tell"))
    kills = (
        Kill("question.asked"),
        Kill("question.answered", before=True),
        Kill("approval.decided"),
        Kill("step.started"),
    )
    person = replying({"decision": "reject", "instructions": "too dear"})
    await world.lives(flowing(flow, person=person), *kills)


# ------------------------------------------------------------------ time


@scene
async def a_flow_of_retries(world: World, where: FilePath) -> None:
    """Attempts after ever longer times, with and without chance, an effect being had once; a step
    that takes too long, and an agent that does, whose failures are handled by their type."""

    async def slow(task: Task) -> Answer:
        let_time_pass()
        return await silent(task)

    handled = {LookupError: note("look"), TimeoutError: note("shrug")}
    flow = (
        Flow("retries", Work)
        .start_with(failing_until(4), retry=Retry(5, delay=2, factor=3, max_delay=10, jitter=False))
        .then(failing_until(3, "chancy"), retry=Retry(2, delay=8))
        .then(too_long, timeout=PATIENCE, retry=1, on_failure=handled, recover=True)
        .then(Writer(slow), timeout=PATIENCE, on_failure=note("sigh"), recover=True)
        .finally_(note("end"))
    )
    await world.live(flowing(flow), skips=True)


@scene
async def a_flow_killed_between_attempts(world: World, where: FilePath) -> None:
    """Killed after the first timer is set, when it has expired, and before the end."""
    flow = booking("attempts").then(failing_until(3), retry=Retry(2, delay=5, jitter=False))
    kills = Kill("timer.set"), Kill("timer.expired"), Kill("run.finished", before=True)
    await world.lives(flowing(flow), *kills, skips=True)


@scene
async def a_flow_out_of_time(world: World, where: FilePath) -> None:
    """A run that waits for a person beyond its time is made up for, and somebody is told."""
    flow = booking("late", timeout=100).await_approval("boss").then(note("pay"))
    await world.live(flowing(flow.on_failure([note("tell"), note("file")])), skips=True)


@scene
async def a_flow_known_from_before(world: World, where: FilePath) -> None:
    """The second run takes what the first came to, until its time is over; the third begins anew,
    and the fourth is refused by what must hold before a step."""
    holds = (lambda state: state.number < 9, "that is too much")
    flow = Flow("known", Work).start_with(double, cache=60, validate=holds).then(guess, cache=True)

    async def script(app: Loom) -> None:
        for number, later in ((1, 0), (1, 60), (1, 1), (9, 0)):
            world.clock.advance(timedelta(seconds=later))
            run = await app.start(flow, Work(number=number), user_id="u1", app_id="acme")
            await run.finished()

    await world.live(script)
