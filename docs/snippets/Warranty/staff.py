"""The staff of the shop, as plain functions that stand for models."""

import re

from turnloom import Task


def advise(task: Task) -> str:
    """Ask first; then answer by what the frame says."""
    if "- checked: true" not in task.prompt:
        return "What broke, and how many months old is it?"
    if "- covered: true" in task.prompt:
        return "Good news: the repair is free of charge."
    return "The repair costs 40 euros."


def check(task: Task) -> str:
    """Compare the age that the customer named with the warranty."""
    said = [message.text for message in task.transcript if message.author == "user"]
    months = int(re.findall(r"\d+", said[-1])[-1])
    if months <= 24:
        return "COVERED"
    return f"NOT COVERED: {months} months are more than 24."
