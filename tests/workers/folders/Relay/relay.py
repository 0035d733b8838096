"""Three agents that pass a text on; every call writes down its key."""

from tests.workers.effects import perform
from turnloom import Task


async def work(task: Task) -> str:
    return f"{task.agent} {await perform(task.key)}"
