"""Whatever a program gives to a method of the public face: it works and can be read back, or a
Turnloom error says what is wrong before anything is stored."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tests.flow.scenes import Work, note
from tests.support.folders import write_folder
from tests.support.hostile import hostile
from turnloom import Board, Flow, Loom, Reader, Run, TurnloomError, artifact_type
from turnloom.app.explanations import Explanations
from turnloom.app.history import History
from turnloom.app.upkeep import Upkeep
from turnloom.runs.principal import Principal
from turnloom.runtime.logic import codec

TALK = {
    "orchestrator.yaml": "{initial_agent: Poet, max_turns: 1}",
    "agents.yaml": "agents: {Poet: {system_message: Write.}}",
}
TENANTS = ("local", "x", "a\nb", "../../x")


@artifact_type(name="face.Order")
class Order(BaseModel):
    n: int = 0


@artifact_type(name="face.Bill")
class Bill(BaseModel):
    n: int = 0


async def answer(task: object) -> str:
    return "Yes."


async def bill(task: object) -> Bill:
    return Bill()


def approving() -> Flow[Work]:
    return Flow("work", Work).start_with(note("a")).await_approval("boss").finally_(note("b"))


class Scene:
    """An app with something of everything, and arguments that are right."""

    def __init__(self, app: Loom, folder: str) -> None:
        self.app = app
        self.folder = folder
        self.flow = approving()
        self.copies = Loom(store="memory")
        self.boards = 0

    async def begin(self) -> None:
        self.run = await self.app.start(self.flow)
        await self.run.outcome()
        self.talk = await self.app.start(self.folder)
        await self.talk.finished()

    async def thing(self, owner: type, method: str) -> Any:
        """What a method is called on; that which ends something, on a new one."""
        if owner is Run:
            if method in ("retry", "fork", "send"):
                return self.talk
            return await self.app.start(self.flow) if method == "cancel" else self.run
        if owner is Board:
            return self.board()
        return {
            Loom: self.app,
            History: self.app.history,
            Explanations: self.app.explain,
            Upkeep: self.app.upkeep,
        }[owner]

    def board(self) -> Board:
        self.boards += 1
        board = self.app.board(f"board{self.boards}")
        board.agent("clerk").consumes(Order).publishes(Bill).with_engines(bill)
        return board

    def right(self, owner: type, method: str) -> dict[str, Any]:
        """Arguments that are right, of those that have to be given and some others."""
        run: dict[str, Any] = {"run": self.talk.id}
        value: dict[str, Any] = {"value": Order()}
        self.boards += 1
        known: dict[str, dict[str, Any]] = {
            "Loom.start": {"workflow": self.flow},
            "Loom.run": {"flow": self.flow},
            "Loom.resume": run,
            "Loom.handle": run,
            "Loom.board": {"name": f"board{self.boards}"},
            "Loom.index": {"workflow": self.folder},
            "Loom.register_flow": {"flow": self.flow},
            "Loom.register_collection": {"collection": None, "adapter": None},
            "Loom.collection": {"collection": None},
            "Loom.as_principal": {"principal": Principal("acme", "ann")},
            "Run.feedback": {"name": "helpful", "score": 1},
            "Run.answer": {"question": None, "value": "approve"},
            "Run.send": {"message": "Hello"},
            "Run.listening": {"listener": print},
            "Run.retry": {"since": 1},
            "Run.fork": {"at": 1},
            "Board.agent": {"name": "Ann"},
            "Board.value": {"type": "Order", "payload": {}},
            "Board.publish": value,
            "Board.publish_many": {"values": [Order()]},
            "Board.invoke": {"agent": "clerk", **value},
            "Board.run_until": {"condition": lambda: True, "timeout": 0.001},
            "Board.retry": {"failed": "x"},
            "Board.get": {"id": "x"},
            "Board.read_as": {"reader": Reader()},
            "History.events": run,
            "History.named": {"prefix": "a"},
            "History.prune": {"older_than": "1d"},
            "History.definition": run,
            "History.state": run,
            "History.replay": run,
            "History.backtest": {"edited": self.folder, "runs": [self.talk.id]},
            "Explanations.turn": {**run, "turn": 1},
            "Explanations.variable": {**run, "name": "user_id"},
            "Explanations.route": {**run, "seq": 1},
            "Explanations.diff": {**run, "turn": 1},
            "Explanations.blame": {**run, "text": "nothing at all"},
            "Explanations.what_if": {**run, "turn": 1, "search": 1, "min_relevance": 0.5},
            "Explanations.cost": {**run, "turn": 1},
            "Explanations.page": run,
            "Explanations.timeline": run,
            "Upkeep.copy_to": {"target": self.copies.upkeep},
            "Upkeep.erase": {"user": "eve"},
        }
        return known.get(f"{owner.__name__}.{method}", {})


# What takes no argument of a program, or ends the scene.
EXEMPT = {"aclose"}


def methods(owner: type) -> list[tuple[str, list[str]]]:
    """The public methods of a class that take arguments, with the names of these."""
    found = [
        (name, [each for each in inspect.signature(method).parameters if each != "self"])
        for name, method in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and name not in EXEMPT
    ]
    return [(name, parameters) for name, parameters in found if parameters]


async def use(given: Any) -> None:
    """Use what a method gives, to its end."""
    if isinstance(given, Awaitable):
        given = await given
    if isinstance(given, AsyncIterator):
        async for each in given:
            if getattr(each, "kind", "") == "run.paused":
                break
    elif hasattr(given, "__enter__"):
        with given:
            pass
    repr(given)


async def attempt(scene: Scene, owner: type, method: str, name: str, value: Any) -> str:
    """What is wrong with how a method takes an argument."""
    called: Callable[..., Any] = getattr(await scene.thing(owner, method), method)
    arguments = {**scene.right(owner, method), name: value}
    if (
        list(inspect.signature(called).parameters.values())[0].kind
        is inspect.Parameter.VAR_POSITIONAL
    ):
        arguments, spread = {}, (value,)
    else:
        spread = ()
    try:
        async with asyncio.timeout(60):
            await use(called(*spread, **arguments))
    except (TurnloomError, TimeoutError):
        return ""
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        return f"{owner.__name__}.{method}({name}=…): {type(error).__name__}: {error}"[:300]
    return ""


async def read_all(app: Loom) -> int:
    """Read everything there is of some tenants; how many runs that is."""
    known, read = codec(), 0
    for tenant in TENANTS:
        for each in await app.runs(app_id=tenant):
            assert each.status != "broken"
            events = await app.history.events(each.run, app_id=tenant)
            for event in events:
                assert known.decode(known.encode(event)) == event
            str(await app.explain.timeline(each.run, app_id=tenant))
            read += 1
    return read


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize(
    "owner", [Loom, Run, Board, History, Explanations, Upkeep], ids=lambda owner: owner.__name__
)
async def test_every_argument_of_the_face(owner: type, store: str, tmp_path: Path) -> None:
    folder = str(write_folder(tmp_path, TALK, "Talk"))
    place = "memory" if store == "memory" else str(tmp_path / "runs.db")
    async with Loom(store=place, engine=answer) as app:
        scene = Scene(app, folder)
        await scene.begin()
        problems = [
            f"{what}: {problem}"
            for method, names in methods(owner)
            for name in names
            for what, value in hostile().items()
            if (problem := await attempt(scene, owner, method, name, value))
        ]
        assert problems == []
        read = await read_all(app)
        assert read >= 2
    if store == "sqlite":
        async with Loom(store=place) as app:
            assert await read_all(app) >= read


def test_the_arguments_are_known() -> None:
    """Methods that take arguments are there, or the test above would pass by doing nothing."""
    assert {name for name, _ in methods(Board)} >= {"publish", "invoke", "retry", "cancel"}
    assert {name for name, _ in methods(Loom)} >= {"start", "run", "resume", "board", "runs"}
