"""Every public method of a principal's view: what is not theirs is not found."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.flow.scenes import Work
from tests.support.world import at_rest
from tests.tenants.deeds import canary
from tests.tenants.scenes import ARTIFACT, Order, Program, flow, logs, program
from tests.tenants.test_face import encoded
from turnloom import (
    BoardView,
    Explanations,
    Forbidden,
    History,
    Loom,
    LoomView,
    Principal,
    RagCollection,
    Reader,
    Run,
    TurnloomError,
    UnknownRun,
)
from turnloom.adapters.memory import MemoryStore
from turnloom.adapters.sqlite import SqliteStore
from turnloom.runs.principal import ROLES, Scope
from turnloom.runtime.logic import codec
from turnloom.testing import InMemorySearch
from turnloom.testing.contracts.artifacts.samples import NOON

UNKNOWN = "never-begun"

Call = Callable[[LoomView, str], Awaitable[Any]]


async def first(stream: AsyncIterator[Any]) -> Any:
    async for each in stream:
        return each


async def every(stream: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in stream]


async def listened(view: LoomView, run: str) -> Any:
    """Deltas of a run; a run that is not there has none."""
    heard: list[Any] = []
    with view.handle(run).listening(heard.append):
        return heard


# Methods that are told which run is meant, and the scopes that they need.
OF_RUNS: dict[str, tuple[Call, tuple[Scope, ...]]] = {
    "LoomView.resume": (lambda v, run: v.resume(run), ("runs:write",)),
    "Run.chat": (lambda v, run: first(v.handle(run).chat()), ("runs:read",)),
    "Run.summary": (lambda v, run: v.handle(run).summary(), ("runs:read",)),
    "Run.question": (lambda v, run: v.handle(run).question(), ("runs:read",)),
    "Run.questions": (lambda v, run: v.handle(run).questions(), ("runs:read",)),
    "Run.answer": (lambda v, run: v.handle(run).answer(None, "accepted"), ("runs:write",)),
    "Run.answered_by": (lambda v, run: v.handle(run).answered_by("t1/ask"), ("runs:read",)),
    "Run.send": (lambda v, run: v.handle(run).send("Hello"), ("runs:write",)),
    "Run.cancel": (lambda v, run: v.handle(run).cancel(), ("runs:write",)),
    "Run.feedback": (lambda v, run: v.handle(run).feedback("q", score=1), ("runs:write",)),
    "Run.events": (lambda v, run: first(v.handle(run).events()), ("explain",)),
    "Run.retry": (lambda v, run: v.handle(run).retry(), ("runs:write", "explain")),
    "Run.fork": (lambda v, run: v.handle(run).fork(1), ("runs:write", "explain")),
    "Run.not_undone": (lambda v, run: v.handle(run).not_undone(), ("explain",)),
    "Run.plan": (lambda v, run: v.handle(run).plan(), ("explain",)),
    "Run.outcome": (lambda v, run: v.handle(run).outcome(), ("explain",)),
    "Run.finished": (lambda v, run: v.handle(run).finished(), ("explain",)),
    "History.events": (lambda v, run: v.history.events(run), ("explain",)),
    "History.verify": (lambda v, run: every(v.history.verify(run)), ("explain",)),
    "History.definition": (lambda v, run: v.history.definition(run), ("explain",)),
    "History.state": (lambda v, run: v.history.state(run), ("explain",)),
    "History.replay": (lambda v, run: v.history.replay(run), ("explain",)),
    "History.backtest": (lambda v, run: v.history.backtest(flow(), [run]), ("explain",)),
    "Explanations.turn": (lambda v, run: v.explain.turn(run, 1), ("explain",)),
    "Explanations.variable": (lambda v, run: v.explain.variable(run, "user_id"), ("explain",)),
    "Explanations.route": (lambda v, run: v.explain.route(run, 1), ("explain",)),
    "Explanations.diff": (lambda v, run: v.explain.diff(run, 1, 1), ("explain",)),
    "Explanations.blame": (lambda v, run: v.explain.blame(run, "nothing at all"), ("explain",)),
    "Explanations.timeline": (lambda v, run: v.explain.timeline(run), ("explain",)),
    "Explanations.what_if": (lambda v, run: v.explain.what_if(run, 1, 1, 0.5), ("explain",)),
    "Explanations.cost": (lambda v, run: v.explain.cost(run), ("explain",)),
    "Explanations.page": (lambda v, run: v.explain.page(run), ("explain",)),
}

# Methods that give what the principal has.
OF_PRINCIPALS: dict[str, tuple[Callable[[LoomView], Awaitable[Any]], tuple[Scope, ...]]] = {
    "LoomView.runs": (lambda v: v.runs(), ("runs:read",)),
    "LoomView.questions": (lambda v: v.questions(), ("runs:read",)),
    "Run.holder": (lambda v: v.handle(UNKNOWN).holder(), ("explain",)),
    "Run.listening": (lambda v: listened(v, UNKNOWN), ("runs:read",)),
    "History.named": (lambda v: v.history.named(""), ("explain",)),
    "History.prune": (lambda v: every(v.history.prune("1s", dry_run=True)), ("prune",)),
    "BoardView.get": (lambda v: v.board("shop").get(ARTIFACT), ("board",)),
    "BoardView.summary": (lambda v: v.board("shop").summary(), ("board",)),
    "BoardView.query_artifacts": (
        lambda v: v.board("shop").query_artifacts(embed_meta=True, count=True),
        ("board",),
    ),
    "BoardView.next_opening": (lambda v: v.board("shop").next_opening(NOON), ("board",)),
    "BoardView.iter_artifacts": (lambda v: every(v.board("shop").iter_artifacts()), ("board",)),
}

# Methods that read nothing of others, each with its reason.
EXEMPT = {
    "LoomView.start": "it begins a run of the principal: tried below",
    "LoomView.run": "it begins a run of the principal: tried below",
    "LoomView.handle": "it only names a run; what is asked of it is tried above",
    "LoomView.board": "what is asked of it is tried above",
    "LoomView.collection": "it is tried below",
    "BoardView.read_as": "it is tried below",
    "BoardView.value": "it reads JSON, and no board",
    "BoardView.opening_of": "it computes, from an artifact that was seen",
    "LoomView.commits": "it says that something happened, and neither what nor whose",
    "BoardView.commits": "it says that something happened, and neither what nor whose",
    "BoardView.now": "it tells the time",
    "BoardView.publish": "it is tried below",
}


def test_every_public_method_is_tried() -> None:
    there = {
        f"{face.__name__}.{name}"
        for face in (LoomView, Run, BoardView, History, Explanations)
        for name, _ in inspect.getmembers(face, inspect.isfunction)
        if not name.startswith("_")
    }
    assert there == OF_RUNS.keys() | OF_PRINCIPALS.keys() | EXEMPT.keys()


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    made = MemoryStore(codec())
    store = made if request.param == "memory" else SqliteStore(tmp_path / "turnloom.db", codec())
    yield store
    await store.aclose()


async def refusal(call: Call, view: LoomView, run: str) -> tuple[type, str]:
    """What a call is refused with; the id does not matter."""
    with pytest.raises(TurnloomError) as raised:
        await call(view, run)
    return type(raised.value), str(raised.value).replace(repr(run), "ID").replace(run, "ID")


async def given(ask: Callable[[LoomView], Awaitable[Any]], view: LoomView) -> bytes:
    """What a call gives, or how it is refused."""
    try:
        return encoded(await ask(view))
    except TurnloomError as error:
        return f"{error!r}".encode()


async def test_what_belongs_to_others_is_not_found(store: Any, tmp_path: Path) -> None:
    """Others are another tenant and, for the role `user`, another user of the same tenant."""
    async with program(store, "ann") as ann:
        runs = await ann.begin(tmp_path)
        before = await logs(store, "ann")
        strangers = [Principal("bob", "local", role) for role in ROLES]
        for who in (*strangers, Principal("ann", "eve")):
            view = ann.app.as_principal(who)
            for method, (call, needed) in OF_RUNS.items():
                unknown = await refusal(call, view, UNKNOWN)
                expected = Forbidden if not all(map(who.may, needed)) else None
                assert expected in (None, unknown[0]), method
                for id in [*runs, *before]:
                    assert await refusal(call, view, id) == unknown, (method, who)
            for method, (ask, needed) in OF_PRINCIPALS.items():
                is_shared = method.startswith("BoardView") and who.app_id == "ann"
                found = await given(ask, view)
                assert is_shared or canary("ann").encode() not in found, method
                assert (b"Forbidden" in found) != all(map(who.may, needed)), method
        assert await logs(store, "ann") == before


async def test_a_user_sees_their_own(store: Any, tmp_path: Path) -> None:
    async with program(store, "ann") as ann:
        talk, work, *_ = await ann.begin(tmp_path)
        view = ann.app.as_principal(Principal("ann", "local"))
        assert {each.run for each in await view.runs()} >= {talk, work}
        asked = await view.questions()
        assert {each.run for each in asked if each.question.tool == "ask"} == {talk}
        assert all(each.question.to != "boss" for each in asked)
        boss = ann.app.as_principal(Principal("ann", "boss"))
        (approval,) = await boss.questions()
        assert (approval.run, approval.user, await boss.runs()) == (work, "local", [])
        with pytest.raises(UnknownRun):
            await first(boss.handle(work).chat())
        chat = [await first(view.handle(talk).chat()), await view.handle(talk).summary()]
        assert [each.status for each in chat] == ["running", "waiting"]
        assert await view.handle(talk).answer(None, "accepted")
        assert await boss.handle(work).answer(approval.question.id, "approve")
        assert await boss.questions() == []


async def test_scopes_narrow_a_role(store: Any, tmp_path: Path) -> None:
    async with program(store, "ann") as ann:
        talk, *_ = await ann.begin(tmp_path)
        for role in ROLES:
            bare = ann.app.as_principal(Principal("ann", "local", role, []))
            for method, (call, _) in OF_RUNS.items():
                assert (await refusal(call, bare, talk))[0] is Forbidden, method
            for method, (ask, _) in OF_PRINCIPALS.items():
                assert b"Forbidden" in await given(ask, bare), method
            with pytest.raises(Forbidden):
                await bare.start(flow(), Work())
            with pytest.raises(Forbidden):
                await bare.run(flow(), Work())


async def test_a_principal_acts_as_itself(store: Any, tmp_path: Path) -> None:
    """It starts and publishes as its user, and cannot name another user, tenant or reader."""
    async with program(store, "ann") as ann:
        await begun(ann)
        talk, *_ = await ann.begin(tmp_path)
        dev = ann.app.as_principal(Principal("ann", "dev", "developer"))
        eve = ann.app.as_principal(Principal("ann", "eve"))
        for view in (dev, eve):
            with pytest.raises(Forbidden):
                await view.handle(talk).answer(None, "accepted", user_id="local")
            with pytest.raises(Forbidden):
                view.board("shop").read_as(Reader(tenant="bob"))
            with pytest.raises(Forbidden):
                await view.history.events(talk, app_id="bob")
        with pytest.raises(Forbidden):
            eve.board("shop").read_as(Reader("clerk", tenant="ann"))
        assert await dev.board("shop").read_as(Reader("clerk", tenant="ann")).get(ARTIFACT)
        with pytest.raises(Forbidden):
            await eve.runs(user="local")
        with pytest.raises(UnknownRun):
            await eve.runs(before=talk)
        with pytest.raises(Forbidden):
            await eve.run(flow(), Work())
        with pytest.raises(TurnloomError):
            await eve.board("elsewhere").publish(Order(item="tea"))


async def begun(ann: Program) -> None:
    eve = ann.app.as_principal(Principal("ann", "eve"))
    run = await eve.start(flow(), Work(text="tea"))
    await at_rest(run_of(ann.app, run.id))
    made = await eve.board("shop").publish(Order(item="tea"))
    assert {each.run: each.user for each in await eve.runs()} == {run.id: "eve", made.run: "eve"}


def run_of(app: Loom, run: str) -> Run:
    return app.handle(run, app_id="ann")


class Library(RagCollection):
    """What tenants know."""


async def test_a_collection_is_that_of_the_tenant() -> None:
    async with Loom(store="memory") as app:
        app.register_collection(Library, InMemorySearch())
        for tenant in ("local", "ann"):
            mine = app.as_principal(Principal(tenant, "dev", "developer")).collection(Library)
            with pytest.raises(Forbidden):
                await mine.search("tea", reader=Reader(tenant="bob"))
            with pytest.raises(Forbidden):
                await mine.add([], "bob")
            with pytest.raises(Forbidden):
                await mine.remove(["a"], "bob")
            assert await mine.search("tea", reader=Reader(tenant=tenant)) == []
        with pytest.raises(Forbidden):
            app.as_principal(Principal("ann", "eve")).collection(Library)
