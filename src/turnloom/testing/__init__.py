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
    Broken,
    Endless,
    Garbled,
    Hollow,
    HttpRefusal,
    Lingering,
    LoopbackModel,
    ModelRequest,
    Paced,
    Stalled,
)
from turnloom.testing.recorded import RecordedEngine
from turnloom.testing.retrieval import HashingEmbedder, InMemorySearch, ParagraphSplitter

__all__ = [
    "BoardTurn",
    "Broken",
    "ChosenProvider",
    "CrashingArtifacts",
    "CrashingBeliefs",
    "CrashingCallee",
    "CrashingEngine",
    "CrashingInbox",
    "CrashingLog",
    "CrashingScheduler",
    "CrashingStore",
    "Endless",
    "FakeClock",
    "FakeDocuments",
    "FakeEntropy",
    "FakeEnvironment",
    "FakeToolServer",
    "Fuse",
    "Garbled",
    "GatheredSlice",
    "HashingEmbedder",
    "Hollow",
    "Lingering",
    "InMemorySearch",
    "SliceItem",
    "Killed",
    "LoopbackModel",
    "ModelRequest",
    "Paced",
    "ParagraphSplitter",
    "RecordedEngine",
    "HttpRefusal",
    "ScriptedEngine",
    "Stalled",
]
