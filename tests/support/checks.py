"""What is said of a workflow folder before it runs, as `turnloom check` and a start say it."""

from turnloom import Diagnostic
from turnloom.wiring import Folders


def examined(folder: str, *, production: bool = False) -> tuple[bool, list[Diagnostic]]:
    """Whether a folder can run, and everything that there is to say about it."""
    found, problems = Folders(production=production).examine(folder)
    return found is not None, problems


def problems(folder: str) -> list[Diagnostic]:
    """Everything that there is to say about a folder."""
    return examined(folder)[1]
