"""Observers: they see every event of every form after it is stored, and disturb nothing."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doors.forms import FILES, FORMS, Note, answer, converse, stored
from tests.support.folders import write_folder
from tests.support.world import PATIENCE, Kill, Refitted, World, conversing
from turnloom import Answer, Event, Flow, Loom, StepContext, Task, UsageError
from turnloom.adapters.memory import MemoryStore
from turnloom.errors import StoreUnavailable
from turnloom.runtime.logic import codec
from turnloom.testing import ScriptedEngine
from turnloom.testing.contracts import until


class Plain:
    """Takes notes in a thread."""

    def __init__(self) -> None:
        self.seen: list[Event] = []
        self.runs: list[Any] = []
        self.threads: set[int] = set()

    def observe(self, event: Event, run: Any) -> None:
        self.threads.add(threading.get_ident())
        self.seen.append(event)
        self.runs.append(run)


class Async:
    """Takes notes in the loop."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    async def observe(self, event: Event) -> None:
        await asyncio.sleep(0)
        self.seen.append(event)


Form = Callable[[Loom, Path], Awaitable[str]]


@pytest.mark.parametrize("form", FORMS)
async def test_every_event_of_every_form_is_seen_in_order(form: str, tmp_path: Path) -> None:
    plain, awaited = Plain(), Async()
    async with Loom(store="memory", engine=answer, observers=[plain, awaited]) as app:
        run = await FORMS[form](app, tmp_path)
        events = await stored(app, run)
    assert plain.seen == awaited.seen == events
    assert {(each.id, each.tenant, each.user, each.form) for each in plain.runs} == {
        (run, "acme", "ann", form)
    }
    assert threading.get_ident() not in plain.threads
    for queue in app.observers:
        assert (queue.seen, queue.waiting) == (len(events), 0)
        assert (queue.failed, queue.dropped) == (0, 0)


class Raising:
    """Fails at each event, in ways of its own."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def observe(self, event: Event) -> None:
        raise self._error("it does not matter")


class RaisingAsync(Raising):
    async def observe(self, event: Event) -> None:
        raise self._error("it does not matter")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "broken",
    [
        Raising(ValueError),
        Raising(SystemExit),
        RaisingAsync(ValueError),
        RaisingAsync(SystemExit),
        RaisingAsync(asyncio.CancelledError),
    ],
    ids=lambda each: f"{type(each).__name__}-{each._error.__name__}",
)
async def test_an_observer_that_raises_harms_nobody(
    form: str, broken: Raising, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = Plain()
    async with Loom(store="memory", engine=answer, observers=[broken, other]) as app:
        run = await FORMS[form](app, tmp_path)
        events = await stored(app, run)
    assert other.seen == events
    queue = app.observers[0]
    assert (queue.seen, queue.failed, queue.dropped) == (len(events), len(events), 0)
    told = [each for each in caplog.records if each.name == "turnloom.observers"]
    assert len(told) == len(events)


class Slow:
    """Blocks its thread until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.seen: list[Event] = []

    def observe(self, event: Event) -> None:
        self.go.wait()
        self.seen.append(event)


class SlowAsync:
    """Waits in the loop until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.seen: list[Event] = []

    async def observe(self, event: Event) -> None:
        await self.go.wait()
        self.seen.append(event)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", [Slow, SlowAsync])
async def test_a_slow_observer_slows_no_run_and_what_does_not_fit_is_dropped(
    form: str, kind: type[Slow | SlowAsync], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow, other = kind(), Plain()
    async with Loom(
        store="memory", engine=answer, observers=[slow, other], observer_queue=2
    ) as app:
        run = await FORMS[form](app, tmp_path)
        events = await stored(app, run)
        queue = app.observers[0]
        assert queue.dropped > 0
        assert queue.waiting <= 2
        assert not slow.seen
        slow.go.set()
    assert queue.seen + queue.dropped == len(events)
    assert slow.seen == [event for event in events if event in slow.seen], "in order"
    assert len(slow.seen) == queue.seen
    told = [each.args for each in caplog.records if each.name == "turnloom.observers"]
    assert (kind.__name__, queue.dropped) in told


class Stubborn:
    """Never ends, and does not let itself be cancelled."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def observe(self, event: Event) -> None:
        while not self.end.is_set():
            try:
                await self.end.wait()
            except asyncio.CancelledError:
                continue


@pytest.mark.parametrize("kind", [Slow, SlowAsync, Stubborn])
async def test_closing_waits_for_observers_within_a_bound(kind: Any, tmp_path: Path) -> None:
    stuck = kind()
    app = Loom(store="memory", engine=answer, observers=[stuck], observer_drain=0.01)
    async with asyncio.timeout(PATIENCE):
        run = await converse(app, tmp_path)
        events = await stored(app, run)
        await app.aclose()
    queue = app.observers[0]
    assert queue.seen == 1
    assert queue.dropped == len(events) - 1
    if isinstance(stuck, Stubborn):
        stuck.end.set()
    else:
        stuck.go.set()


async def test_closing_drains_what_waits(tmp_path: Path) -> None:
    class Steady(Plain):
        def observe(self, event: Event, run: Any) -> None:
            released.wait()
            super().observe(event, run)

    released, steady = threading.Event(), Steady()
    app = Loom(store="memory", engine=answer, observers=[steady], observer_drain=PATIENCE)
    run = await converse(app, tmp_path)
    events = await stored(app, run)
    assert app.observers[0].waiting >= len(events) - 1
    released.set()
    await app.aclose()
    assert steady.seen == events
    assert app.observers[0].dropped == 0


async def test_a_burst_is_told_once_and_the_next_one_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow()
    async with Loom(store="memory", engine=answer, observers=[slow], observer_queue=1) as app:
        queue = app.observers[0]
        for _ in range(2):
            slow.go.clear()
            await converse(app, tmp_path)
            slow.go.set()
            await until(lambda: not queue.waiting)
    told = [each.args for each in caplog.records if each.name == "turnloom.observers"]
    assert len(told) == 2
    assert sum(each[1] for each in told if each) == queue.dropped


async def test_only_what_is_stored_is_seen(tmp_path: Path) -> None:
    world, seen = World(engine=ScriptedEngine({"Clerk": ["Done."]})), Async()
    folder = write_folder(tmp_path, FILES)
    kill = Kill("turn.finished", before=True)
    assert not await world.live(conversing(folder), kill, observers=[seen])
    (run,) = await world.logs()
    assert seen.seen == await world.read(run)
    after = Async()
    assert await world.live(conversing(folder), observers=[after])
    assert seen.seen + after.seen == await world.read(run)


class FullLog:
    """Stores nothing behind a position."""

    def __init__(self, log: Any, most: int) -> None:
        self._log, self._most = log, most

    async def append(self, run: Any, events: Any, expected: int, fence: Any = None) -> Any:
        if expected >= self._most:
            raise StoreUnavailable("The disk is full.")
        return await self._log.append(run, events, expected, fence)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def test_what_could_not_be_stored_is_not_seen(tmp_path: Path) -> None:
    memory, seen = MemoryStore(codec()), Async()
    store = Refitted(memory, log=FullLog(memory.log, 3))
    async with Loom(store=store, engine=answer, observers=[seen]) as app:
        run = await app.start(write_folder(tmp_path, FILES))
        with pytest.raises(StoreUnavailable):
            await run.finished()
        events = list(await app.history.events(run.id))
    assert seen.seen == events


async def test_a_run_that_is_answered_and_cancelled_is_seen_whole(tmp_path: Path) -> None:
    begun, seen = asyncio.Event(), Async()

    async def hang(task: Task) -> Answer:
        begun.set()
        await asyncio.Event().wait()
        return Answer("Never.")

    async with Loom(store=str(tmp_path / "runs.db"), engine=hang, observers=[seen]) as app:
        run = await app.start(write_folder(tmp_path, FILES))
        await begun.wait()
        assert await run.cancel(reason="enough")
        assert (await run.finished()).kind == "run.cancelled"
        events = list(await app.history.events(run.id))
    assert seen.seen == events


class LateLog:
    """Stores an answer, and does not come to say so before it is interrupted."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.reached = asyncio.Event()

    async def append(self, run: Any, events: Any, expected: int, fence: Any = None) -> Any:
        stored = await self._log.append(run, events, expected, fence)
        if not self.reached.is_set() and any(each.kind == "model.answered" for each in events):
            self.reached.set()
            await asyncio.Event().wait()
        return stored

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


async def test_what_is_stored_in_the_moment_of_an_interruption_is_seen(tmp_path: Path) -> None:
    memory, seen = MemoryStore(codec()), Async()
    log = LateLog(memory.log)
    async with Loom(store=Refitted(memory, log=log), engine=answer, observers=[seen]) as app:
        run = await app.start(write_folder(tmp_path, FILES))
        await log.reached.wait()
        await run.cancel()
        await run.finished()
        events = list(await app.history.events(run.id))
    assert "model.answered" in [event.kind for event in seen.seen]
    assert seen.seen == events


async def test_a_run_that_is_given_up_without_its_code_is_seen() -> None:
    store, seen = MemoryStore(codec()), Async()
    flow = Flow("gone", Note).start_with(draft).await_approval("boss").finally_(publish)
    other = Flow("gone", Note).start_with(publish)
    async with Loom(store=store) as app:
        run = await app.start(flow, Note())
        await run.outcome()
    async with Loom(store=store, observers=[seen]) as app:
        app.register_flow(other)
        before = len(await app.history.events(run.id))
        assert await app.handle(run.id).cancel()
        events = list(await app.history.events(run.id))
    assert seen.seen == events[before:]
    assert seen.seen[-1].kind == "run.cancelled"


def draft(state: Note, ctx: StepContext) -> dict[str, str]:
    return {"text": "Draft."}


def publish(state: Note, ctx: StepContext) -> dict[str, str]:
    return {}


class Odd:
    def __init__(self, observe: Any) -> None:
        self.observe = observe


@pytest.mark.parametrize(
    "observers",
    [
        [object()],
        [Odd(None)],
        [Odd(5)],
        [Odd(lambda: None)],
        [Odd(lambda a, b, c: None)],
        [Plain],
        Plain(),
        "plain",
        5,
    ],
    ids=["nothing", "none", "a number", "no event", "too much", "a class", "alone", "text", "5"],
)
def test_what_cannot_observe_is_refused_at_once(observers: Any) -> None:
    with pytest.raises(UsageError):
        Loom(store="memory", observers=observers)


async def test_a_plain_function_that_gives_an_awaitable_is_a_failure(tmp_path: Path) -> None:
    async def later(event: Event) -> None:
        raise AssertionError("it is not awaited")

    async with Loom(
        store="memory", engine=answer, observers=[Odd(lambda event: later(event))]
    ) as app:
        await converse(app, tmp_path)
    assert app.observers[0].failed == app.observers[0].seen > 0


async def test_without_observers_the_log_is_written_directly(tmp_path: Path) -> None:
    async with Loom(store="memory", engine=answer) as app:
        await converse(app, tmp_path)
        assert app.observers == ()
