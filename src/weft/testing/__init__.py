"""What tests stand on: contract suites, fakes and crash tools, for your adapters as for ours."""

from weft.adapters.scripted import ScriptedEngine
from weft.testing.crashes import (
    CrashingArtifacts,
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

__all__ = [
    "CrashingArtifacts",
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
    "Killed",
    "ScriptedEngine",
]
