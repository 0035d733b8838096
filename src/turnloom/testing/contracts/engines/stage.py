"""The runs in which an engine under test answers: a workflow folder, an app, what came of it."""

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

# How often an engine under test tries again when a request fails in a way that may pass.
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
    """Answer once so many calls are here."""
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
      total: {type: int, description: What it comes to.}
      remark: {type: str}
""",
}


class Conversed(NamedTuple):
    """A run that is over: its events, and the pieces that were heard."""

    events: list[Event]
    pieces: list[Delta]

    @property
    def end(self) -> Event:
        """The event that ended it."""
        return self.events[-1]

    @property
    def kinds(self) -> list[str]:
        """The kinds of its events."""
        return [event.kind for event in self.events]

    @property
    def texts(self) -> list[str]:
        """What agents said, by the log."""
        return [fact.text for fact in self.facts("agent.text")]

    @property
    def heard(self) -> str:
        """The answer as whoever heard its pieces has it in the end."""
        text = ""
        for piece in self.pieces:
            assert piece.offset in (0, len(text)), f"{piece} does not go on behind {text!r}"
            text = text[: piece.offset] + piece.text
        return text

    def facts(self, kind: str) -> list[Any]:
        """What the events of a kind say."""
        return [event.data for event in self.events if event.kind == kind]


class EngineSuite:
    """What the parts of the suite for engines stand on."""

    streams: ClassVar[bool] = True

    def fresh(
        self, model: LoopbackModel, *, silence: float = PATIENCE
    ) -> AbstractAsyncContextManager[Engine]:
        """An engine that asks this model by the real client of its library.

        It gives up a request after `silence` seconds without a piece of its answer. Trouble that
        may pass it tries again `RETRIES` times: after a fraction of a second, or when it is told
        to.
        """
        raise NotImplementedError

    async def converse(
        self, model: LoopbackModel, files: Mapping[str, str] = PLAIN, *, silence: float = PATIENCE
    ) -> Conversed:
        """A run in which the engine answers, up to its end."""
        pieces: list[Delta] = []
        async with self.app(model, silence=silence) as app, written(files) as folder:
            run = await app.start(folder)
            with run.listening(pieces.append), anyio.fail_after(PATIENCE):
                await run.finished()
            return Conversed([*await app.history.events(run.id)], pieces)

    @asynccontextmanager
    async def app(
        self,
        model: LoopbackModel,
        *,
        silence: float = PATIENCE,
        store: str = "memory",
        around: Callable[[Engine], Engine] = lambda engine: engine,
    ) -> AsyncGenerator[Any]:
        """An app whose agents the engine answers for."""
        # An app stands above this package, so it is reached as users reach it.
        turnloom: Any = import_module("turnloom")
        async with self.fresh(model, silence=silence) as engine:
            async with turnloom.Loom(store=store, engine=around(engine)) as app:
                yield app


@asynccontextmanager
async def written(files: Mapping[str, str]) -> AsyncGenerator[str]:
    """A folder with these files in it."""
    async with anyio.TemporaryDirectory() as folder:
        for name, text in files.items():
            await anyio.Path(folder, name).write_text(text, "utf-8")
        yield folder
