"""Engines are asked so that none of them ends more than its own call."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from turnloom.agents.spec import Answer, Engine, Task, ToolSchema
from turnloom.assembly.logic.labels import together
from turnloom.board.spec import Artifact, Audience, Visibility
from turnloom.errors import UsageError
from turnloom.kernel.contained import contained
from turnloom.kernel.values import Json
from turnloom.runtime.service.calls import Call, Caller
from turnloom.runtime.service.journal import Journal
from turnloom.variables.spec import Context


async def ask_engine(engine: Engine, task: Task) -> Answer:
    """What an engine answers.

    Raises:
        Quit: it left the program, or gave up although nobody interrupts this drive.
        Exception: whatever it raises.
    """
    with contained():
        return await engine(task)


class BoardReads:
    """What an engine reads on the board during one call."""

    def __init__(self) -> None:
        self._seen: dict[str, Visibility] = {}
        self._is_over = False

    def note(self, artifacts: Sequence[Artifact]) -> None:
        """Take note of artifacts before they are given out.

        Raises:
            UsageError: the call is over, so nothing would say what was made of them.
        """
        if self._is_over:
            raise UsageError("The call that this board was for is over. Use that of the next task.")
        self._seen |= {each.id: each.visibility for each in artifacts}

    def end(self) -> None:
        """Let nothing more be read."""
        self._is_over = True

    @property
    def ids(self) -> tuple[str, ...]:
        """The artifacts that were read."""
        return tuple(self._seen)

    @property
    def visibility(self) -> Audience:
        """Who may see all of them."""
        return together(self._seen.values())


class EngineCallee:
    """An engine that takes the run's variables, as something that is called with them."""

    may_ask = True

    def __init__(self, engine: Engine, task: Task) -> None:
        self.schema = ToolSchema(task.agent, "", {})
        self._engine = engine
        self._task = task

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Any:
        """What the engine answers."""
        return await self._engine(msgspec.structs.replace(self._task, variables=context))


def engine_call(journal: Journal, key: str, engine: Engine, task: Task) -> Call:
    """The call of an engine that takes the run's variables; what it writes is the agent's."""
    return Call(journal, Caller(key, f"agent:{task.agent}", None), EngineCallee(engine, task))
