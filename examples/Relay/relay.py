"""Three agents that pass a text on. Every call appends a line to calls.txt."""

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
    """Return the agent's line; with CRASH_IN=<agent>, kill the process during the call."""
    with Path("calls.txt").open("a", encoding="utf-8") as calls:
        calls.write(f"{task.agent} was asked, key {task.key}\n")
    if os.environ.get("CRASH_IN") == task.agent:
        os.kill(os.getpid(), signal.SIGKILL)
    return SAYS[task.agent]
