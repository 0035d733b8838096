"""Through the public face, the runs of another tenant are as runs that do not exist."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.reaction.scenes import SOON
from tests.support.world import at_rest
from tests.tenants.deeds import canary
from tests.tenants.scenes import ARTIFACT, CORRELATION, Order, Program, logs, program
from turnloom import Board, Loom, Run, TurnloomError
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.app.explanations import Explanations
from turnloom.app.history import History
from turnloom.board.spec import Artifact, FilterConfig, Reader
from turnloom.errors import UsageError
from turnloom.log.spec import RunKey
from turnloom.runtime.logic import codec

UNKNOWN = "never-begun"

Call = Callable[[Program, str], Awaitable[Any]]


def run(asked: Callable[[Run], Awaitable[Any]]) -> Call:
    """What is asked of the handle of a run."""
    return lambda program, id: asked(program.app.handle(id, app_id=program.tenant))


async def first(handle: Run) -> Any:
    async for event in handle.events():
        return event


async def first_said(handle: Run) -> Any:
    async for event in handle.chat():
        return event


async def verify(whose: Program, id: str) -> Any:
    return [each async for each in whose.app.history.verify(id, app_id=whose.tenant)]


async def answer(handle: Run) -> Any:
    question = await handle.question()
    to = question.to if question else None
    return await handle.answer(None, "approve" if to == "boss" else "accepted", user_id=to)


# Methods that are told which run is meant: each refuses the run of another tenant.
OF_RUNS: dict[str, Call] = {
    "Loom.resume": lambda p, id: p.app.resume(id, app_id=p.tenant),
    "Run.events": run(first),
    "Run.chat": run(first_said),
    "Run.summary": run(lambda handle: handle.summary()),
    "Run.question": run(lambda handle: handle.question()),
    "Run.questions": run(lambda handle: handle.questions()),
    "Run.answer": run(lambda handle: handle.answer(None, "accepted")),
    "Run.answered_by": run(lambda handle: handle.answered_by("nothing")),
    "Run.send": run(lambda handle: handle.send("Hello")),
    "Run.cancel": run(lambda handle: handle.cancel()),
    "Run.feedback": run(lambda handle: handle.feedback("q", score=1)),
    "Run.retry": run(lambda handle: handle.retry()),
    "Run.fork": run(lambda handle: handle.fork(1)),
    "Run.not_undone": run(lambda handle: handle.not_undone()),
    "Run.plan": run(lambda handle: handle.plan()),
    "Run.outcome": run(lambda handle: handle.outcome()),
    "Run.finished": run(lambda handle: handle.finished()),
    "Board.retry": lambda p, id: p.board.retry(id),
    "Board.cancel": lambda p, id: p.board.cancel(id),
    "History.events": lambda p, id: p.app.history.events(id, app_id=p.tenant),
    "History.verify": verify,
    "History.definition": lambda p, id: p.app.history.definition(id, app_id=p.tenant),
    "History.state": lambda p, id: p.app.history.state(id, app_id=p.tenant),
    "History.replay": lambda p, id: p.app.history.replay(id, app_id=p.tenant),
    "History.backtest": lambda p, id: p.app.history.backtest(p.board, [id], app_id=p.tenant),
    "Explanations.turn": lambda p, id: p.app.explain.turn(id, 1, app_id=p.tenant),
    "Explanations.variable": lambda p, id: p.app.explain.variable(id, "user_id", app_id=p.tenant),
    "Explanations.route": lambda p, id: p.app.explain.route(id, 1, app_id=p.tenant),
    "Explanations.diff": lambda p, id: p.app.explain.diff(id, 1, 1, app_id=p.tenant),
    "Explanations.blame": lambda p, id: p.app.explain.blame(id, "nothing at all", app_id=p.tenant),
    "Explanations.what_if": lambda p, id: p.app.explain.what_if(id, 1, 1, 0.5, app_id=p.tenant),
    "Explanations.cost": lambda p, id: p.app.explain.cost(id, app_id=p.tenant),
    "Explanations.page": lambda p, id: p.app.explain.page(id, app_id=p.tenant),
    "Explanations.timeline": lambda p, id: p.app.explain.timeline(id, app_id=p.tenant),
}

# Those of them that change a run, or wait for its end.
CHANGING = {
    "Run.answer",
    "Run.send",
    "Run.cancel",
    "Run.finished",
    "Run.retry",
    "Run.fork",
    "Run.not_undone",
    "Board.retry",
    "Board.cancel",
}


async def _read_all(board: Board) -> list[Artifact]:
    return [each async for each in board.iter_artifacts(embed_meta=True)]


# Methods that give what a tenant has.
OF_TENANTS: dict[str, Callable[[Program], Awaitable[Any]]] = {
    "Loom.runs": lambda p: p.app.runs(app_id=p.tenant),
    "History.named": lambda p: p.app.history.named("", app_id=p.tenant),
    "Board.query_artifacts": lambda p: p.board.query_artifacts(embed_meta=True, count=True),
    "Board.iter_artifacts": lambda p: _read_all(p.board),
    "Board.get": lambda p: p.board.get(ARTIFACT),
    "Board.summary": lambda p: p.board.summary(),
    "Board.read_as": lambda p: p.board.read_as(
        Reader(tenant=p.tenant, role="developer")
    ).query_artifacts(embed_meta=True, count=True),
}

# Methods that read nothing of a run that is there, each with its reason.
EXEMPT = {
    "History.prune": "its contract tries it: it removes nothing of another tenant",
    "Loom.start": "it begins a run",
    "Loom.run": "it begins a run",
    "Loom.handle": "it only names a run; what is asked of it is tried above",
    "Loom.board": "it declares",
    "Loom.index": "it is about a folder",
    "Loom.register_flow": "it declares",
    "Loom.register_collection": "it declares",
    "Loom.collection": "it is about documents",
    "Loom.as_principal": "its view is tried with principals",
    "Loom.aclose": "it closes",
    "Run.holder": "it is tried below: no process drives a run that is not there",
    "Run.listening": "it is tried below: it refuses nothing, and hears nothing",
    "Board.agent": "it declares",
    "Board.register": "it declares",
    "Board.value": "it reads JSON, and no board",
    "Board.publish": "it is tried below",
    "Board.publish_many": "it publishes one by one",
    "Board.invoke": "it begins a run",
    "Board.run_until_idle": "it waits for what this program began",
    "Board.run_until": "it waits for a function of the program",
    "Board.resume": "it is tried with programs",
    "Board.close": "it closes",
}


def test_every_public_method_is_tried() -> None:
    there = {
        f"{face.__name__}.{name}"
        for face in (Loom, Run, Board, History, Explanations)
        for name, _ in inspect.getmembers(face, inspect.isfunction)
        if not name.startswith("_")
    }
    assert there == OF_RUNS.keys() | OF_TENANTS.keys() | EXEMPT.keys()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    made = MemoryStore(codec())
    store = made if request.param == "memory" else SqliteStore(tmp_path / "turnloom.db", codec())
    yield store
    await store.aclose()


async def refusal(call: Call, asks: Program, id: str) -> tuple[type, str]:
    """What a call is refused with; the id does not matter."""
    with pytest.raises(TurnloomError) as raised:
        await call(asks, id)
    return type(raised.value), str(raised.value).replace(repr(id), "ID").replace(id, "ID")


async def test_the_runs_of_others_are_as_if_they_did_not_exist(store: Any, tmp_path: Path) -> None:
    async with program(store, "ann") as ann, program(store, "bob") as bob:
        runs = await ann.begin(tmp_path)
        before = await logs(store, "ann")
        for method, call in OF_RUNS.items():
            unknown = await refusal(call, bob, UNKNOWN)
            for id in [*runs, *before]:
                assert await refusal(call, bob, id) == unknown, method
        artifacts = [await refusal(OF_RUNS["Board.retry"], bob, id) for id in (ARTIFACT, "payment")]
        assert set(artifacts) == {await refusal(OF_RUNS["Board.retry"], bob, UNKNOWN)}
        page, _ = await ann.board.query_artifacts(FilterConfig(limit=1))
        with pytest.raises(UsageError):
            await bob.board.query_artifacts(FilterConfig(limit=1), cursor=page.cursor)
        for method, ask in OF_TENANTS.items():
            assert canary("ann").encode() not in encoded(await ask(bob)), method
        assert await bob.app.runs(app_id="bob") == [] and await bob.board.get(ARTIFACT) is None
        assert await logs(store, "ann") == before
        for id in before:
            assert not await store.inbox.pending(RunKey("ann", id))
        await finish(ann, runs)


async def finish(whose: Program, runs: list[str]) -> None:
    """Go on with runs that were left alone: they take their answers, and end."""
    for id in runs[:3]:
        handle = whose.app.handle(id, app_id=whose.tenant)
        await answer(handle)
        assert (await handle.finished()).kind == "run.finished"
    assert await whose.board.retry(runs[3]) == 1
    await whose.board.run_until_idle(SOON, raise_errors=False)


async def given(called: Awaitable[Any]) -> bytes:
    """What a call gives, or how it is refused."""
    try:
        return encoded(await called)
    except TurnloomError as error:
        return str(error).encode()


def encoded(value: Any) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Run):
        return value.id
    return value.model_dump() if hasattr(value, "model_dump") else repr(value)


async def test_runs_of_one_id_do_not_meet(store: Any, tmp_path: Path) -> None:
    """Each tenant reads its own, and what one does to its own the other does not notice."""
    async with program(store, "ann") as ann, program(store, "bob") as bob:
        runs = await ann.begin(tmp_path)
        before = await logs(store, "ann")
        assert await bob.begin(tmp_path) == runs
        assert (await logs(store, "bob")).keys() == before.keys()
        for method in sorted(OF_RUNS.keys() - CHANGING):
            for id in runs[1:2] if method == "Run.outcome" else before:
                found = await given(OF_RUNS[method](bob, id))
                assert canary("ann").encode() not in found, (method, id)
        for id in runs:
            assert canary("bob").encode() in await given(OF_RUNS["History.events"](bob, id))
        for method, ask in OF_TENANTS.items():
            assert canary("ann").encode() not in encoded(await ask(bob)), method
        reading = {name for name in OF_TENANTS if name.startswith("Board.")}
        for method in reading - {"Board.read_as"}:
            assert canary("bob").encode() in encoded(await OF_TENANTS[method](bob)), method
        await finish(bob, runs)
        again = await bob.board.publish(Order(item=canary("bob")), correlation_id=CORRELATION)
        await bob.board.run_until_idle(SOON, raise_errors=False)
        assert again.run is not None and await bob.board.cancel(again.run) == 1
        assert await bob.app.handle(runs[3], app_id="bob").cancel()
        assert await logs(store, "ann") == before
        await finish(ann, runs)


async def test_a_listener_hears_its_own_tenant_only(store: Any, tmp_path: Path) -> None:
    heard: dict[str, list[str]] = {"ann": [], "bob": []}
    async with program(store, "ann") as ann:
        talk, *_ = await ann.begin(tmp_path)
        handles = {tenant: ann.app.handle(talk, app_id=tenant) for tenant in heard}
        listen = {name: (lambda delta, n=name: heard[n].append(delta.text)) for name in heard}
        known = len(await ann.app.history.events(talk, app_id="ann"))
        with handles["ann"].listening(listen["ann"]), handles["bob"].listening(listen["bob"]):
            await handles["ann"].answer(None, "accepted")
            await at_rest(handles["ann"], known)
    assert "".join(heard["ann"]) == "Thank you." and heard["bob"] == []


async def test_no_process_drives_a_run_of_another_tenant(store: Any, tmp_path: Path) -> None:
    async with program(store, "ann") as ann:
        talk, *_ = await ann.begin(tmp_path)
        key = RunKey("ann", talk)
        async with store.claims.claim(key):
            found = {id: await ann.app.handle(talk, app_id=id).holder() for id in ("ann", "bob")}
            unknown = await ann.app.handle(UNKNOWN, app_id="bob").holder()
    assert found["ann"] is not None
    assert found["bob"] is unknown is None
