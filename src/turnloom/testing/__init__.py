"""Contract suites, fakes and crash tools for testing programs and adapters."""

from turnloom.adapters.scripted import ScriptedEngine
from turnloom.assembly.logic.slices import GatheredSlice, SliceItem
from turnloom.assembly.spec import ChosenProvider
from turnloom.testing.boards import BoardTurn
from turnloom.testing.crashes import (
    CrashingArtifacts,
    CrashingBeliefs,
    CrashingCallee,
    CrashingEngine,
    CrashingInbox,
    CrashingLog,
    CrashingScheduler,
    CrashingStore,
    Fuse,
    Killed,
)
from turnloom.testing.fakes import (
    FakeClock,
    FakeDocuments,
    FakeEntropy,
    FakeEnvironment,
    FakeToolServer,
)
from turnloom.testing.loopback import (
    BrokenReply,
    EmptyReply,
    HttpRefusal,
    InvalidReply,
    LingeringReply,
    LoopbackModel,
    ModelRequest,
    SlowReply,
    StalledReply,
    UnfinishedReply,
)
from turnloom.testing.recorded import RecordedEngine
from turnloom.testing.retrieval import HashingEmbedder, InMemorySearch, ParagraphSplitter

__all__ = [
    "BoardTurn",
    "BrokenReply",
    "ChosenProvider",
    "CrashingArtifacts",
    "CrashingBeliefs",
    "CrashingCallee",
    "CrashingEngine",
    "CrashingInbox",
    "CrashingLog",
    "CrashingScheduler",
    "CrashingStore",
    "EmptyReply",
    "FakeClock",
    "FakeDocuments",
    "FakeEntropy",
    "FakeEnvironment",
    "FakeToolServer",
    "Fuse",
    "GatheredSlice",
    "HashingEmbedder",
    "HttpRefusal",
    "InMemorySearch",
    "InvalidReply",
    "Killed",
    "LingeringReply",
    "LoopbackModel",
    "ModelRequest",
    "ParagraphSplitter",
    "RecordedEngine",
    "ScriptedEngine",
    "SliceItem",
    "SlowReply",
    "StalledReply",
    "UnfinishedReply",
]
