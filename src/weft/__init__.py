"""Weft: agent workflows whose context is declared, checked, recorded and explained."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.agents.spec import Answer as Answer
    from weft.agents.spec import Engine as Engine
    from weft.agents.spec import Task as Task
    from weft.app import Run as Run
    from weft.app import Weft as Weft
    from weft.errors import DefinitionError as DefinitionError
    from weft.errors import Diagnostic as Diagnostic
    from weft.errors import WeftError as WeftError
    from weft.log.spec import Event as Event

_HOMES = {
    "Answer": "weft.agents.spec",
    "DefinitionError": "weft.errors",
    "Diagnostic": "weft.errors",
    "Engine": "weft.agents.spec",
    "Event": "weft.log.spec",
    "Run": "weft.app",
    "Task": "weft.agents.spec",
    "Weft": "weft.app",
    "WeftError": "weft.errors",
}

__all__ = [
    "Answer",
    "DefinitionError",
    "Diagnostic",
    "Engine",
    "Event",
    "Run",
    "Task",
    "Weft",
    "WeftError",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
