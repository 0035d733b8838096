"""Turnloom: agent workflows with declared, checked, recorded and explained context."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnloom.access.service import Credential as Credential
    from turnloom.access.spec import ApiKey as ApiKey
    from turnloom.access.spec import AuditEntry as AuditEntry
    from turnloom.access.spec import CreatedKey as CreatedKey
    from turnloom.agents.spec import Answer as Answer
    from turnloom.agents.spec import CallComponent as CallComponent
    from turnloom.agents.spec import Component as Component
    from turnloom.agents.spec import Engine as Engine
    from turnloom.agents.spec import Exchange as Exchange
    from turnloom.agents.spec import OutputSchema as OutputSchema
    from turnloom.agents.spec import Publication as Publication
    from turnloom.agents.spec import Question as Question
    from turnloom.agents.spec import Task as Task
    from turnloom.agents.spec import ToolCall as ToolCall
    from turnloom.agents.spec import ToolResult as ToolResult
    from turnloom.agents.spec import ToolSchema as ToolSchema
    from turnloom.agents.spec import TurnComponent as TurnComponent
    from turnloom.agents.spec import Usage as Usage
    from turnloom.agents.spec import use_ui_tool as use_ui_tool
    from turnloom.app import Board as Board
    from turnloom.app import Definition as Definition
    from turnloom.app import Explanations as Explanations
    from turnloom.app import History as History
    from turnloom.app import Loom as Loom
    from turnloom.app import Run as Run
    from turnloom.app.choosing import RunChoice as RunChoice
    from turnloom.app.feedback import Opinion as Opinion
    from turnloom.app.feedback import RunFeedback as RunFeedback
    from turnloom.app.guards import AgentBelief as AgentBelief
    from turnloom.app.guards import BudgetUse as BudgetUse
    from turnloom.app.guards import GuardRecords as GuardRecords
    from turnloom.app.keys import ApiKeys as ApiKeys
    from turnloom.app.keys import AuditLog as AuditLog
    from turnloom.app.keys import Authentication as Authentication
    from turnloom.app.loom import LoomSettings as LoomSettings
    from turnloom.app.schedules import Schedules as Schedules
    from turnloom.app.serving import Serving as Serving
    from turnloom.app.view import BoardView as BoardView
    from turnloom.app.view import LoomView as LoomView
    from turnloom.app.workflows import ServedWorkflow as ServedWorkflow
    from turnloom.app.workflows import ShownWorkflow as ShownWorkflow
    from turnloom.app.workflows import Workflows as Workflows
    from turnloom.assembly.events import Withheld as Withheld
    from turnloom.assembly.logic.assembled import AssembledContext as AssembledContext
    from turnloom.assembly.ports import VectorSearch as VectorSearch
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
    from turnloom.assembly.spec.providers import AgentRef as AgentRef
    from turnloom.assembly.spec.providers import RunRef as RunRef
    from turnloom.assembly.spec.providers import Transcript as Transcript
    from turnloom.assembly.spec.retrieval import AddedDocuments as AddedDocuments
    from turnloom.assembly.spec.retrieval import RetrievalResults as RetrievalResults
    from turnloom.assembly.spec.segments import ArtifactSegment as ArtifactSegment
    from turnloom.assembly.spec.segments import HistorySegment as HistorySegment
    from turnloom.assembly.spec.segments import HistorySummary as HistorySummary
    from turnloom.assembly.spec.segments import LiteralSegment as LiteralSegment
    from turnloom.assembly.spec.segments import RetrievalSegment as RetrievalSegment
    from turnloom.assembly.spec.segments import ShownArtifact as ShownArtifact
    from turnloom.assembly.spec.segments import ShownVariable as ShownVariable
    from turnloom.assembly.spec.segments import StateSegment as StateSegment
    from turnloom.assembly.spec.segments import VariableSegment as VariableSegment
    from turnloom.assembly.spec.sources import HistorySource as HistorySource
    from turnloom.assembly.spec.sources import LiteralSource as LiteralSource
    from turnloom.assembly.spec.sources import ProviderSource as ProviderSource
    from turnloom.assembly.spec.sources import RetrievalSource as RetrievalSource
    from turnloom.assembly.spec.sources import Sharing as Sharing
    from turnloom.assembly.spec.sources import Source as Source
    from turnloom.assembly.spec.sources import StateSource as StateSource
    from turnloom.assembly.spec.sources import VariableSource as VariableSource
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
    from turnloom.board.spec import Shared as Shared
    from turnloom.board.spec import TagFilter as TagFilter
    from turnloom.board.spec import Tenant as Tenant
    from turnloom.board.spec import Visibility as Visibility
    from turnloom.board.spec import artifact_type as artifact_type
    from turnloom.board.spec.artifacts import Consumption as Consumption
    from turnloom.board.spec.queries import ArtifactItems as ArtifactItems
    from turnloom.errors import ArtifactExists as ArtifactExists
    from turnloom.errors import BoardError as BoardError
    from turnloom.errors import BudgetExceeded as BudgetExceeded
    from turnloom.errors import CollectionUnavailable as CollectionUnavailable
    from turnloom.errors import Conflict as Conflict
    from turnloom.errors import ContextTooLarge as ContextTooLarge
    from turnloom.errors import ContextUnavailable as ContextUnavailable
    from turnloom.errors import DefinitionError as DefinitionError
    from turnloom.errors import Diagnostic as Diagnostic
    from turnloom.errors import DocumentsUnavailable as DocumentsUnavailable
    from turnloom.errors import EngineError as EngineError
    from turnloom.errors import FlowError as FlowError
    from turnloom.errors import Forbidden as Forbidden
    from turnloom.errors import InboxFull as InboxFull
    from turnloom.errors import InvalidArtifact as InvalidArtifact
    from turnloom.errors import InvalidUpdate as InvalidUpdate
    from turnloom.errors import LeaseLost as LeaseLost
    from turnloom.errors import LogDamaged as LogDamaged
    from turnloom.errors import LogError as LogError
    from turnloom.errors import LoopDetected as LoopDetected
    from turnloom.errors import LoopLimit as LoopLimit
    from turnloom.errors import MessageRejected as MessageRejected
    from turnloom.errors import MissingContext as MissingContext
    from turnloom.errors import NoCandidates as NoCandidates
    from turnloom.errors import NotAuthenticated as NotAuthenticated
    from turnloom.errors import NotYours as NotYours
    from turnloom.errors import PlanChanged as PlanChanged
    from turnloom.errors import PredicateFailed as PredicateFailed
    from turnloom.errors import QuestionExpired as QuestionExpired
    from turnloom.errors import ReactionFailed as ReactionFailed
    from turnloom.errors import RunBusy as RunBusy
    from turnloom.errors import StoreUnavailable as StoreUnavailable
    from turnloom.errors import ToolServerError as ToolServerError
    from turnloom.errors import TooManyQuestions as TooManyQuestions
    from turnloom.errors import TurnloomError as TurnloomError
    from turnloom.errors import UnknownCollection as UnknownCollection
    from turnloom.errors import UnknownFlow as UnknownFlow
    from turnloom.errors import UnknownKind as UnknownKind
    from turnloom.errors import UnknownRun as UnknownRun
    from turnloom.errors import UnknownType as UnknownType
    from turnloom.errors import UnknownWorkflow as UnknownWorkflow
    from turnloom.errors import UsageError as UsageError
    from turnloom.errors import WorkflowGone as WorkflowGone
    from turnloom.errors import WriteRefused as WriteRefused
    from turnloom.events import RunEnd as RunEnd
    from turnloom.events import RunEvent as RunEvent
    from turnloom.explain.spec.backtest import Backtest as Backtest
    from turnloom.explain.spec.blame import BlameExplained as BlameExplained
    from turnloom.explain.spec.board import ConsumptionExplained as ConsumptionExplained
    from turnloom.explain.spec.board import OfferExplained as OfferExplained
    from turnloom.explain.spec.cost import Cost as Cost
    from turnloom.explain.spec.diff import TurnDiff as TurnDiff
    from turnloom.explain.spec.explanations import Explanation as Explanation
    from turnloom.explain.spec.explanations import RouteExplanation as RouteExplanation
    from turnloom.explain.spec.replay import Replay as Replay
    from turnloom.explain.spec.route import FlowRouteExplained as FlowRouteExplained
    from turnloom.explain.spec.route import RouteExplained as RouteExplained
    from turnloom.explain.spec.state import StateExplained as StateExplained
    from turnloom.explain.spec.timeline import Timeline as Timeline
    from turnloom.explain.spec.turn import TurnExplained as TurnExplained
    from turnloom.explain.spec.variable import VariableExplained as VariableExplained
    from turnloom.explain.spec.what_if import WhatIf as WhatIf
    from turnloom.feedback.spec import Feedback as Feedback
    from turnloom.flow.logic.flows import Flow as Flow
    from turnloom.flow.logic.flows import FlowSettings as FlowSettings
    from turnloom.flow.spec import AgentStep as AgentStep
    from turnloom.flow.spec import Cache as Cache
    from turnloom.flow.spec import Execution as Execution
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
    from turnloom.flow.spec.builder import AnyPath as AnyPath
    from turnloom.flow.spec.builder import Complete as Complete
    from turnloom.flow.spec.builder import StepSettings as StepSettings
    from turnloom.flow.spec.nodes import ApprovalRequest as ApprovalRequest
    from turnloom.flow.spec.progress import DecisionRecord as DecisionRecord
    from turnloom.flow.spec.progress import FlowFailed as FlowFailed
    from turnloom.flow.spec.progress import Outcome as Outcome
    from turnloom.flow.spec.progress import OutcomeStatus as OutcomeStatus
    from turnloom.flow.spec.steps import AnyStep as AnyStep
    from turnloom.flow.spec.steps import CodeStep as CodeStep
    from turnloom.flow.spec.steps import ContextRunner as ContextRunner
    from turnloom.flow.spec.steps import StateRunner as StateRunner
    from turnloom.flow.spec.steps import StepChange as StepChange
    from turnloom.flow.spec.steps import StepFunction as StepFunction
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
    from turnloom.reaction.spec.builder import AgentBuilder as AgentBuilder
    from turnloom.runs.chat import ChatEvent as ChatEvent
    from turnloom.runs.principal import Principal as Principal
    from turnloom.runtime.ports import Observer as Observer
    from turnloom.runtime.spec import Delivery as Delivery
    from turnloom.runtime.spec import Delta as Delta
    from turnloom.runtime.spec import Holder as Holder
    from turnloom.runtime.spec import ObservedRun as ObservedRun
    from turnloom.runtime.spec import PrunedRun as PrunedRun
    from turnloom.runtime.spec import RunSummary as RunSummary
    from turnloom.runtime.spec import SentMessage as SentMessage
    from turnloom.runtime.spec import StoredPlan as StoredPlan
    from turnloom.runtime.spec import VerifiedRun as VerifiedRun
    from turnloom.runtime.spec import WaitingQuestion as WaitingQuestion
    from turnloom.schedules.spec import PlannedStart as PlannedStart
    from turnloom.schedules.spec import Schedule as Schedule
    from turnloom.schedules.spec import ScheduleStatus as ScheduleStatus
    from turnloom.schedules.spec import StartedFiring as StartedFiring
    from turnloom.variables.service import LookupIndex as LookupIndex
    from turnloom.variables.spec import UNCHANGED as UNCHANGED
    from turnloom.variables.spec import Context as Context
    from turnloom.variables.spec import derivation as derivation

# Public names by defining module; each is imported on first access.
_NAMES = {
    "turnloom.agents.spec": (
        "Answer",
        "CallComponent",
        "Component",
        "Engine",
        "Exchange",
        "OutputSchema",
        "Publication",
        "Question",
        "Task",
        "ToolCall",
        "ToolResult",
        "ToolSchema",
        "TurnComponent",
        "Usage",
        "use_ui_tool",
    ),
    "turnloom.app": (
        "Board",
        "Definition",
        "Explanations",
        "History",
        "Loom",
        "Run",
    ),
    "turnloom.app.choosing": ("RunChoice",),
    "turnloom.app.guards": ("AgentBelief", "BudgetUse", "GuardRecords"),
    "turnloom.app.loom": ("LoomSettings",),
    "turnloom.app.serving": ("Serving",),
    "turnloom.app.view": (
        "BoardView",
        "LoomView",
    ),
    "turnloom.app.workflows": ("ServedWorkflow", "ShownWorkflow", "Workflows"),
    "turnloom.assembly.events": ("Withheld",),
    "turnloom.assembly.logic.assembled": ("AssembledContext",),
    "turnloom.assembly.ports": ("VectorSearch",),
    "turnloom.assembly.service.providers": (
        "CompositeProvider",
        "DefaultCorrelationProvider",
        "FilteredContextProvider",
        "RedactingProvider",
        "StateDelegatingProvider",
        "SummaryProvider",
        "TranscriptProvider",
    ),
    "turnloom.assembly.spec": (
        "Chunking",
        "ContextProvider",
        "ContextRequest",
        "ContextSlice",
        "Document",
        "Message",
        "RagCollection",
        "RetrievalResult",
        "TurnContext",
    ),
    "turnloom.assembly.spec.formats": (
        "Budget",
        "ContextFormat",
    ),
    "turnloom.assembly.spec.providers": (
        "AgentRef",
        "RunRef",
        "Transcript",
    ),
    "turnloom.assembly.spec.retrieval": (
        "AddedDocuments",
        "RetrievalResults",
    ),
    "turnloom.assembly.spec.segments": (
        "ArtifactSegment",
        "HistorySegment",
        "HistorySummary",
        "LiteralSegment",
        "RetrievalSegment",
        "ShownArtifact",
        "ShownVariable",
        "StateSegment",
        "VariableSegment",
    ),
    "turnloom.assembly.spec.sources": (
        "HistorySource",
        "LiteralSource",
        "ProviderSource",
        "RetrievalSource",
        "Sharing",
        "Source",
        "StateSource",
        "VariableSource",
        "from_history",
        "from_literal",
        "from_provider",
        "from_retrieval",
        "from_state",
        "from_variables",
    ),
    "turnloom.board.spec": (
        "After",
        "Artifact",
        "BoardHandle",
        "BoardSummary",
        "Envelope",
        "FilterConfig",
        "Labelled",
        "Private",
        "Public",
        "Reader",
        "Shared",
        "TagFilter",
        "Tenant",
        "Visibility",
        "artifact_type",
    ),
    "turnloom.board.spec.artifacts": ("Consumption",),
    "turnloom.board.spec.queries": ("ArtifactItems",),
    "turnloom.errors": (
        "ArtifactExists",
        "BoardError",
        "BudgetExceeded",
        "CollectionUnavailable",
        "Conflict",
        "ContextTooLarge",
        "ContextUnavailable",
        "DefinitionError",
        "Diagnostic",
        "DocumentsUnavailable",
        "EngineError",
        "FlowError",
        "Forbidden",
        "NotAuthenticated",
        "InboxFull",
        "TooManyQuestions",
        "InvalidArtifact",
        "InvalidUpdate",
        "LeaseLost",
        "LogDamaged",
        "LogError",
        "LoopDetected",
        "LoopLimit",
        "MessageRejected",
        "MissingContext",
        "NoCandidates",
        "NotYours",
        "PlanChanged",
        "PredicateFailed",
        "QuestionExpired",
        "ReactionFailed",
        "RunBusy",
        "StoreUnavailable",
        "ToolServerError",
        "TurnloomError",
        "UnknownFlow",
        "UnknownKind",
        "UnknownCollection",
        "UnknownRun",
        "UnknownWorkflow",
        "UnknownType",
        "UsageError",
        "WorkflowGone",
        "WriteRefused",
    ),
    "turnloom.events": (
        "RunEnd",
        "RunEvent",
    ),
    "turnloom.explain.spec.blame": ("BlameExplained",),
    "turnloom.explain.spec.board": (
        "ConsumptionExplained",
        "OfferExplained",
    ),
    "turnloom.explain.spec.diff": ("TurnDiff",),
    "turnloom.explain.spec.explanations": (
        "Explanation",
        "RouteExplanation",
    ),
    "turnloom.explain.spec.backtest": ("Backtest",),
    "turnloom.explain.spec.cost": ("Cost",),
    "turnloom.explain.spec.replay": ("Replay",),
    "turnloom.explain.spec.route": (
        "FlowRouteExplained",
        "RouteExplained",
    ),
    "turnloom.explain.spec.state": ("StateExplained",),
    "turnloom.explain.spec.timeline": ("Timeline",),
    "turnloom.explain.spec.turn": ("TurnExplained",),
    "turnloom.explain.spec.variable": ("VariableExplained",),
    "turnloom.explain.spec.what_if": ("WhatIf",),
    "turnloom.flow.logic.flows": (
        "Flow",
        "FlowSettings",
    ),
    "turnloom.flow.spec": (
        "AgentStep",
        "Cache",
        "Execution",
        "Option",
        "Path",
        "PathResult",
        "Retry",
        "StepContext",
        "StepFailure",
        "Update",
        "append",
        "complete",
        "escalate_to",
        "merge",
    ),
    "turnloom.flow.spec.builder": (
        "AnyPath",
        "Complete",
        "StepSettings",
    ),
    "turnloom.flow.spec.nodes": ("ApprovalRequest",),
    "turnloom.flow.spec.progress": (
        "DecisionRecord",
        "FlowFailed",
        "Outcome",
        "OutcomeStatus",
    ),
    "turnloom.flow.spec.steps": (
        "AnyStep",
        "CodeStep",
        "ContextRunner",
        "StateRunner",
        "StepChange",
        "StepFunction",
    ),
    "turnloom.guards.spec": (
        "Category",
        "Guards",
        "LoopDetection",
        "Price",
        "RunBudget",
        "Selection",
        "Strategies",
        "Weights",
    ),
    "turnloom.log.spec": ("Event",),
    "turnloom.reaction.spec": (
        "Batch",
        "Join",
    ),
    "turnloom.reaction.spec.builder": ("AgentBuilder",),
    "turnloom.runs.chat": ("ChatEvent",),
    "turnloom.access.service": ("Credential",),
    "turnloom.access.spec": (
        "ApiKey",
        "AuditEntry",
        "CreatedKey",
    ),
    "turnloom.app.feedback": (
        "Opinion",
        "RunFeedback",
    ),
    "turnloom.app.keys": (
        "ApiKeys",
        "AuditLog",
        "Authentication",
    ),
    "turnloom.app.schedules": ("Schedules",),
    "turnloom.feedback.spec": ("Feedback",),
    "turnloom.schedules.spec": (
        "PlannedStart",
        "Schedule",
        "ScheduleStatus",
        "StartedFiring",
    ),
    "turnloom.runs.principal": ("Principal",),
    "turnloom.runtime.ports": ("Observer",),
    "turnloom.runtime.spec": (
        "Delivery",
        "Delta",
        "Holder",
        "ObservedRun",
        "PrunedRun",
        "RunSummary",
        "SentMessage",
        "StoredPlan",
        "VerifiedRun",
        "WaitingQuestion",
    ),
    "turnloom.variables.service": ("LookupIndex",),
    "turnloom.variables.spec": (
        "Context",
        "UNCHANGED",
        "derivation",
    ),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # type checkers read the imports above
    __all__ = sorted(_HOMES)

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'turnloom' has no attribute {name!r}")
        return getattr(import_module(home), name)

    def __dir__() -> list[str]:
        return __all__
