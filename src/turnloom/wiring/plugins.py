"""What installed packages add by entry points: stores, engines, schedulers and the like."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from turnloom.errors import TurnloomError, UsageError
from turnloom.wiring.doors import DOORS, check_object

# The group of entry points whose names a setting takes beside ours.
GROUPS = {
    "store": "turnloom.stores",
    "artifacts": "turnloom.artifacts",
    "beliefs": "turnloom.beliefs",
    "documents": "turnloom.documents",
    "vectors": "turnloom.vectors",
    "scheduler": "turnloom.schedulers",
    "engine": "turnloom.engines",
}


def added(setting: str) -> list[str]:
    """The names that packages add to a setting."""
    return sorted(entry_points(group=GROUPS[setting]).names)


def plugin(setting: str, name: str) -> Callable[[str], Any] | None:
    """What makes the object that a name stands for, if a package adds that name.

    Raises:
        UsageError: two packages add it, or it cannot be imported.
    """
    found = {_package(each): each for each in entry_points(group=GROUPS[setting], name=name)}
    if len(found) > 1:
        packages = ", ".join(sorted(found))
        raise UsageError(f"{setting} {name!r} is added by {packages}. Uninstall all but one.")
    for package, entry in found.items():
        return _load(setting, entry, package)
    return None


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


def _load(setting: str, entry: EntryPoint, package: str) -> Callable[[str], Any]:
    what = f"{setting} {entry.name!r} of package {package!r}"
    try:
        make: Any = entry.load()
    except Exception as error:
        raise UsageError(f"{what} cannot be imported: {_said(error)}") from error
    if not callable(make):
        raise UsageError(f"{what} is {entry.value!r}, which cannot be called.")

    def made(given: str) -> Any:
        try:
            each: Any = make(given)
        except TurnloomError:
            raise
        except Exception as error:
            raise UsageError(f"{what} cannot be made: {_said(error)}") from error
        check_object(f"What {what} gives", DOORS[setting].port, each)
        return each

    return made


def _said(error: Exception) -> str:
    """What an import says, and of anything else only its type: its text may hold a password."""
    return str(error) if isinstance(error, ImportError) else type(error).__name__
