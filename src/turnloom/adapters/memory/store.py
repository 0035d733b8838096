"""One store in memory: log, inbox, claims, snapshots, artifacts and beliefs."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from turnloom.adapters.memory.artifacts import MemoryArtifacts
from turnloom.adapters.memory.index import MemoryIndex
from turnloom.adapters.memory.log import MemoryLog
from turnloom.adapters.memory.mail import MemoryInbox
from turnloom.adapters.memory.plans import MemoryPlans
from turnloom.adapters.memory.results import MemoryResults
from turnloom.errors import RunBusy
from turnloom.log.logic import Codec
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import Holder, VerifiedRun


class MemoryClaims:
    """Which runs are being driven in this process."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._last = 0

    @asynccontextmanager
    async def claim(self, run: RunKey) -> AsyncGenerator[int, None]:
        """Hold the run while the context is open; gives the claim's fence.

        Raises:
            RunBusy: somebody holds it already.
        """
        self._log.check_open()
        fences = self._log.fences
        if run in fences:
            raise RunBusy(
                f"Run {run.id!r} is already driven by this process (pid {os.getpid()}). "
                "Answer or cancel it with `turnloom answer` or `turnloom cancel`, or wait until it "
                "parks."
            )
        self._last += 1
        fence = fences[run] = self._last
        try:
            yield fence
        finally:
            del fences[run]

    async def held(self, run: RunKey) -> Holder | None:
        """This process if it holds the run, for as long as it likes."""
        self._log.check_open()
        return Holder(str(os.getpid())) if run in self._log.fences else None


class MemorySnapshots:
    """The last folded state of each run."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._states: dict[RunKey, tuple[int, bytes]] = {}

    async def save(self, run: RunKey, seq: int, state: bytes) -> None:
        """Keep the state of a run as of `seq`, in place of an earlier one."""
        self._log.check_open()
        if seq >= self._states.get(run, (0, b""))[0]:
            self._states[run] = (seq, state)

    async def load(self, run: RunKey) -> tuple[int, bytes] | None:
        """The last state kept, with its position."""
        self._log.check_open()
        return self._states.get(run)


class MemoryVerifier:
    """Counts the events of runs: there is nothing that could have changed them."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    async def verify(
        self, tenant: str, run: str | None = None
    ) -> AsyncGenerator[VerifiedRun, None]:
        """The runs of a tenant, the one begun first coming first, or one of them."""
        for id in self._log.ids(tenant) if run is None else (run,):
            if ends := await self._log.ends(RunKey(tenant, id)):
                yield VerifiedRun(id, ends[1].seq)


class MemoryStore:
    """Log, inbox, claims, snapshots, artifacts and beliefs in memory, for one event loop.

    `board` says whether the artifacts that the log is told of are kept here, beside it.
    """

    def __init__(self, codec: Codec, *, board: bool = True) -> None:
        index = MemoryIndex()
        self.log = MemoryLog(codec, index if board else None)
        self.inbox = MemoryInbox(self.log)
        self.claims = MemoryClaims(self.log)
        self.snapshots = MemorySnapshots(self.log)
        self.artifacts = MemoryArtifacts(self.log, index, board)
        self.beliefs = self.log.beliefs
        self.results = MemoryResults(self.log.check_open)
        self.plans = MemoryPlans(self.log.check_open)
        self.verifier = MemoryVerifier(self.log)

    async def aclose(self) -> None:
        """Refuse everything from now on; a second call changes nothing."""
        self.log.close()
        self.inbox.close()
