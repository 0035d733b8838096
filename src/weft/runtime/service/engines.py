"""Engines are asked so that none of them ends more than its own call."""

from weft.agents.spec import Answer, Engine, Task
from weft.kernel.contained import contained


async def ask_engine(engine: Engine, task: Task) -> Answer:
    """What an engine answers.

    Raises:
        Quit: it left the program, or gave up although nobody interrupts this drive.
        Exception: whatever it raises.
    """
    with contained():
        return await engine(task)
