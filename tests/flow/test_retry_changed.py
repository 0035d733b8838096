"""A run of a flow is retried with a changed plan, if everything that ran has its place in it."""

from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import settings

from tests.flow.ledgers import Ledger, Trip, acting, stumble, travel, undoing
from tests.flow.test_retry import done
from tests.flow.test_retry_trees import Grown, grow, trees
from turnloom import Flow, Loom, Path, PlanChanged, Retry
from turnloom.flow.logic.flowing import FlowForm, FlowParts
from turnloom.flow.logic.migrating import earlier_form


def tour(ledger: Ledger, *names: str, last: dict[str, Any] | None = None, **first: Any) -> Any:
    """A flow: a step, a loop of two passes, a branch, a fork, and steps of these names."""

    async def more(state: Trip) -> dict[str, int]:
        return {"n": 1}

    body = Path().then(more).then(acting(ledger, "pack"))
    cases = {True: Path(acting(ledger, "bus")), False: Path(acting(ledger, "taxi"))}
    flow = (
        Flow("tour", Trip)
        .start_with(acting(ledger, "order"), **first)
        .repeat_until(lambda state: state.n == 2, body, max_iterations=3, name="door")
        .branch(lambda state: state.n == 2, cases, name="ride")
        .fork(
            Path(acting(ledger, "hotel")),
            Path().await_approval("boss", name="ok"),
            join=acting(ledger, "join"),
            name="stay",
        )
    )
    for name in names:
        flow = flow.then(acting(ledger, name), **(last or {}) if name == names[-1] else {})
    return flow


async def fail(app: Loom, ledger: Ledger, at: int = 19, **config: Any) -> Any:
    """A run whose step `pay` failed before it did anything, or later."""
    ledger.set_trap(at, stumble)
    run = await app.start(tour(ledger, "pay", "ship", **config), Trip())
    assert (await travel(run)).status == "failed"
    return run


@pytest.fixture
def store(tmp_path: FilePath) -> str:
    return f"sqlite:{tmp_path}/runs.db"


async def failed(store: str, ledger: Ledger, at: int = 19, **config: Any) -> str:
    """A run of another process that failed."""
    async with Loom(store=store) as app:
        return (await fail(app, ledger, at, **config)).id


CHANGES = {
    "a step more": ("pay", "wrap", "ship"),
    "a step less": ("pay",),
    "what failed is replaced": ("charge", "ship"),
    "something before what failed": ("check", "pay", "ship"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_follows_may_change(store: str, change: str) -> None:
    ledger = Ledger()
    run = await failed(store, ledger)
    names, first = CHANGES[change], len(ledger.entries)
    async with Loom(store=store) as app:
        app.register_flow(tour(ledger, *names))
        await app.handle(run).retry()
        outcome = await travel(app.handle(run))  # type: ignore[arg-type]
        (retried,) = [e.data for e in await app.history.events(run) if e.kind == "run.retried"]
    assert outcome.status == "finished"
    assert done(ledger)[first:] == [f"{name}2{part}" for name in names for part in "ab"]
    assert set(retried.changed) == {*names} ^ {"pay", "ship"}
    assert retried.pin is not None


async def test_settings_may_change(store: str) -> None:
    ledger = Ledger()
    run = await failed(store, ledger, 20)
    async with Loom(store=store) as app:
        app.register_flow(
            tour(
                ledger,
                "pay",
                "ship",
                last={"retry": Retry(3, delay=0)},
                compensate=undoing(ledger, "order"),
            )
        )
        ledger.set_trap(4, stumble)
        await app.handle(run).retry()
        assert (await travel(app.handle(run))).status == "finished"  # type: ignore[arg-type]
        (retried,) = [e.data for e in await app.history.events(run) if e.kind == "run.retried"]
    assert ledger.done_twice() == []
    assert {"order", "ship"} <= set(retried.changed)


async def test_another_process_continues_with_the_new_plan(store: str) -> None:
    ledger = Ledger()
    run = await failed(store, ledger)
    for names, trap in ((("pay", "wrap"), 5), (("pay", "wrap", "send"), 0)):
        ledger.set_trap(trap, stumble)
        async with Loom(store=store) as app:
            app.register_flow(tour(ledger, *names))
            await app.handle(run).retry()
            outcome = await travel(app.handle(run))  # type: ignore[arg-type]
            assert outcome.status == ("failed" if trap else "finished")
    assert ledger.done_twice() == []


@pytest.mark.parametrize("undo", [False, True])
async def test_it_is_replayed_where_both_plans_are_declared(undo: bool) -> None:
    ledger = Ledger()
    config = {"compensate": undoing(ledger, "order")} if undo else {}
    async with Loom(store="memory") as app:
        run = await fail(app, ledger, **config)
        app.register_flow(tour(ledger, "charge", "ship", **config))
        await run.retry()
        assert (await travel(run)).status == "finished"
        assert (await app.history.replay(run.id)).divergence is None


async def refused(store: str, run: str, flow: Any) -> str:
    """Why a flow does not fit a run, which stays as it is."""
    async with Loom(store=store) as app:
        app.register_flow(flow)
        before = await app.history.events(run)
        with pytest.raises(PlanChanged) as problem:
            await app.handle(run).retry()
        assert await app.history.events(run) == before
    return str(problem.value)


async def test_what_ran_must_have_its_place(store: str) -> None:
    ledger = Ledger()
    run = await failed(store, ledger, 20)
    assert "'order'" in await refused(
        store, run, Flow("tour", Trip).start_with(acting(ledger, "other"))
    )
    assert "'pay'" in await refused(store, run, tour(ledger, "check", "pay", "ship"))
    assert "'pay'" in await refused(store, run, tour(ledger, "ship"))
    short = Flow("tour", Trip).start_with(acting(ledger, "order")).then(acting(ledger, "ship"))
    assert "'more'" in await refused(store, run, short)


@trees
@settings(max_examples=10, deadline=None)
async def test_the_text_of_a_plan_tells_what_a_retry_does_again(
    choices: list[int], chosen: int
) -> None:
    async with Loom(store="memory") as app:
        labels = [*(await grow(app, choices, {}))[1].labels]
        grown = Grown(choices)
        flow = grown.flow()
        grown.traps = {labels[chosen % len(labels)]: 9, labels[len(labels) // 2]: 9}
        run = await app.start(flow, Trip())
        await travel(run)
        events = await app.history.events(run.id)
    form = FlowForm(flow.plan, FlowParts())
    earlier = earlier_form(flow.plan.text, form)
    before, now = earlier.begin(), form.begin()
    for event in events:
        for each, progress in ((earlier, before), (form, now)):
            fold = each.folds.get(event.data.__class__)
            if fold is not None:
                fold(progress, event.data)
    assert before == now
    stop = next((event for event in events if event.kind == "flow.stopped"), None)
    assert earlier.redo(events, stop) == form.redo(events, stop)
