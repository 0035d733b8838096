"""Turnloom: agent workflows whose context is declared, checked, recorded and explained."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnloom.agents.spec import Answer as Answer
    from turnloom.agents.spec import Engine as Engine
    from turnloom.agents.spec import Publication as Publication
    from turnloom.agents.spec import Task as Task
    from turnloom.agents.spec import ToolCall as ToolCall
    from turnloom.agents.spec import ToolSchema as ToolSchema
    from turnloom.agents.spec import Usage as Usage
    from turnloom.agents.spec import use_ui_tool as use_ui_tool
    from turnloom.app import Board as Board
    from turnloom.app import Loom as Loom
    from turnloom.app import Run as Run
    from turnloom.assembly.logic.assembled import AssembledContext as AssembledContext
    from turnloom.assembly.service.providers import CompositeProvider as CompositeProvider
    from turnloom.assembly.service.providers import (
        DefaultCorrelationProvider as DefaultCorrelationProvider,
    )
    from turnloom.assembly.service.providers import (
        FilteredContextProvider as FilteredContextProvider,
    )
    from turnloom.assembly.service.providers import RedactingProvider as RedactingProvider
    from turnloom.assembly.service.providers import (
        StateDelegatingProvider as StateDelegatingProvider,
    )
    from turnloom.assembly.service.providers import SummaryProvider as SummaryProvider
    from turnloom.assembly.service.providers import TranscriptProvider as TranscriptProvider
    from turnloom.assembly.spec import Chunking as Chunking
    from turnloom.assembly.spec import ContextProvider as ContextProvider
    from turnloom.assembly.spec import ContextRequest as ContextRequest
    from turnloom.assembly.spec import ContextSlice as ContextSlice
    from turnloom.assembly.spec import Document as Document
    from turnloom.assembly.spec import Message as Message
    from turnloom.assembly.spec import RagCollection as RagCollection
    from turnloom.assembly.spec import RetrievalResult as RetrievalResult
    from turnloom.assembly.spec import TurnContext as TurnContext
    from turnloom.assembly.spec.formats import Budget as Budget
    from turnloom.assembly.spec.formats import ContextFormat as ContextFormat
    from turnloom.assembly.spec.segments import ArtifactSegment as ArtifactSegment
    from turnloom.assembly.spec.segments import HistorySegment as HistorySegment
    from turnloom.assembly.spec.segments import LiteralSegment as LiteralSegment
    from turnloom.assembly.spec.segments import RetrievalSegment as RetrievalSegment
    from turnloom.assembly.spec.segments import StateSegment as StateSegment
    from turnloom.assembly.spec.segments import VariableSegment as VariableSegment
    from turnloom.assembly.spec.sources import from_history as from_history
    from turnloom.assembly.spec.sources import from_literal as from_literal
    from turnloom.assembly.spec.sources import from_provider as from_provider
    from turnloom.assembly.spec.sources import from_retrieval as from_retrieval
    from turnloom.assembly.spec.sources import from_state as from_state
    from turnloom.assembly.spec.sources import from_variables as from_variables
    from turnloom.board.spec import After as After
    from turnloom.board.spec import Artifact as Artifact
    from turnloom.board.spec import BoardHandle as BoardHandle
    from turnloom.board.spec import BoardSummary as BoardSummary
    from turnloom.board.spec import Envelope as Envelope
    from turnloom.board.spec import FilterConfig as FilterConfig
    from turnloom.board.spec import Labelled as Labelled
    from turnloom.board.spec import Private as Private
    from turnloom.board.spec import Public as Public
    from turnloom.board.spec import Reader as Reader
    from turnloom.board.spec import TagFilter as TagFilter
    from turnloom.board.spec import Tenant as Tenant
    from turnloom.board.spec import Visibility as Visibility
    from turnloom.board.spec import artifact_type as artifact_type
    from turnloom.errors import ArtifactExists as ArtifactExists
    from turnloom.errors import BudgetExceeded as BudgetExceeded
    from turnloom.errors import ContextTooLarge as ContextTooLarge
    from turnloom.errors import DefinitionError as DefinitionError
    from turnloom.errors import Diagnostic as Diagnostic
    from turnloom.errors import FlowError as FlowError
    from turnloom.errors import FlowFailed as FlowFailed
    from turnloom.errors import InvalidArtifact as InvalidArtifact
    from turnloom.errors import InvalidUpdate as InvalidUpdate
    from turnloom.errors import LoopDetected as LoopDetected
    from turnloom.errors import LoopLimit as LoopLimit
    from turnloom.errors import MissingContext as MissingContext
    from turnloom.errors import NoCandidates as NoCandidates
    from turnloom.errors import PlanChanged as PlanChanged
    from turnloom.errors import QuestionExpired as QuestionExpired
    from turnloom.errors import ReactionFailed as ReactionFailed
    from turnloom.errors import TurnloomError as TurnloomError
    from turnloom.errors import UnknownFlow as UnknownFlow
    from turnloom.errors import UnknownType as UnknownType
    from turnloom.errors import UsageError as UsageError
    from turnloom.errors import WriteRefused as WriteRefused
    from turnloom.flow.logic.flows import Flow as Flow
    from turnloom.flow.spec import AgentStep as AgentStep
    from turnloom.flow.spec import Option as Option
    from turnloom.flow.spec import Path as Path
    from turnloom.flow.spec import PathResult as PathResult
    from turnloom.flow.spec import Retry as Retry
    from turnloom.flow.spec import StepContext as StepContext
    from turnloom.flow.spec import StepFailure as StepFailure
    from turnloom.flow.spec import Update as Update
    from turnloom.flow.spec import append as append
    from turnloom.flow.spec import complete as complete
    from turnloom.flow.spec import escalate_to as escalate_to
    from turnloom.flow.spec import merge as merge
    from turnloom.flow.spec.outcomes import Outcome as Outcome
    from turnloom.guards.spec import Category as Category
    from turnloom.guards.spec import Guards as Guards
    from turnloom.guards.spec import LoopDetection as LoopDetection
    from turnloom.guards.spec import Price as Price
    from turnloom.guards.spec import RunBudget as RunBudget
    from turnloom.guards.spec import Selection as Selection
    from turnloom.guards.spec import Strategies as Strategies
    from turnloom.guards.spec import Weights as Weights
    from turnloom.log.spec import Event as Event
    from turnloom.reaction.spec import Batch as Batch
    from turnloom.reaction.spec import Join as Join
    from turnloom.runtime.ports import Observer as Observer
    from turnloom.runtime.spec import Delivery as Delivery
    from turnloom.runtime.spec import ObservedRun as ObservedRun
    from turnloom.variables.spec import UNCHANGED as UNCHANGED
    from turnloom.variables.spec import Context as Context
    from turnloom.variables.spec import derivation as derivation

_HOMES = {
    "After": "turnloom.board.spec",
    "AgentStep": "turnloom.flow.spec",
    "Answer": "turnloom.agents.spec",
    "Artifact": "turnloom.board.spec",
    "ArtifactExists": "turnloom.errors",
    "ArtifactSegment": "turnloom.assembly.spec.segments",
    "AssembledContext": "turnloom.assembly.logic.assembled",
    "Batch": "turnloom.reaction.spec",
    "Board": "turnloom.app",
    "BoardHandle": "turnloom.board.spec",
    "Budget": "turnloom.assembly.spec.formats",
    "BudgetExceeded": "turnloom.errors",
    "Category": "turnloom.guards.spec",
    "Chunking": "turnloom.assembly.spec",
    "CompositeProvider": "turnloom.assembly.service.providers",
    "Context": "turnloom.variables.spec",
    "ContextFormat": "turnloom.assembly.spec.formats",
    "ContextProvider": "turnloom.assembly.spec",
    "ContextRequest": "turnloom.assembly.spec",
    "ContextSlice": "turnloom.assembly.spec",
    "ContextTooLarge": "turnloom.errors",
    "DefaultCorrelationProvider": "turnloom.assembly.service.providers",
    "DefinitionError": "turnloom.errors",
    "Delivery": "turnloom.runtime.spec",
    "Diagnostic": "turnloom.errors",
    "Document": "turnloom.assembly.spec",
    "Engine": "turnloom.agents.spec",
    "Envelope": "turnloom.board.spec",
    "Event": "turnloom.log.spec",
    "FilterConfig": "turnloom.board.spec",
    "FilteredContextProvider": "turnloom.assembly.service.providers",
    "Flow": "turnloom.flow.logic.flows",
    "FlowError": "turnloom.errors",
    "FlowFailed": "turnloom.errors",
    "Guards": "turnloom.guards.spec",
    "HistorySegment": "turnloom.assembly.spec.segments",
    "InvalidArtifact": "turnloom.errors",
    "InvalidUpdate": "turnloom.errors",
    "Join": "turnloom.reaction.spec",
    "Labelled": "turnloom.board.spec",
    "LiteralSegment": "turnloom.assembly.spec.segments",
    "Loom": "turnloom.app",
    "LoopDetected": "turnloom.errors",
    "LoopDetection": "turnloom.guards.spec",
    "LoopLimit": "turnloom.errors",
    "Message": "turnloom.assembly.spec",
    "MissingContext": "turnloom.errors",
    "NoCandidates": "turnloom.errors",
    "ObservedRun": "turnloom.runtime.spec",
    "Observer": "turnloom.runtime.ports",
    "Option": "turnloom.flow.spec",
    "Outcome": "turnloom.flow.spec.outcomes",
    "Path": "turnloom.flow.spec",
    "PathResult": "turnloom.flow.spec",
    "PlanChanged": "turnloom.errors",
    "Price": "turnloom.guards.spec",
    "Private": "turnloom.board.spec",
    "Public": "turnloom.board.spec",
    "Publication": "turnloom.agents.spec",
    "QuestionExpired": "turnloom.errors",
    "RagCollection": "turnloom.assembly.spec",
    "ReactionFailed": "turnloom.errors",
    "Reader": "turnloom.board.spec",
    "RedactingProvider": "turnloom.assembly.service.providers",
    "RetrievalResult": "turnloom.assembly.spec",
    "RetrievalSegment": "turnloom.assembly.spec.segments",
    "Retry": "turnloom.flow.spec",
    "Run": "turnloom.app",
    "RunBudget": "turnloom.guards.spec",
    "Selection": "turnloom.guards.spec",
    "StateDelegatingProvider": "turnloom.assembly.service.providers",
    "StateSegment": "turnloom.assembly.spec.segments",
    "StepContext": "turnloom.flow.spec",
    "StepFailure": "turnloom.flow.spec",
    "Strategies": "turnloom.guards.spec",
    "BoardSummary": "turnloom.board.spec",
    "SummaryProvider": "turnloom.assembly.service.providers",
    "TagFilter": "turnloom.board.spec",
    "Task": "turnloom.agents.spec",
    "Tenant": "turnloom.board.spec",
    "ToolCall": "turnloom.agents.spec",
    "ToolSchema": "turnloom.agents.spec",
    "TranscriptProvider": "turnloom.assembly.service.providers",
    "TurnContext": "turnloom.assembly.spec",
    "TurnloomError": "turnloom.errors",
    "UNCHANGED": "turnloom.variables.spec",
    "UnknownFlow": "turnloom.errors",
    "UnknownType": "turnloom.errors",
    "Update": "turnloom.flow.spec",
    "Usage": "turnloom.agents.spec",
    "UsageError": "turnloom.errors",
    "VariableSegment": "turnloom.assembly.spec.segments",
    "Visibility": "turnloom.board.spec",
    "Weights": "turnloom.guards.spec",
    "WriteRefused": "turnloom.errors",
    "append": "turnloom.flow.spec",
    "artifact_type": "turnloom.board.spec",
    "complete": "turnloom.flow.spec",
    "derivation": "turnloom.variables.spec",
    "escalate_to": "turnloom.flow.spec",
    "from_history": "turnloom.assembly.spec.sources",
    "from_literal": "turnloom.assembly.spec.sources",
    "from_provider": "turnloom.assembly.spec.sources",
    "from_retrieval": "turnloom.assembly.spec.sources",
    "from_state": "turnloom.assembly.spec.sources",
    "from_variables": "turnloom.assembly.spec.sources",
    "merge": "turnloom.flow.spec",
    "use_ui_tool": "turnloom.agents.spec",
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
    "Loom",
    "LoopDetected",
    "LoopDetection",
    "LoopLimit",
    "Message",
    "MissingContext",
    "NoCandidates",
    "ObservedRun",
    "Observer",
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
    "BoardSummary",
    "SummaryProvider",
    "TagFilter",
    "Task",
    "Tenant",
    "ToolCall",
    "ToolSchema",
    "TranscriptProvider",
    "TurnContext",
    "TurnloomError",
    "UnknownFlow",
    "UnknownType",
    "Update",
    "Usage",
    "UsageError",
    "VariableSegment",
    "Visibility",
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
        raise AttributeError(f"module 'turnloom' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
