"""What tests stand on: contract suites, fakes and crash tools, for your adapters as for ours."""

from turnloom.adapters.scripted import ScriptedEngine
from turnloom.assembly.logic.slices import Gathered, Item
from turnloom.assembly.spec import Chosen
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
    Lingering,
    LoopbackModel,
    ModelRequest,
    Paced,
    Refusal,
    Stalled,
)
from turnloom.testing.recorded import RecordedEngine
from turnloom.testing.retrieval import HashingEmbedder, InMemorySearch, ParagraphSplitter

__all__ = [
    "BoardTurn",
    "Broken",
    "Chosen",
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
    "Gathered",
    "HashingEmbedder",
    "Hollow",
    "Lingering",
    "InMemorySearch",
    "Item",
    "Killed",
    "LoopbackModel",
    "ModelRequest",
    "Paced",
    "ParagraphSplitter",
    "RecordedEngine",
    "Refusal",
    "ScriptedEngine",
    "Stalled",
]
