"""The ports that a program may implement for `Loom`, and the values they exchange.

An implementation is valid if it has the members of its port and passes the matching suite in
`turnloom.testing.contracts`.
"""

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
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.log.events import ENDS
from turnloom.log.logic import Codec, is_chosen
from turnloom.log.ports import BranchingLog, Clock, EventLog
from turnloom.log.spec import EVERY_RUN, Event, RunFilter, RunKey
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import (
    Artifacts,
    Backlog,
    Claims,
    Drive,
    Entropy,
    Inbox,
    Observer,
    Permits,
    Plans,
    Pruner,
    Scheduler,
    SharedScheduler,
    Snapshots,
    Status,
    Store,
    Verifier,
)
from turnloom.runtime.spec import (
    Close,
    Deliver,
    EndedRun,
    Holder,
    Limit,
    Message,
    ObservedRun,
    PrunedRun,
    Publish,
    Reply,
    RetryTurn,
    Stop,
    StoredPlan,
    VerifiedRun,
    Wake,
)
from turnloom.variables.ports import DocumentStore, Environment, Lookup

__all__ = [
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
    "Consumption",
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
    "Lookup",
    "Message",
    "Observation",
    "ObservedRun",
    "Observer",
    "Page",
    "Permits",
    "PlainSearch",
    "PrunableStore",
    "Plans",
    "Pool",
    "Probe",
    "PrunedRun",
    "Pruner",
    "Publish",
    "Reply",
    "Results",
    "RetryTurn",
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
