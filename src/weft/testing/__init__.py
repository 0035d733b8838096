"""What tests stand on: contract suites, fakes and crash tools, for your adapters as for ours."""

from weft.adapters.scripted import ScriptedEngine
from weft.testing.boards import BoardTurn
from weft.testing.crashes import (
    CrashingArtifacts,
    CrashingBeliefs,
    CrashingCallee,
    CrashingEngine,
    CrashingInbox,
    CrashingLog,
    Fuse,
    Killed,
)
from weft.testing.fakes import (
    FakeClock,
    FakeDocuments,
    FakeEntropy,
    FakeEnvironment,
    FakeToolServer,
)
from weft.testing.loopback import (
    Broken,
    Garbled,
    LoopbackModel,
    ModelRequest,
    Paced,
    Refusal,
    Stalled,
)
from weft.testing.recorded import RecordedEngine
from weft.testing.retrieval import HashingEmbedder, InMemorySearch, ParagraphSplitter

__all__ = [
    "BoardTurn",
    "Broken",
    "CrashingArtifacts",
    "CrashingBeliefs",
    "CrashingCallee",
    "CrashingEngine",
    "CrashingInbox",
    "CrashingLog",
    "FakeClock",
    "FakeDocuments",
    "FakeEntropy",
    "FakeEnvironment",
    "FakeToolServer",
    "Fuse",
    "Garbled",
    "HashingEmbedder",
    "InMemorySearch",
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
