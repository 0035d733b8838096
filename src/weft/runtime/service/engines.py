"""Engines are asked so that none of them ends more than its own call."""

import asyncio

from weft.agents.spec import Answer, Engine, Task
from weft.kernel.values import said
from weft.runtime.service.calls import Quit


async def ask_engine(engine: Engine, task: Task) -> Answer:
    """What an engine answers.

    Raises:
        Quit: it left the program, or gave up although nobody interrupts this drive.
        Exception: whatever it raises.
    """
    try:
        return await engine(task)
    except SystemExit as error:
        raise Quit("SystemExit", said(error)) from error
    except asyncio.CancelledError as error:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        raise Quit("CancelledError", "It gave up.") from error
