"""The agents of the support desk."""

import re

from turnloom import Task


def take_in(task: Task) -> str:
    """Which order a letter is about."""
    found = re.search(r"[Oo]rder (\d+)", task.transcript[0].text)
    return f"Order: {found[1] if found else 'unknown'}."


def pay_back(task: Task) -> str:
    """That the money is on its way."""
    return "The money is on its way."
