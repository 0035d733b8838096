"""What is on record of runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from turnloom.errors import UnknownRun

if TYPE_CHECKING:
    from turnloom.log.spec import Event
    from turnloom.runtime.spec import Loaded
    from turnloom.wiring import Parts


class History:
    """What is on record of the runs of an app; reading it drives nothing."""

    def __init__(self, parts: "Callable[[], Parts]") -> None:
        self._parts = parts

    async def events(self, run: str) -> "Sequence[Event]":
        """The events of a run so far.

        Raises:
            UnknownRun: there is no such run.
        """
        events: Sequence[Event] = await self._parts().store.log.read(run)
        if not events:
            raise UnknownRun(run)
        return events

    async def definition(self, run: str) -> "Loaded":
        """The workflow that a run is pinned to, with its engines and its scripted user.

        Raises:
            UnknownRun: there is no such run.
            PlanChanged: this program declares another plan of its board or flow.
            WorkflowGone: this program cannot restore it.
        """
        first = (await self.events(run))[0]
        return await self._parts().definitions.restore(first.data)
