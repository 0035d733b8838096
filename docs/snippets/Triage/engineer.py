"""The engineer of the help desk, as a plain function."""

from turnloom import Task


def fix(task: Task) -> str:
    """Answer the user's last message."""
    said = [message.text for message in task.transcript if message.author == "user"]
    return f"FIXED. I restarted it: {said[-1]}"
