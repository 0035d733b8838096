"""Plain functions of users block threads, and neither stores nor other tenants wait for them."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.documents import add
from tests.support.folders import write_folder
from turnloom import (
    AgentStep,
    Answer,
    Context,
    Event,
    Flow,
    Loom,
    Run,
    StepContext,
    Task,
    ToolCall,
)
from turnloom.testing import ScriptedEngine

# More than the threads that a tenant has.
CROWD = 45
HELD = 40
SOON = 60.0

DATABASE = {"type": "database", "collection": "customers", "search_by": "user_id", "field": "name"}
CUSTOMER = {"type": "string", "source": {**DATABASE, "database_name": "crm"}}


class Note(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str = ""


class Blocker:
    """Plain code that blocks its thread until it is released, and knows how often it is entered."""

    def __init__(self) -> None:
        self._gate = threading.Event()
        self._entered = asyncio.Semaphore(0)
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> str:
        self._loop.call_soon_threadsafe(self._entered.release)
        self._gate.wait(SOON)
        return "released"

    async def entered(self, times: int) -> None:
        """Wait until it was entered so often."""
        for _ in range(times):
            await self._entered.acquire()

    def release(self) -> None:
        self._gate.set()


def by_step(block: Callable[[], str]) -> Flow[Note]:
    def wait(state: Note) -> dict[str, str]:
        return {"text": block()}

    return Flow("blocked", Note).start_with(wait)


def by_tool(block: Callable[[], str]) -> Flow[Note]:
    def wait() -> str:
        """Wait."""
        return block()

    async def engine(task: Task) -> Answer:
        return Answer("done") if task.exchanges else Answer(calls=(ToolCall("wait", {}),))

    class Ask(AgentStep[Note]):
        tools = (wait,)

        def user_prompt(self, state: Note) -> str:
            return "Wait."

        def apply(self, state: Note, answer: str, context: Any) -> dict[str, str]:
            return {"text": answer}

    step = Ask()
    step.engine = engine
    return Flow("blocked", Note).start_with(step)


def by_hook(block: Callable[[], str]) -> Flow[Note]:
    def wait(context_variables: Context) -> None:
        block()

    async def nothing(state: Note) -> None: ...

    hooks = [{"trigger": "before_chat", "function": wait}]
    return Flow("blocked", Note, hooks=hooks).start_with(nothing)


def by_engine(block: Callable[[], str]) -> Flow[Note]:
    def answer(task: Task) -> str:
        return block()

    class Ask(AgentStep[Note]):
        def user_prompt(self, state: Note) -> str:
            return "Wait."

        def apply(self, state: Note, answer: str, context: Any) -> dict[str, str]:
            return {"text": answer}

    return Flow("blocked", Note).start_with(Ask().with_engines(answer))


@pytest.fixture
async def blocker() -> AsyncIterator[Blocker]:
    made = Blocker()
    yield made
    made.release()


@asynccontextmanager
async def crowd(app: Loom, flow: Flow[Note], blocker: Blocker) -> AsyncIterator[None]:
    """Runs of tenant `a` that block all of its threads, until the context ends."""
    async with asyncio.timeout(SOON):
        runs = [await app.start(flow, Note(), app_id="a") for _ in range(CROWD)]
        await blocker.entered(HELD)
        yield
        blocker.release()
        for run in runs:
            await run.finished()


@pytest.mark.parametrize("blocked", [by_step, by_tool, by_hook, by_engine])
async def test_stores_and_other_tenants_do_not_wait_for_plain_functions(
    tmp_path: Path, blocker: Blocker, blocked: Callable[[Callable[[], str]], Flow[Note]]
) -> None:
    """A lookup answers, runs are listed and explained, and another tenant's function is called."""

    async def greet(state: Note, ctx: StepContext) -> dict[str, str]:
        return {"text": ctx["customer"]}

    def plain(state: Note) -> dict[str, str]:
        return {"text": f"{state.text}!"}

    documents = f"sqlite:{tmp_path / 'documents'}"
    ann = {"user_id": "ann", "app_id": "a", "name": "Ann"}
    await add(documents, "crm", "customers", [ann])
    variables = {"definitions": {"customer": CUSTOMER}}
    lookup = Flow("lookup", Note, variables=variables).start_with(greet)
    async with (
        Loom(store=f"sqlite:{tmp_path / 'store.db'}", documents=documents) as app,
        crowd(app, blocked(blocker), blocker),
    ):
        found = await app.run(lookup, Note(), app_id="a", user_id="ann")
        assert found.state.text == "Ann"
        assert len(await app.runs(app_id="a")) == CROWD + 1
        assert str(await app.explain.timeline(found.run_id, app_id="a"))
        other = await app.run(Flow("plain", Note).start_with(plain), Note(text="hi"), app_id="b")
        assert other.state.text == "hi!"


async def test_functions_that_derive_do_not_wait_for_those_that_take_long(
    tmp_path: Path, blocker: Blocker
) -> None:
    """They have a second, and the tools of the same tenant do not use it up."""
    source = {"type": "derived", "triggers": [{"type": "function", "function": "length"}]}
    variables = {"definitions": {"length": {"type": "integer", "source": source}}}
    code = """
        from turnloom import UNCHANGED, derivation

        @derivation
        def length(event, values):
            return len(event.data.text) if event.kind == "agent.text" else UNCHANGED
        """
    files = {
        "orchestrator.yaml": "human_in_the_loop: true",
        "agents.yaml": "A: {system_message: Hi.}",
        "context_variables.json": json.dumps(variables, indent=1),
        "derivations.py": code,
    }
    folder = write_folder(tmp_path / "Talk", files)
    async with (
        Loom(store="memory", engine=ScriptedEngine({"A": ["Hello."]})) as app,
        crowd(app, by_step(blocker), blocker),
    ):
        run = await app.start(folder, app_id="a")
        kinds = {event.kind: event async for event in until_paused(run)}
        assert "context.refused" not in kinds and kinds["context.changed"].data.value == 6


async def until_paused(run: Run[Any]) -> AsyncIterator[Event]:
    async for event in run.events():
        yield event
        if event.kind == "run.paused":
            return
