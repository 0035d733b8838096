"""Workflow folders and apps for the suite of engines."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import anyio

from turnloom.agents.spec import Engine
from turnloom.log.spec import Event
from turnloom.runtime.spec import Delta
from turnloom.testing.contracts.facts import PATIENCE
from turnloom.testing.loopback import LoopbackModel

# The number of retries that an engine under test makes after a transient failure.
RETRIES = 2

PLAIN = {
    "orchestrator.yaml": "initial_message: Add two and three.\n",
    "agents.yaml": "Adder: {system_message: You add numbers.}\n",
}
TALKING = PLAIN | {
    "orchestrator.yaml": "initial_message: Add two and three.\nhuman_in_the_loop: true\n"
}
EQUIPPED = PLAIN | {
    "tools.yaml": """tools:
  - {agent: Adder, file: sums.py, function: add}
  - {agent: Adder, file: sums.py, function: fail}
  - {agent: Adder, file: sums.py, function: meet}
  - {agent: Adder, file: sums.py, function: wait, timeout_s: 0.2}
""",
    "sums.py": '''import asyncio

ARRIVED = []


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fail(reason: str) -> None:
    """Fail for a reason."""
    raise ValueError(reason)


async def meet(guests: int) -> str:
    """Wait for a number of calls, then answer all of them."""
    arrived = asyncio.Event()
    ARRIVED.append(arrived)
    if len(ARRIVED) == guests:
        for each in ARRIVED:
            each.set()
    await arrived.wait()
    return f"met {guests}"


async def wait() -> None:
    """Never answer."""
    await asyncio.sleep(3600)
''',
}
FORMED = {
    "agents.yaml": "Adder: {system_message: You add numbers., structured_outputs: Sum}\n",
    "structured_outputs.yaml": """models:
  Sum:
    type: model
    fields:
      total: {type: int, description: The sum.}
      remark: {type: str}
""",
}


class FinishedRun(NamedTuple):
    """A finished run: its events, and its text deltas."""

    events: list[Event]
    pieces: list[Delta]

    @property
    def end(self) -> Event:
        """The last event."""
        return self.events[-1]

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events."""
        return [event.kind for event in self.events]

    @property
    def texts(self) -> list[str]:
        """The recorded texts of agents."""
        return [fact.text for fact in self.facts("agent.text")]

    @property
    def heard(self) -> str:
        """The streamed text: the deltas, with resets applied."""
        text = ""
        for piece in self.pieces:
            assert piece.offset in (0, len(text)), f"{piece} does not continue {text!r}"
            text = text[: piece.offset] + piece.text
        return text

    def facts(self, kind: str) -> list[Any]:
        """The data of the events of a kind."""
        return [event.data for event in self.events if event.kind == kind]


class EngineSuite:
    """The common part of the suites for engines."""

    streams: ClassVar[bool] = True

    def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AbstractAsyncContextManager[Engine]:
        """An engine that calls this model with the real client of its library.

        It times out after `silence` seconds without a chunk. It retries transient failures
        `RETRIES` times: after a fraction of a second, or after the delay that the provider asks
        for.
        """
        raise NotImplementedError

    async def converse(
        self, model: LoopbackModel, files: Mapping[str, str] = PLAIN, *, silence: float = PATIENCE
    ) -> FinishedRun:
        """Run a workflow with the engine, to its end."""
        pieces: list[Delta] = []
        async with self.app(model, silence=silence) as app, workflow_folder(files) as folder:
            run = await app.start(folder)
            with run.listening(pieces.append), anyio.fail_after(PATIENCE):
                await run.finished()
            return FinishedRun([*await app.history.events(run.id)], pieces)

    @asynccontextmanager
    async def app(
        self,
        model: LoopbackModel,
        *,
        silence: float = PATIENCE,
        store: str = "memory",
        around: Callable[[Engine], Engine] = lambda engine: engine,
    ) -> AsyncGenerator[Any]:
        """An app with this engine for all agents."""
        # The app is a higher layer, so it is imported by name, as users do.
        turnloom: Any = import_module("turnloom")
        async with self.fresh(model, silence=silence) as engine:
            async with turnloom.Loom(store=store, engine=around(engine)) as app:
                yield app


@asynccontextmanager
async def workflow_folder(files: Mapping[str, str]) -> AsyncGenerator[str]:
    """A temporary folder with these files."""
    async with anyio.TemporaryDirectory() as folder:
        for name, text in files.items():
            await anyio.Path(folder, name).write_text(text, "utf-8")
        yield folder
