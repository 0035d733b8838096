"""What a program may write itself and give to `Loom`: the ports, and the values they speak of.

An object is as good as ours if it has the members of its port and passes the suite for it in
`turnloom.testing.contracts`.
"""

from turnloom.agents.spec import Engine, ToolServer
from turnloom.assembly.ports import (
    Embedder,
    Splitter,
    TokenCounter,
    Vectors,
    VectorSearch,
    VectorStore,
)
from turnloom.board.spec import Artifact, Consumption
from turnloom.flow.ports import Results
from turnloom.guards.ports import BeliefStore
from turnloom.guards.spec import Belief, Observation, Pool
from turnloom.log.logic import Codec
from turnloom.log.ports import Clock, EventLog
from turnloom.log.spec import Event
from turnloom.runtime.logic import codec
from turnloom.runtime.ports import (
    Artifacts,
    Claims,
    Drive,
    Entropy,
    Inbox,
    Observer,
    Plans,
    Scheduler,
    Snapshots,
    Status,
    Store,
)
from turnloom.runtime.spec import Message, ObservedRun, StoredPlan
from turnloom.variables.ports import DocumentStore, Environment, Lookup

__all__ = [
    "Artifact",
    "Artifacts",
    "Belief",
    "BeliefStore",
    "Claims",
    "Clock",
    "Codec",
    "Consumption",
    "DocumentStore",
    "Drive",
    "Embedder",
    "Engine",
    "Entropy",
    "Environment",
    "Event",
    "EventLog",
    "Inbox",
    "Lookup",
    "Message",
    "Observation",
    "ObservedRun",
    "Observer",
    "Plans",
    "Pool",
    "Results",
    "Scheduler",
    "Snapshots",
    "Splitter",
    "Status",
    "Store",
    "StoredPlan",
    "TokenCounter",
    "ToolServer",
    "VectorSearch",
    "VectorStore",
    "Vectors",
    "codec",
]
