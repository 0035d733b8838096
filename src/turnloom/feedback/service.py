"""Feedback on runs that exist."""

from collections.abc import Collection, Sequence
from datetime import datetime

from turnloom.agents.events import TurnStarted
from turnloom.errors import UsageError
from turnloom.feedback.ports import FeedbackStore
from turnloom.feedback.spec import Feedback, FeedbackFilter
from turnloom.log.ports import Clock, EventLog
from turnloom.log.service import ends_of
from turnloom.log.spec import RunKey


class StoredFeedback:
    """The feedback in a store, beside its log."""

    def __init__(self, store: FeedbackStore, log: EventLog, clock: Clock) -> None:
        self._store = store
        self._log = log
        self._clock = clock

    def now(self) -> datetime:
        """The instant of feedback that is given now."""
        return self._clock.now()

    async def give(self, run: RunKey, feedback: Feedback) -> None:
        """Keep feedback on a run, or on a turn that it has.

        Raises:
            UnknownRun: there is no such run.
            UsageError: the run has no such turn, or as much feedback as it may have.
        """
        await ends_of(self._log, run)
        if feedback.turn is not None:
            events = await self._log.read(run)
            turns = [each.data.turn for each in events if isinstance(each.data, TurnStarted)]
            if feedback.turn not in turns:
                last = max(turns, default=0)
                raise UsageError(
                    f"Run {run.id!r} has no turn {feedback.turn}. Its turns go from 1 to {last}."
                )
        await self._store.give(run, feedback)

    async def of_run(self, run: RunKey) -> Sequence[Feedback]:
        """The feedback on a run, the oldest first.

        Raises:
            UnknownRun: there is no such run.
        """
        await ends_of(self._log, run)
        return await self._store.of_run(run)

    async def chosen(
        self, tenant: str, runs: Collection[str], which: FeedbackFilter
    ) -> frozenset[str]:
        """Those of some runs that have feedback which a filter selects."""
        return await self._store.chosen(tenant, runs, which)
