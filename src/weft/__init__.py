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
    from weft.assembly.service.providers import CompositeProvider as CompositeProvider
    from weft.assembly.service.providers import (
        DefaultCorrelationProvider as DefaultCorrelationProvider,
    )
    from weft.assembly.service.providers import FilteredContextProvider as FilteredContextProvider
    from weft.assembly.service.providers import RedactingProvider as RedactingProvider
    from weft.assembly.service.providers import StateDelegatingProvider as StateDelegatingProvider
    from weft.assembly.service.providers import SummaryProvider as SummaryProvider
    from weft.assembly.service.providers import TranscriptProvider as TranscriptProvider
    from weft.assembly.spec import ContextProvider as ContextProvider
    from weft.assembly.spec import ContextRequest as ContextRequest
    from weft.assembly.spec import ContextSlice as ContextSlice
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
    "CompositeProvider": "weft.assembly.service.providers",
    "Context": "weft.variables.spec",
    "ContextProvider": "weft.assembly.spec",
    "ContextRequest": "weft.assembly.spec",
    "ContextSlice": "weft.assembly.spec",
    "DefaultCorrelationProvider": "weft.assembly.service.providers",
    "DefinitionError": "weft.errors",
    "Delivery": "weft.runtime.spec",
    "Diagnostic": "weft.errors",
    "Engine": "weft.agents.spec",
    "Event": "weft.log.spec",
    "FilteredContextProvider": "weft.assembly.service.providers",
    "MissingContext": "weft.errors",
    "QuestionExpired": "weft.errors",
    "RedactingProvider": "weft.assembly.service.providers",
    "Run": "weft.app",
    "StateDelegatingProvider": "weft.assembly.service.providers",
    "SummaryProvider": "weft.assembly.service.providers",
    "Task": "weft.agents.spec",
    "ToolCall": "weft.agents.spec",
    "ToolSchema": "weft.agents.spec",
    "TranscriptProvider": "weft.assembly.service.providers",
    "Usage": "weft.agents.spec",
    "Weft": "weft.app",
    "WeftError": "weft.errors",
    "derivation": "weft.variables.spec",
    "use_ui_tool": "weft.agents.spec",
}

__all__ = [
    "UNCHANGED",
    "Answer",
    "CompositeProvider",
    "Context",
    "ContextProvider",
    "ContextRequest",
    "ContextSlice",
    "DefaultCorrelationProvider",
    "DefinitionError",
    "Delivery",
    "Diagnostic",
    "Engine",
    "Event",
    "FilteredContextProvider",
    "MissingContext",
    "QuestionExpired",
    "RedactingProvider",
    "Run",
    "StateDelegatingProvider",
    "SummaryProvider",
    "Task",
    "ToolCall",
    "ToolSchema",
    "TranscriptProvider",
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
