"""Work of forms in which every piece of work is a turn of an agent."""

from abc import abstractmethod

from turnloom.runs.actions import Work
from turnloom.runs.brief import UNSETTLED, Brief, TurnOutcome
from turnloom.runtime.drive.live import LiveRun


class AgentTurns:
    """Takes the turns that a run has open; the form says what each is about."""

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._journal = live.journal

    @abstractmethod
    def brief(self, work: Work) -> Brief:
        """The brief of the turn."""

    async def run(self, work: Work) -> None:
        """Take a turn."""
        with self._live.sinks(work.turn, work.agent) as sinks:
            await self._live.turns.take(self.brief(work), sinks)

    async def cut_off(self, work: Work) -> None:
        """Record that a turn was cancelled."""
        await self._live.cut_off_turn(work)

    async def fail(self, work: Work, error: str) -> None:
        """Record that a turn ended itself."""
        outcome = TurnOutcome(f"CancelledError: {error}")
        await self._live.turns.end(self.brief(work), outcome, UNSETTLED)
