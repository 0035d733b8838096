"""Contract suites: every adapter of a port must pass the suite of that port.

A suite is a class of async tests. Implement `fresh`, which returns the object under test:

    from contextlib import asynccontextmanager

    from turnloom.testing.contracts import CODEC, EventLogContract

    class TestMyLog(EventLogContract):
        @asynccontextmanager
        async def fresh(self):
            log = await MyLog.open(CODEC)
            try:
                yield log
            finally:
                await log.aclose()

Every test calls `fresh` once and expects an empty store. The suites need an async test runner that
collects the methods of a class, such as pytest with anyio's plugin (`anyio_mode = "auto"`). For
detailed assertion messages, call `pytest.register_assert_rewrite("turnloom.testing.contracts")` in
a conftest. Build a log under test with `CODEC`, which has the events of the suites.
"""

from turnloom.testing.contracts.artifacts import ArtifactStoreContract, FollowingContract
from turnloom.testing.contracts.backlog import BacklogContract
from turnloom.testing.contracts.beside import (
    AuditContract,
    FeedbackContract,
    KeysContract,
    SchedulesContract,
)
from turnloom.testing.contracts.branches import BranchingContract
from turnloom.testing.contracts.claims import ClaimsContract, FenceContract
from turnloom.testing.contracts.documents import DocumentStoreContract
from turnloom.testing.contracts.engines import EngineContract
from turnloom.testing.contracts.events import EventLogContract
from turnloom.testing.contracts.facts import CODEC, Measured, Noted, event, events, refused, until
from turnloom.testing.contracts.inbox import InboxContract
from turnloom.testing.contracts.jobs import JobsContract
from turnloom.testing.contracts.keeping import (
    CopiesContract,
    MigratorContract,
    RemovalsContract,
    TenantListContract,
)
from turnloom.testing.contracts.permits import PermitsContract
from turnloom.testing.contracts.pruner import PrunerContract
from turnloom.testing.contracts.retrieval import (
    EmbedderContract,
    PruningContract,
    SplitterContract,
    TokenCounterContract,
    VectorSearchContract,
    WordsContract,
)
from turnloom.testing.contracts.scheduler import SchedulerContract, SharedSchedulerContract
from turnloom.testing.contracts.small import (
    BeliefStoreContract,
    PlansContract,
    ResultsContract,
    SnapshotsContract,
    VerifierContract,
)
from turnloom.testing.contracts.stores import SharedStoreContract
from turnloom.testing.contracts.tools import ToolServerContract

__all__ = [
    "BacklogContract",
    "ArtifactStoreContract",
    "AuditContract",
    "BeliefStoreContract",
    "BranchingContract",
    "CODEC",
    "ClaimsContract",
    "CopiesContract",
    "DocumentStoreContract",
    "EmbedderContract",
    "EngineContract",
    "EventLogContract",
    "FeedbackContract",
    "FenceContract",
    "FollowingContract",
    "InboxContract",
    "JobsContract",
    "KeysContract",
    "Measured",
    "MigratorContract",
    "Noted",
    "PermitsContract",
    "PlansContract",
    "PruningContract",
    "PrunerContract",
    "RemovalsContract",
    "ResultsContract",
    "SchedulerContract",
    "SchedulesContract",
    "SharedSchedulerContract",
    "SharedStoreContract",
    "SnapshotsContract",
    "SplitterContract",
    "TenantListContract",
    "TokenCounterContract",
    "ToolServerContract",
    "VectorSearchContract",
    "VerifierContract",
    "WordsContract",
    "event",
    "events",
    "refused",
    "until",
]
