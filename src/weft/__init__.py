"""Weft: agent workflows whose context is declared, checked, recorded and explained."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.agents.spec import Answer as Answer
    from weft.agents.spec import Engine as Engine
    from weft.agents.spec import Publication as Publication
    from weft.agents.spec import Task as Task
    from weft.agents.spec import ToolCall as ToolCall
    from weft.agents.spec import ToolSchema as ToolSchema
    from weft.agents.spec import Usage as Usage
    from weft.agents.spec import use_ui_tool as use_ui_tool
    from weft.app import Board as Board
    from weft.app import Run as Run
    from weft.app import Weft as Weft
    from weft.assembly.logic.assembled import AssembledContext as AssembledContext
    from weft.assembly.service.providers import CompositeProvider as CompositeProvider
    from weft.assembly.service.providers import (
        DefaultCorrelationProvider as DefaultCorrelationProvider,
    )
    from weft.assembly.service.providers import FilteredContextProvider as FilteredContextProvider
    from weft.assembly.service.providers import RedactingProvider as RedactingProvider
    from weft.assembly.service.providers import StateDelegatingProvider as StateDelegatingProvider
    from weft.assembly.service.providers import SummaryProvider as SummaryProvider
    from weft.assembly.service.providers import TranscriptProvider as TranscriptProvider
    from weft.assembly.spec import Chunking as Chunking
    from weft.assembly.spec import ContextProvider as ContextProvider
    from weft.assembly.spec import ContextRequest as ContextRequest
    from weft.assembly.spec import ContextSlice as ContextSlice
    from weft.assembly.spec import Document as Document
    from weft.assembly.spec import Message as Message
    from weft.assembly.spec import RagCollection as RagCollection
    from weft.assembly.spec import RetrievalResult as RetrievalResult
    from weft.assembly.spec import TurnContext as TurnContext
    from weft.assembly.spec.formats import Budget as Budget
    from weft.assembly.spec.formats import ContextFormat as ContextFormat
    from weft.assembly.spec.segments import ArtifactSegment as ArtifactSegment
    from weft.assembly.spec.segments import HistorySegment as HistorySegment
    from weft.assembly.spec.segments import LiteralSegment as LiteralSegment
    from weft.assembly.spec.segments import RetrievalSegment as RetrievalSegment
    from weft.assembly.spec.segments import StateSegment as StateSegment
    from weft.assembly.spec.segments import VariableSegment as VariableSegment
    from weft.assembly.spec.sources import from_history as from_history
    from weft.assembly.spec.sources import from_literal as from_literal
    from weft.assembly.spec.sources import from_provider as from_provider
    from weft.assembly.spec.sources import from_retrieval as from_retrieval
    from weft.assembly.spec.sources import from_state as from_state
    from weft.assembly.spec.sources import from_variables as from_variables
    from weft.board.spec import After as After
    from weft.board.spec import Artifact as Artifact
    from weft.board.spec import BoardHandle as BoardHandle
    from weft.board.spec import Envelope as Envelope
    from weft.board.spec import FilterConfig as FilterConfig
    from weft.board.spec import Labelled as Labelled
    from weft.board.spec import Private as Private
    from weft.board.spec import Public as Public
    from weft.board.spec import Reader as Reader
    from weft.board.spec import Summary as Summary
    from weft.board.spec import TagFilter as TagFilter
    from weft.board.spec import Tenant as Tenant
    from weft.board.spec import Visibility as Visibility
    from weft.board.spec import artifact_type as artifact_type
    from weft.errors import ArtifactExists as ArtifactExists
    from weft.errors import BudgetExceeded as BudgetExceeded
    from weft.errors import ContextTooLarge as ContextTooLarge
    from weft.errors import DefinitionError as DefinitionError
    from weft.errors import Diagnostic as Diagnostic
    from weft.errors import FlowError as FlowError
    from weft.errors import FlowFailed as FlowFailed
    from weft.errors import InvalidArtifact as InvalidArtifact
    from weft.errors import InvalidUpdate as InvalidUpdate
    from weft.errors import LoopDetected as LoopDetected
    from weft.errors import LoopLimit as LoopLimit
    from weft.errors import MissingContext as MissingContext
    from weft.errors import NoCandidates as NoCandidates
    from weft.errors import PlanChanged as PlanChanged
    from weft.errors import QuestionExpired as QuestionExpired
    from weft.errors import ReactionFailed as ReactionFailed
    from weft.errors import UnknownType as UnknownType
    from weft.errors import UsageError as UsageError
    from weft.errors import WeftError as WeftError
    from weft.errors import WriteRefused as WriteRefused
    from weft.flow.logic.flows import Flow as Flow
    from weft.flow.spec import AgentStep as AgentStep
    from weft.flow.spec import Option as Option
    from weft.flow.spec import Path as Path
    from weft.flow.spec import PathResult as PathResult
    from weft.flow.spec import Retry as Retry
    from weft.flow.spec import StepContext as StepContext
    from weft.flow.spec import StepFailure as StepFailure
    from weft.flow.spec import Update as Update
    from weft.flow.spec import append as append
    from weft.flow.spec import complete as complete
    from weft.flow.spec import escalate_to as escalate_to
    from weft.flow.spec import merge as merge
    from weft.flow.spec.outcomes import Outcome as Outcome
    from weft.guards.spec import Category as Category
    from weft.guards.spec import Guards as Guards
    from weft.guards.spec import LoopDetection as LoopDetection
    from weft.guards.spec import Price as Price
    from weft.guards.spec import RunBudget as RunBudget
    from weft.guards.spec import Selection as Selection
    from weft.guards.spec import Strategies as Strategies
    from weft.guards.spec import Weights as Weights
    from weft.log.spec import Event as Event
    from weft.reaction.spec import Batch as Batch
    from weft.reaction.spec import Join as Join
    from weft.runtime.spec import Delivery as Delivery
    from weft.variables.spec import UNCHANGED as UNCHANGED
    from weft.variables.spec import Context as Context
    from weft.variables.spec import derivation as derivation

_HOMES = {
    "After": "weft.board.spec",
    "AgentStep": "weft.flow.spec",
    "Answer": "weft.agents.spec",
    "Artifact": "weft.board.spec",
    "ArtifactExists": "weft.errors",
    "ArtifactSegment": "weft.assembly.spec.segments",
    "AssembledContext": "weft.assembly.logic.assembled",
    "Batch": "weft.reaction.spec",
    "Board": "weft.app",
    "BoardHandle": "weft.board.spec",
    "Budget": "weft.assembly.spec.formats",
    "BudgetExceeded": "weft.errors",
    "Category": "weft.guards.spec",
    "Chunking": "weft.assembly.spec",
    "CompositeProvider": "weft.assembly.service.providers",
    "Context": "weft.variables.spec",
    "ContextFormat": "weft.assembly.spec.formats",
    "ContextProvider": "weft.assembly.spec",
    "ContextRequest": "weft.assembly.spec",
    "ContextSlice": "weft.assembly.spec",
    "ContextTooLarge": "weft.errors",
    "DefaultCorrelationProvider": "weft.assembly.service.providers",
    "DefinitionError": "weft.errors",
    "Delivery": "weft.runtime.spec",
    "Diagnostic": "weft.errors",
    "Document": "weft.assembly.spec",
    "Engine": "weft.agents.spec",
    "Envelope": "weft.board.spec",
    "Event": "weft.log.spec",
    "FilterConfig": "weft.board.spec",
    "FilteredContextProvider": "weft.assembly.service.providers",
    "Flow": "weft.flow.logic.flows",
    "FlowError": "weft.errors",
    "FlowFailed": "weft.errors",
    "Guards": "weft.guards.spec",
    "HistorySegment": "weft.assembly.spec.segments",
    "InvalidArtifact": "weft.errors",
    "InvalidUpdate": "weft.errors",
    "Join": "weft.reaction.spec",
    "Labelled": "weft.board.spec",
    "LiteralSegment": "weft.assembly.spec.segments",
    "LoopDetected": "weft.errors",
    "LoopDetection": "weft.guards.spec",
    "LoopLimit": "weft.errors",
    "Message": "weft.assembly.spec",
    "MissingContext": "weft.errors",
    "NoCandidates": "weft.errors",
    "Option": "weft.flow.spec",
    "Outcome": "weft.flow.spec.outcomes",
    "Path": "weft.flow.spec",
    "PathResult": "weft.flow.spec",
    "PlanChanged": "weft.errors",
    "Price": "weft.guards.spec",
    "Private": "weft.board.spec",
    "Public": "weft.board.spec",
    "Publication": "weft.agents.spec",
    "QuestionExpired": "weft.errors",
    "RagCollection": "weft.assembly.spec",
    "ReactionFailed": "weft.errors",
    "Reader": "weft.board.spec",
    "RedactingProvider": "weft.assembly.service.providers",
    "RetrievalResult": "weft.assembly.spec",
    "RetrievalSegment": "weft.assembly.spec.segments",
    "Retry": "weft.flow.spec",
    "Run": "weft.app",
    "RunBudget": "weft.guards.spec",
    "Selection": "weft.guards.spec",
    "StateDelegatingProvider": "weft.assembly.service.providers",
    "StateSegment": "weft.assembly.spec.segments",
    "StepContext": "weft.flow.spec",
    "StepFailure": "weft.flow.spec",
    "Strategies": "weft.guards.spec",
    "Summary": "weft.board.spec",
    "SummaryProvider": "weft.assembly.service.providers",
    "TagFilter": "weft.board.spec",
    "Task": "weft.agents.spec",
    "Tenant": "weft.board.spec",
    "ToolCall": "weft.agents.spec",
    "ToolSchema": "weft.agents.spec",
    "TranscriptProvider": "weft.assembly.service.providers",
    "TurnContext": "weft.assembly.spec",
    "UNCHANGED": "weft.variables.spec",
    "UnknownType": "weft.errors",
    "Update": "weft.flow.spec",
    "Usage": "weft.agents.spec",
    "UsageError": "weft.errors",
    "VariableSegment": "weft.assembly.spec.segments",
    "Visibility": "weft.board.spec",
    "Weft": "weft.app",
    "WeftError": "weft.errors",
    "Weights": "weft.guards.spec",
    "WriteRefused": "weft.errors",
    "append": "weft.flow.spec",
    "artifact_type": "weft.board.spec",
    "complete": "weft.flow.spec",
    "derivation": "weft.variables.spec",
    "escalate_to": "weft.flow.spec",
    "from_history": "weft.assembly.spec.sources",
    "from_literal": "weft.assembly.spec.sources",
    "from_provider": "weft.assembly.spec.sources",
    "from_retrieval": "weft.assembly.spec.sources",
    "from_state": "weft.assembly.spec.sources",
    "from_variables": "weft.assembly.spec.sources",
    "merge": "weft.flow.spec",
    "use_ui_tool": "weft.agents.spec",
}

__all__ = [
    "UNCHANGED",
    "After",
    "AgentStep",
    "Answer",
    "Artifact",
    "ArtifactExists",
    "ArtifactSegment",
    "AssembledContext",
    "Batch",
    "Board",
    "BoardHandle",
    "Budget",
    "BudgetExceeded",
    "Category",
    "Chunking",
    "CompositeProvider",
    "Context",
    "ContextFormat",
    "ContextProvider",
    "ContextRequest",
    "ContextSlice",
    "ContextTooLarge",
    "DefaultCorrelationProvider",
    "DefinitionError",
    "Delivery",
    "Diagnostic",
    "Document",
    "Engine",
    "Envelope",
    "Event",
    "FilterConfig",
    "FilteredContextProvider",
    "Flow",
    "FlowError",
    "FlowFailed",
    "Guards",
    "HistorySegment",
    "InvalidArtifact",
    "InvalidUpdate",
    "Join",
    "Labelled",
    "LiteralSegment",
    "LoopDetected",
    "LoopDetection",
    "LoopLimit",
    "Message",
    "MissingContext",
    "NoCandidates",
    "Option",
    "Outcome",
    "Path",
    "PathResult",
    "PlanChanged",
    "Price",
    "Private",
    "Public",
    "Publication",
    "QuestionExpired",
    "RagCollection",
    "ReactionFailed",
    "Reader",
    "RedactingProvider",
    "RetrievalResult",
    "RetrievalSegment",
    "Retry",
    "Run",
    "RunBudget",
    "Selection",
    "StateDelegatingProvider",
    "StateSegment",
    "StepContext",
    "StepFailure",
    "Strategies",
    "Summary",
    "SummaryProvider",
    "TagFilter",
    "Task",
    "Tenant",
    "ToolCall",
    "ToolSchema",
    "TranscriptProvider",
    "TurnContext",
    "UnknownType",
    "Update",
    "Usage",
    "UsageError",
    "VariableSegment",
    "Visibility",
    "Weft",
    "WeftError",
    "Weights",
    "WriteRefused",
    "append",
    "artifact_type",
    "complete",
    "derivation",
    "escalate_to",
    "from_history",
    "from_literal",
    "from_provider",
    "from_retrieval",
    "from_state",
    "from_variables",
    "merge",
    "use_ui_tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
