"""What goes on in this process: which runs of a board are busy, and what failed in them."""

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
from turnloom.log.spec import Event
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


# The kinds of events that say that something failed, or may have.
NOTED = frozenset({TurnFinished.kind, RunFailed.kind, ArtifactOffered.kind})


class Activity:
    """The runs of one board that this process is about, and their failures since last asked."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._is_watched = False
        self._is_over = False
        self._left: set[str] = set()
        self.failures: list[Exception] = []

    @property
    def is_idle(self) -> bool:
        """Whether nothing is going on, and nothing will by itself."""
        return not self._wanted

    @property
    def runs(self) -> list[str]:
        """The runs that are going on."""
        return [*self._wanted]

    def is_wanted(self, run: str) -> bool:
        """Whether a run is going on, or about to."""
        return run in self._wanted

    def want(self, run: str) -> None:
        """Take notice that a run is to be driven."""
        self._wanted[run] = self._wanted.get(run, 0) + 1

    def begin(self, run: str) -> int:
        """Take notice that a drive begins; what it gives is for `end`."""
        return self._wanted.setdefault(run, 1)

    def end(self, run: str, begun: int, *, is_resting: bool) -> None:
        """Take notice that a drive ended; the run rests, unless it was wanted meanwhile."""
        if is_resting and self._wanted.get(run) == begun:
            del self._wanted[run]
        self.change()

    def change(self) -> None:
        """Let whoever waits look again."""
        if self._is_watched:
            self._is_watched = False
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def stop(self) -> None:
        """Take notice that nothing is driven any more, and let whoever waits know."""
        self._is_over = True
        self.change()

    def note(self, event: Event) -> None:
        """Take notice of what is on record."""
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
                    told = event.run, each.subscription, fact.artifact, each.detail
                    self.failures.append(failed := PredicateFailed(*told))
                    log.warning("%s", failed)

    def fail(self, error: Exception) -> None:
        """Take notice that a run cannot be driven."""
        self.failures.append(bare(error))

    def leave(self, run: str) -> None:
        """Leave it to whoever gave an agent something directly to hear how that first turn ends."""
        self._left.add(run)

    def take_failures(self) -> list[Exception]:
        """What failed since last asked."""
        failures, self.failures = self.failures, []
        return failures

    async def until(self, condition: Callable[[], Awaitable[Any]], seconds: float | None) -> None:
        """Wait until a condition holds; it is asked again whenever something changes.

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
                        "This app was closed while something was going on. Open another one, "
                        "declare the board there, and go on: `await board.resume()`."
                    )
                await changed.wait()
