"""Small flows whose steps leave notes."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from tests.support.flows import FlowLives, Person, nobody
from turnloom import Flow, Path, append
from turnloom.log.spec import Event


class Notes(BaseModel):
    """What the steps of a flow leave."""

    model_config = ConfigDict(frozen=True)

    n: int = 0
    said: Annotated[list[str], append] = []


class Doomed(Exception):
    """Wanted by the test."""


def note(name: str) -> Callable[..., Any]:
    """A step that leaves a note."""

    async def step(state: Notes, ctx: Any) -> Any:
        return {"said": [name]}

    return _named(step, name)


def bad(name: str = "bad") -> Callable[..., Any]:
    """A step that fails."""

    async def step(state: Notes, ctx: Any) -> Any:
        raise Doomed(name)

    return _named(step, name)


def undo(name: str) -> Callable[..., Any]:
    """What makes up for a step: a note that it does."""
    return note(f"undo_{name}")


def done(name: str) -> Path:
    """A path of one step that can be made up for."""
    return Path().then(note(name), compensate=undo(name))


async def count(state: Notes, ctx: Any) -> Any:
    """One more."""
    return {"n": state.n + 1}


async def results(state: Notes, ctx: Any) -> Any:
    """How the paths of a fork ended."""
    return {"said": [f"{each.name} {each.status}" for each in ctx.paths]}


def flow(name: str = "notes", **settings: Any) -> Flow[Notes]:
    """A flow that begins with a step that can be made up for."""
    return Flow(name, Notes, **settings).start_with(note("first"), compensate=undo("first"))


async def log_of(flow: Flow[Notes], person: Person = nobody) -> list[Event]:
    """The log of a run of a flow."""
    return await FlowLives(flow, Notes(), person).live()


def _named(step: Callable[..., Any], name: str) -> Callable[..., Any]:
    step.__name__ = step.__qualname__ = name
    return step
