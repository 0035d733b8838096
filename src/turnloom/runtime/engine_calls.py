"""Calls of engines: what they read on the board, their failed attempts, and their variables."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from turnloom.agents.events import ModelRetried
from turnloom.agents.logic.model_errors import without_keys
from turnloom.agents.spec import Answer, Engine, Task, ToolSchema
from turnloom.assembly.logic.labels import together
from turnloom.board.spec import Artifact, Audience, Visibility
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_seconds
from turnloom.kernel.contained import contained
from turnloom.kernel.values import Json, writable
from turnloom.runtime.calls import Call, Caller
from turnloom.runtime.journal import Journal
from turnloom.variables.spec import Context


async def ask_engine(engine: Engine, task: Task) -> Answer:
    """The answer of an engine.

    Raises:
        Quit: it exited the program, or cancelled itself.
        Exception: whatever it raises.
    """
    with contained():
        return await engine(task)


class BoardReads:
    """The artifacts that an engine reads on the board during one call."""

    def __init__(self) -> None:
        self._seen: dict[str, Visibility] = {}
        self._is_over = False

    def note(self, artifacts: Sequence[Artifact]) -> None:
        """Note artifacts before they are returned.

        Raises:
            UsageError: the call is over, so nothing would say what was made of them.
        """
        if self._is_over:
            raise UsageError("The call that this board was for is over. Use that of the next task.")
        self._seen |= {each.id: each.visibility for each in artifacts}

    def end(self) -> None:
        """Refuse further reads."""
        self._is_over = True

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the artifacts that were read."""
        return tuple(self._seen)

    @property
    def visibility(self) -> Audience:
        """The audience that may see all of them."""
        return together(self._seen.values())


class Retries:
    """Records the attempts of one model call that fail and are followed by another."""

    def __init__(self, journal: Journal, key: str, task: Task, engine: str) -> None:
        self._journal: Journal | None = journal
        self._key = key
        self._identity = (task.turn, task.agent, engine)

    async def note(self, error: str, message: str, pause: float) -> None:
        """Store a failed attempt and the seconds until the next one.

        Raises:
            UsageError: the call is over, or the pause is not a number.
        """
        journal = self._journal
        if journal is None:
            raise UsageError("The call of this task is over. Do not ask its model again.")
        seconds = as_seconds(pause, "`pause` of a retry") or 0.0
        text = without_keys(writable(str(message)))
        fact = ModelRetried(*self._identity, writable(str(error)), text, round(seconds, 3))
        # Attempts of a process that is gone count too.
        ids = (f"{self._key}/retry.{number}" for number in count())
        await journal.put(next(id for id in ids if journal.recorded(id) is None), fact)

    def end(self) -> None:
        """Record nothing more, and let go of the run: an engine may keep the task."""
        self._journal = None


class EngineCallee:
    """An engine that takes the run's variables, as a callee."""

    may_ask = True

    def __init__(self, engine: Engine, task: Task) -> None:
        self.schema = ToolSchema(task.agent, "", {})
        self._engine = engine
        self._task = task

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Any:
        """The answer of the engine."""
        return await self._engine(msgspec.structs.replace(self._task, variables=context))


def engine_call(journal: Journal, key: str, engine: Engine, task: Task) -> Call:
    """The call of an engine that takes the run's variables; the agent is the writer of its
    changes."""
    return Call(journal, Caller(key, f"agent:{task.agent}", None), EngineCallee(engine, task))
