"""The ports that a program may implement for `Loom`, and the values they exchange.

An implementation is valid if it has the members of its port and passes the matching suite in
`turnloom.testing.contracts`.
"""

from turnloom.access.ports import Audit, Keys
from turnloom.access.spec import ApiKey, AuditEntry, AuditFilter, StoredKey
from turnloom.agents.spec import Callee, DeclaredServer, Engine, ToolServer
from turnloom.assembly.ports import (
    Embedder,
    PlainSearch,
    PrunableStore,
    Splitter,
    TokenCounter,
    Vectors,
    VectorSearch,
    VectorStore,
)
from turnloom.assembly.spec.retrieval import Chunk, Probe, Space, StoredDocument, Visibilities
from turnloom.board.spec import Artifact, Consumption, Page
from turnloom.board.spec.queries import StoredArtifact
from turnloom.feedback.ports import FeedbackStore
from turnloom.feedback.spec import Feedback, FeedbackFilter
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.jobs.ports import JobStore
from turnloom.jobs.spec import JobResult, StoredJob
from turnloom.log.events import ENDS
from turnloom.log.logic import Codec, is_chosen
from turnloom.log.ports import BranchingLog, Clock, CommitSignals, EventLog
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import (
    Artifacts,
    Backlog,
    Claims,
    Copies,
    Drive,
    Entropy,
    Inbox,
    Migrator,
    Observer,
    Permits,
    PersonalData,
    Plans,
    Pruner,
    Removals,
    Scheduler,
    SharedScheduler,
    Snapshots,
    Status,
    Store,
    TenantList,
    Verifier,
)
from turnloom.runtime.spec import (
    Close,
    Deliver,
    EndedRun,
    Holder,
    Limit,
    LimitWait,
    Message,
    Migration,
    ObservedRun,
    PrunedRun,
    Publish,
    Removal,
    Reply,
    RetryTurn,
    RunCopy,
    Say,
    Stop,
    StoredPlan,
    VerifiedRun,
    Wake,
)
from turnloom.schedules.ports import ScheduleStore
from turnloom.schedules.spec import Firing, PlannedStart
from turnloom.variables.ports import DocumentStore, Environment, Lookup

__all__ = [
    "ApiKey",
    "Audit",
    "AuditEntry",
    "AuditFilter",
    "Feedback",
    "FeedbackFilter",
    "FeedbackStore",
    "Firing",
    "JobResult",
    "JobStore",
    "Keys",
    "PlannedStart",
    "ScheduleStore",
    "StoredJob",
    "StoredKey",
    "ENDS",
    "Artifact",
    "Artifacts",
    "Backlog",
    "Belief",
    "BeliefStore",
    "BranchingLog",
    "Callee",
    "Chunk",
    "Claims",
    "Clock",
    "Close",
    "Codec",
    "CommitSignals",
    "Consumption",
    "Copies",
    "Deliver",
    "DocumentStore",
    "Drive",
    "Embedder",
    "EndedRun",
    "Engine",
    "Entropy",
    "StoredDocument",
    "Environment",
    "Event",
    "EVERY_RUN",
    "EventLog",
    "StoredArtifact",
    "Holder",
    "Inbox",
    "Limit",
    "LimitWait",
    "Lookup",
    "Message",
    "Migration",
    "Migrator",
    "Observation",
    "ObservedRun",
    "Observer",
    "Page",
    "PersonalData",
    "Permits",
    "PlainSearch",
    "PrunableStore",
    "Plans",
    "Pool",
    "Probe",
    "PrunedRun",
    "Pruner",
    "Publish",
    "Removal",
    "Removals",
    "Reply",
    "Say",
    "Results",
    "RetryTurn",
    "RunCopy",
    "RunFilter",
    "RunKey",
    "Scheduler",
    "DeclaredServer",
    "SharedScheduler",
    "Snapshots",
    "Space",
    "Splitter",
    "Status",
    "Stop",
    "Store",
    "StoredPlan",
    "TenantList",
    "TokenCounter",
    "ToolServer",
    "VectorSearch",
    "VectorStore",
    "VerifiedRun",
    "Verifier",
    "Visibilities",
    "Vectors",
    "codec",
    "is_chosen",
    "Wake",
]
