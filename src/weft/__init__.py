"""Weft: agent workflows whose context is declared, checked, recorded and explained."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.agents.spec import Answer as Answer
    from weft.agents.spec import Engine as Engine
    from weft.agents.spec import Task as Task
    from weft.agents.spec import ToolCall as ToolCall
    from weft.agents.spec import ToolSchema as ToolSchema
    from weft.agents.spec import Usage as Usage
    from weft.agents.spec import use_ui_tool as use_ui_tool
    from weft.app import Run as Run
    from weft.app import Weft as Weft
    from weft.assembly.spec import Chunking as Chunking
    from weft.assembly.spec import Document as Document
    from weft.assembly.spec import RagCollection as RagCollection
    from weft.assembly.spec import RetrievalResult as RetrievalResult
    from weft.errors import DefinitionError as DefinitionError
    from weft.errors import Diagnostic as Diagnostic
    from weft.errors import MissingContext as MissingContext
    from weft.errors import QuestionExpired as QuestionExpired
    from weft.errors import WeftError as WeftError
    from weft.log.spec import Event as Event
    from weft.runtime.spec import Delivery as Delivery
    from weft.variables.spec import UNCHANGED as UNCHANGED
    from weft.variables.spec import Context as Context
    from weft.variables.spec import derivation as derivation

_HOMES = {
    "UNCHANGED": "weft.variables.spec",
    "Answer": "weft.agents.spec",
    "Chunking": "weft.assembly.spec",
    "Context": "weft.variables.spec",
    "DefinitionError": "weft.errors",
    "Delivery": "weft.runtime.spec",
    "Diagnostic": "weft.errors",
    "Document": "weft.assembly.spec",
    "Engine": "weft.agents.spec",
    "Event": "weft.log.spec",
    "MissingContext": "weft.errors",
    "QuestionExpired": "weft.errors",
    "RagCollection": "weft.assembly.spec",
    "RetrievalResult": "weft.assembly.spec",
    "Run": "weft.app",
    "Task": "weft.agents.spec",
    "ToolCall": "weft.agents.spec",
    "ToolSchema": "weft.agents.spec",
    "Usage": "weft.agents.spec",
    "Weft": "weft.app",
    "WeftError": "weft.errors",
    "derivation": "weft.variables.spec",
    "use_ui_tool": "weft.agents.spec",
}

__all__ = [
    "UNCHANGED",
    "Answer",
    "Chunking",
    "Context",
    "DefinitionError",
    "Delivery",
    "Diagnostic",
    "Document",
    "Engine",
    "Event",
    "MissingContext",
    "QuestionExpired",
    "RagCollection",
    "RetrievalResult",
    "Run",
    "Task",
    "ToolCall",
    "ToolSchema",
    "Usage",
    "Weft",
    "WeftError",
    "derivation",
    "use_ui_tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
