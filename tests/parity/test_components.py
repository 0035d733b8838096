"""Components stand around turns and calls in every form, and see the turn they stand around."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.board.reaching import reachable
from tests.parity.forms.stages import (
    FILES,
    Ask,
    Order,
    Work,
    close,
    hello,
    react,
    talk,
    walk,
    write,
)
from tests.support.logs import essence
from turnloom import Answer, Flow, Loom, Task, TurnContext
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import UsageError
from turnloom.kernel.sealed import sealed
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec
from turnloom.testing import (
    CrashingEngine,
    CrashingScheduler,
    CrashingStore,
    FakeClock,
    FakeEntropy,
    Fuse,
)

Turn = Callable[[], Awaitable[None]]
Call = Callable[[Task], Awaitable[Any]]


class Around:
    """Keeps all that it is given, and may be killed before and after it continues."""

    def __init__(self, fuse: Fuse | None = None) -> None:
        self.given: list[Any] = []
        self.states: list[dict[str, Any]] = []
        self._fuse = fuse or Fuse()

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        self.given += [ctx, call_next]
        self.states.append(dict(ctx.state))
        ctx.state["mood"] = "good"
        self._fuse.point()
        await call_next()
        self._fuse.point()

    async def around_call(self, task: Task, call_next: Call) -> Answer:
        self.given += [task, call_next]
        self._fuse.point()
        answer = await call_next(task)
        self._fuse.point()
        return msgspec.structs.replace(answer, text=answer.text.upper())


# What the folder's function makes; there is no other way from a test into a folder's code.
MADE: list[Around] = []
CODE = {
    "work.py": FILES["work.py"]
    + "\nfrom tests.parity.test_components import MADE\n\ndef around():\n    return MADE[-1]\n"
}
CHOICE = [{"file": "work.py", "function": "around"}]


class Variables:
    """An engine that takes the variables of the run."""

    takes_variables = True

    async def __call__(self, task: Task) -> Answer:
        assert task.variables is not None
        task.variables["mood"] = task.variables.idempotency_key
        assert await task.variables.once("wink", lambda: 1) == 1
        return Answer("hello")


DECLARED = {"definitions": {"mood": {"type": "string", "source": {"type": "derived"}}}}


async def in_a_conversation(around: Around, where: Path, **more: Any) -> Any:
    MADE.append(around)
    return await talk(where, {"components": CHOICE}, {"context_variables": DECLARED}, CODE, **more)


async def on_a_board(around: Around, where: Path, **more: Any) -> Any:
    board = {"variables": DECLARED}
    return await react(lambda agent: agent.with_components(around), board=board, **more)


async def in_a_flow(around: Around, where: Path, **more: Any) -> Any:
    return await walk(Ask().with_components(around), {"variables": DECLARED}, app=more)


FORMS: dict[str, Callable[..., Awaitable[Any]]] = {
    "conversation": in_a_conversation,
    "board": on_a_board,
    "flow": in_a_flow,
}

# Where the types of what components are given live: nothing of the driver, nothing that is shared.
THEIRS = (
    "turnloom.agents.spec",
    "turnloom.assembly.spec",
    "turnloom.assembly.logic",
    "turnloom.board.spec",
    "turnloom.board.service.handle",
    "turnloom.errors",
    "turnloom.kernel.sealed",
    "turnloom.runtime.around.components",
    "turnloom.variables.spec",
)


def strangers(given: list[Any]) -> set[str]:
    """The types of ours that are reached and that a turn alone does not have."""
    modules = {type(value).__module__ for each in given for value in reachable(each)}
    return {name for name in modules if name.startswith("turnloom.")} - {
        name for name in modules if name.startswith(THEIRS)
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("engine", [hello, Variables()], ids=["plain", "with variables"])
async def test_nothing_that_a_component_is_given_leads_beyond_its_turn(
    form: str, engine: Any, tmp_path: Path
) -> None:
    around = Around()
    seen = await FORMS[form](around, tmp_path, engine=engine)
    assert seen.said == "HELLO"
    assert len(around.given) == 4
    assert sum(1 for each in around.given for _ in reachable(each)) > 100
    assert strangers(around.given) == set()
    messages = [value for each in around.given for value in reachable(each) if type(value) is list]
    assert not any(type(item).__name__ == "Message" for each in messages for item in each)


def test_a_way_beyond_would_be_found() -> None:
    store = MemoryStore(codec())
    assert strangers([store.log.read]) >= {"turnloom.adapters.memory.log"}
    assert strangers([sealed(store.log.read)]) == set()


@pytest.mark.parametrize("form", FORMS)
async def test_what_variables_a_component_passes_on_are_written(form: str, tmp_path: Path) -> None:
    seen = await FORMS[form](Around(), tmp_path, engine=Variables())
    (run,) = {event.run for event in seen.events}
    assert seen.data("context.changed", "name") == ["mood"]
    (written,) = seen.data("context.changed", "value")
    assert written.startswith(f"{run}/t1/")


async def test_a_turn_that_asks_is_entered_again_with_nothing_in_its_state(tmp_path: Path) -> None:
    around = Around()
    MADE.append(around)
    tool = {"agent": "A", "file": "work.py", "function": "confirm"}
    parts = {"tools": {"tools": [tool]}}
    engine = {"type": "functions", "file": "work.py", "function": "calls"}
    seen = await talk(tmp_path, {"components": CHOICE, "engine": engine}, parts, CODE)
    assert seen.data("question.answered", "value") == [{"sure": True}]
    assert around.states == [{}, {}], "as after a kill, which leaves nothing of it"


class Raises(Around):
    """Fails before it continues."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        raise ValueError("no")


class Stops(Around):
    """Does not continue."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        pass


class Repeats(Around):
    """Continues twice."""

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        await call_next()
        await call_next()


class Breaks(Around):
    """Fails around the call."""

    async def around_call(self, task: Task, call_next: Call) -> Answer:
        raise KeyError("no")


WRONG = {Raises: "ValueError", Stops: "UsageError", Repeats: "UsageError", Breaks: "KeyError"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda kind: kind.__name__)
async def test_a_component_that_fails_fails_the_turn(
    wrong: type[Around], form: str, tmp_path: Path
) -> None:
    seen = await FORMS[form](wrong(), tmp_path)
    (error,) = seen.data("turn.finished", "error")
    assert error.partition(":")[0] == WRONG[wrong]


async def test_each_turn_has_a_state_of_its_own(tmp_path: Path) -> None:
    talked, walked, reacted = Around(), Around(), Around()
    MADE.append(talked)
    rule = {"source_agent": "A", "target_agent": "A", "handoff_type": "after_work"}
    parts = {"handoffs": [rule], "orchestrator": {"max_turns": 2}}
    await talk(tmp_path, {"components": CHOICE}, parts, CODE)
    flow = Flow("walk", Work).start_with(Ask().with_components(walked), name="A")
    flow.then(Ask().with_components(walked), name="B").finally_(close)
    async with Loom(store="memory", engine=hello) as app:
        await app.run(flow, Work())
        board = app.board()
        board.agent("A").consumes(Order).with_components(reacted)
        board.agent("B").consumes(Order).with_components(reacted)
        await board.publish(Order())
        await board.run_until_idle()
    for around in (talked, walked, reacted):
        assert around.states == [{}, {}]


# ------------------------------------------------------------------ of the app


class Names:
    """Notes that it is entered and left."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name, self._notes = name, notes

    async def around_turn(self, ctx: TurnContext, call_next: Turn) -> None:
        self._notes.append(f"{self._name} turn {ctx.turn}")
        await call_next()

    async def around_call(self, task: Task, call_next: Call) -> Answer:
        self._notes.append(f"{self._name} call of {task.agent}")
        return await call_next(task)


ENTERED = ["app turn 1", "own turn 1", "app call of A", "own call of A"]


async def test_components_of_the_app_stand_outermost(tmp_path: Path) -> None:
    for form, play in FORMS.items():
        notes: list[str] = []
        own: Any = Names("own", notes)
        await play(own, tmp_path / form, components=[Names("app", notes)])
        assert notes == ENTERED, form


async def test_one_that_is_the_apps_and_an_agents_stands_there_once(tmp_path: Path) -> None:
    for form, play in FORMS.items():
        notes: list[str] = []
        both: Any = Names("app", notes)
        await play(both, tmp_path / form, components=[both])
        assert notes == [ENTERED[0], ENTERED[2]], form


async def test_components_of_the_app_stand_around_calls_that_pick_a_speaker(
    tmp_path: Path,
) -> None:
    notes: list[str] = []
    agents = {name: {"system_message": "Hi."} for name in "ABC"}
    setup = {"orchestration_pattern": "AutoPattern", "max_turns": 2, "initial_agent": "A"}

    async def picks(task: Task) -> Answer:
        return Answer(output={"agent": "B"}) if task.agent == "selector" else Answer("hello")

    parts = {"agents": agents, "orchestrator": setup}
    seen = await talk(tmp_path, parts=parts, engine=picks, components=[Names("app", notes)])
    assert seen.data("speaker.picked", "picked") == ["B"]
    assert notes == [
        *("app turn 1", "app call of A", "app call of selector"),
        *("app turn 2", "app call of B"),
    ]


@pytest.mark.parametrize("wrong", [5, [5], [Names], [object()], "loud"])
def test_what_is_no_component_is_refused_when_the_app_is_made(wrong: Any) -> None:
    with pytest.raises(UsageError):
        Loom(store="memory", components=wrong)


def test_a_component_of_the_app_is_given_once() -> None:
    twice = Around()
    with pytest.raises(UsageError):
        Loom(store="memory", components=[twice, twice])


def test_what_observes_is_no_component() -> None:
    class Both(Around):
        def observe(self, event: Any) -> None: ...

    with pytest.raises(UsageError):
        Loom(store="memory", components=[Both()])


# ------------------------------------------------------------------ kills


async def converse(app: Loom, where: Path, fuse: Fuse) -> None:
    """Begin a conversation, or continue it, to its end."""
    MADE.append(Around(fuse))
    runs = await app.runs()
    run = await (app.resume(runs[0].run) if runs else app.start(where / "Talk"))
    await run.finished()


async def reacting(app: Loom, where: Path, fuse: Fuse) -> None:
    """Publish an order on a board, or resume that, until nothing is left."""
    board = app.board("desk")
    board.agent("A").consumes(Order).with_components(Around(fuse))
    await board.publish(Order(), id="order", correlation_id="desk-1")
    await board.resume()
    await board.run_until_idle()


async def flowing(app: Loom, where: Path, fuse: Fuse) -> None:
    """Begin a flow, or continue it, to its end."""
    step = Ask().with_components(Around(fuse))
    built = Flow("walk", Work).start_with(step, name="A").finally_(close)
    app.register_flow(built)
    runs = await app.runs()
    run = await (app.resume(runs[0].run) if runs else app.start(built, Work()))
    await run.finished()


SCRIPTS = {"conversation": converse, "board": reacting, "flow": flowing}


async def live(form: str, where: Path, *kills: int) -> tuple[list[Any], int]:
    """What is on record after lives that are killed after so many points, the last one not; and how
    many points that has."""
    store, clock, entropy = MemoryStore(codec()), FakeClock(), FakeEntropy("run")
    fuse = Fuse()
    for points in (*kills, None):
        fuse, scheduler = Fuse(points), CrashingScheduler(clock)
        async with Loom(
            store=CrashingStore(store, fuse),
            engine=CrashingEngine(hello, fuse),
            scheduler=scheduler,
            clock=clock,
            entropy=entropy,
        ) as app:
            await scheduler.outlives(SCRIPTS[form](app, where, fuse))
    runs = [first.run for first, _ in await store.log.runs("local", 1000)]
    return [
        each for run in runs for each in essence(await store.log.read(RunKey("local", run)))
    ], fuse.passed


def told(log: list[Any]) -> list[Any]:
    """A log without what names its run, which one that was never begun has taken along."""
    return [(id, kind, actor) for id, kind, actor, *_ in log]


@pytest.mark.repeats
@pytest.mark.parametrize("form", SCRIPTS)
async def test_killed_at_every_point_with_components_around(form: str, tmp_path: Path) -> None:
    agents = {"A": {"system_message": "Hi.", "components": CHOICE}}
    write(tmp_path, {"agents": agents}, CODE)
    expected, points = await live(form, tmp_path)
    said = [data["text"] for _, kind, *_, data in expected if kind == "agent.text"]
    assert said == ["HELLO"] and points > 8
    for kill in range(points):
        log, _ = await live(form, tmp_path, kill)
        assert told(log) == told(expected), f"killed after {kill} points"
        assert [data["text"] for _, kind, *_, data in log if kind == "agent.text"] == ["HELLO"]
