"""The desks of the helpline."""

from turnloom import Task


def reply(task: Task) -> str:
    """That this desk takes the call."""
    return f"{task.agent} takes the call."
