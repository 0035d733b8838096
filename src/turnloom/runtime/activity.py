"""The activity of a board in this process: which of its runs are busy, and what failed in them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from turnloom.agents.events import TurnFinished
from turnloom.errors import (
    BudgetExceeded,
    LoopDetected,
    LoopLimit,
    NoCandidates,
    PredicateFailed,
    ReactionFailed,
    TurnloomError,
    UsageError,
)
from turnloom.guards.logic.following import EXCEEDED, LOOPED
from turnloom.kernel.contained import bare
from turnloom.log.events import RunFailed
from turnloom.log.spec import Event, RunKey
from turnloom.reaction.events import ArtifactOffered
from turnloom.reaction.logic.gates import FAILED
from turnloom.runtime.logic import NO_CANDIDATES

log = logging.getLogger("turnloom.board")

# The errors of runs that a guard stopped.
_STOPS: dict[str, type[TurnloomError]] = {
    EXCEEDED: BudgetExceeded,
    LOOPED: LoopDetected,
    NO_CANDIDATES: NoCandidates,
}


# The kinds of events that report a failure, or may.
NOTED = frozenset({TurnFinished.kind, RunFailed.kind, ArtifactOffered.kind})


class Activity:
    """The busy runs of one board in this process, and their failures since the last call."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._is_watched = False
        self._is_over = False
        self._left: set[str] = set()
        self.failures: list[Exception] = []

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and nothing will without outside help."""
        return not self._wanted

    @property
    def runs(self) -> list[str]:
        """The busy runs."""
        return [*self._wanted]

    def is_wanted(self, run: str) -> bool:
        """Whether a run is busy, or about to be."""
        return run in self._wanted

    def want(self, run: str) -> None:
        """Note that a run is about to be driven."""
        self._wanted[run] = self._wanted.get(run, 0) + 1

    def begin(self, run: str) -> int:
        """Note that a drive begins; pass the result to `end`."""
        return self._wanted.setdefault(run, 1)

    def end(self, run: str, begun: int, *, is_resting: bool) -> None:
        """Note that a drive ended; the run rests, unless it was wanted again meanwhile."""
        if is_resting and self._wanted.get(run) == begun:
            del self._wanted[run]
        self.change()

    def change(self) -> None:
        """Wake waiters: the condition may hold now."""
        if self._is_watched:
            self._is_watched = False
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def stop(self) -> None:
        """Note that nothing is driven any more, and wake waiters."""
        self._is_over = True
        self.change()

    def note(self, event: Event) -> None:
        """Note a stored event."""
        fact = event.data
        if isinstance(fact, TurnFinished) and event.run in self._left:
            self._left.discard(event.run)
        elif isinstance(fact, TurnFinished) and fact.status == "failed":
            self.failures.append(ReactionFailed(event.run, fact.turn, fact.agent, fact.error))
        elif isinstance(fact, RunFailed):
            stopped = _STOPS.get(fact.error, LoopLimit)
            self.failures.append(stopped(f"Run {event.run!r} was stopped. {fact.message}"))
        elif isinstance(fact, ArtifactOffered):
            for each in fact.to:
                if each.verdict in FAILED:
                    about = event.run, each.subscription, fact.artifact, each.detail
                    self.failures.append(failed := PredicateFailed(*about))
                    log.warning("%s", failed)

    def fail(self, error: Exception) -> None:
        """Note that a run cannot be driven."""
        self.failures.append(bare(error))

    def leave(self, run: str) -> None:
        """Leave the failure of a run's first turn to the caller of `board.invoke`."""
        self._left.add(run)

    def take_failures(self) -> list[Exception]:
        """The failures since the last call."""
        failures, self.failures = self.failures, []
        return failures

    async def until(self, condition: Callable[[], Awaitable[Any]], seconds: float | None) -> None:
        """Wait until a condition holds; it is checked again after each change.

        Raises:
            TimeoutError: it does not hold in time.
            UsageError: it never will, as nothing is driven any more.
        """
        async with asyncio.timeout(seconds):
            while True:
                changed, self._is_watched = self._changed, True
                if await condition():
                    return
                if self._is_over:
                    raise UsageError(
                        "This app was closed while runs were busy. Open another one, declare the "
                        "board there, and continue: `await board.resume()`."
                    )
                await changed.wait()


class ActiveDrives:
    """The runs that are driven in this process at this moment."""

    def __init__(self) -> None:
        self._runs: set[RunKey] = set()
        self._ended = asyncio.Event()

    def __contains__(self, run: RunKey) -> bool:
        return run in self._runs

    def __len__(self) -> int:
        return len(self._runs)

    def begin(self, run: RunKey) -> None:
        """Note that a drive begins."""
        self._runs.add(run)

    def end(self, run: RunKey) -> None:
        """Note that a drive ended."""
        self._runs.discard(run)
        self._ended.set()

    async def quiet(self) -> None:
        """Wait until no run is driven."""
        while self._runs:
            self._ended.clear()
            await self._ended.wait()
