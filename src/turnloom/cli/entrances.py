"""Folders of workflow folders, and which of these is where one begins."""

from turnloom.errors import UsageError
from turnloom.kernel.models import Report
from turnloom.kernel.values import as_object
from turnloom.wiring import read_part, workflows_below


def entrance(path: str) -> str:
    """The workflow folder at a path, or the one below it that is the entry point.

    Raises:
        UsageError: below it are workflow folders, and not exactly one says that it is.
    """
    below = workflows_below(path)
    if not below:
        return path
    entrances = [each for each in below if _is_entry(each)]
    if len(entrances) == 1:
        return entrances[0]
    if entrances:
        found = f"{len(entrances)} of them are entry points: {', '.join(entrances)}"
    else:
        found = f"none of them says `entry_point: true`: {', '.join(below)}"
    raise UsageError(f"{path!r} holds workflow folders, and {found}. Name the one to run.")


def _is_entry(folder: str) -> bool:
    """Whether a workflow's orchestrator says that it is the entry point."""
    try:
        document, _ = read_part(folder, "orchestrator")
    except UsageError:  # it has none, or two: not one that says so
        return False
    if document is None:
        return False
    declared = as_object(Report(folder).part(document, "orchestrator").value) or {}
    return declared.get("entry_point") is True
