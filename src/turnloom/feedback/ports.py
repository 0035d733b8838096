"""Port of feedback."""

from collections.abc import Collection, Sequence
from typing import Protocol

from turnloom.feedback.spec import Feedback, FeedbackFilter
from turnloom.log.spec import RunKey


class FeedbackStore(Protocol):
    """Feedback on runs, removed with its run. A store may have it, as `feedback`."""

    async def give(self, run: RunKey, feedback: Feedback) -> None:
        """Keep feedback on a run that is in the log of this store, instead of the earlier one of
        the same person, name and turn.

        Raises:
            UnknownRun: there is no such run; nothing was kept.
            UsageError: the run has as much feedback as it may have.
            StoreUnavailable: nothing was kept.
        """
        ...

    async def of_run(self, run: RunKey) -> Sequence[Feedback]:
        """The feedback on a run, the oldest first."""
        ...

    async def chosen(
        self, tenant: str, runs: Collection[str], which: FeedbackFilter
    ) -> frozenset[str]:
        """Those of some runs of a tenant that have feedback which a filter selects."""
        ...

    async def erase(self, tenant: str, user: str, *, dry_run: bool = False) -> int:
        """Remove all feedback of a person of a tenant; returns how much there was. A dry run only
        counts it.

        Raises:
            StoreUnavailable: nothing was removed.
        """
        ...
