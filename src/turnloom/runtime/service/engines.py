"""Engines are asked so that none of them ends more than its own call."""

from collections.abc import Mapping
from typing import Any

import msgspec

from turnloom.agents.spec import Answer, Engine, Task, ToolSchema
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
