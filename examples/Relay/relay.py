"""Three agents that pass a text on. Every call leaves a line in calls.txt."""

import os
import signal
from pathlib import Path

from turnloom import Task

SAYS = {
    "Scout": "High water at noon, low water at six.",
    "Writer": "At noon the harbour fills. At six it is mud and gulls.",
    "Editor": "Noon: water. Six: gulls.",
}


def work(task: Task) -> str:
    """What the agent says; with CRASH_IN=<agent> the process dies in the middle of the call."""
    with Path("calls.txt").open("a", encoding="utf-8") as calls:
        calls.write(f"{task.agent} was asked, key {task.key}\n")
    if os.environ.get("CRASH_IN") == task.agent:
        os.kill(os.getpid(), signal.SIGKILL)
    return SAYS[task.agent]
