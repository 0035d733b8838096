"""The closer, as a plain function that reports its context."""

from turnloom import Task


def close(task: Task) -> str:
    """One line for each item of the context."""
    return "\n".join(str(item["payload"]) for item in task.context.items)
