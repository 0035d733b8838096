"""A list of runs as a stream."""

from functools import partial

import msgspec

from turnloom.app.choosing import RunChoice
from turnloom.app.view import LoomView
from turnloom.runtime.spec import RunSummary
from turnloom.server.streams import Outbox, frame, look_again

# Seconds between two looks at the list, at least.
PAUSE = 0.25


class RunListFeed:
    """The latest runs of a list, and each that is new in it or has moved. Without a signal of the
    store, it looks again after `longest` seconds."""

    def __init__(
        self, view: LoomView, which: RunChoice, limit: int, longest: float, *, unfinished: bool
    ) -> None:
        self._view = view
        self._which = which
        self._limit = limit
        self._longest = longest
        self._unfinished = unfinished
        self._seen: dict[str, RunSummary] = {}

    async def pump(self, outbox: Outbox) -> None:
        """Put runs into the outbox whenever some may have moved, until the stream ends."""
        look = partial(self._look, outbox)
        await look_again(self._view.commits(), look, self._patience, PAUSE)

    async def _look(self, outbox: Outbox) -> None:
        """Send what differs from the last look; a run that left the list has no line."""
        found = await self._view.runs(self._limit, unfinished=self._unfinished, **self._which)
        for each in reversed(found):
            if self._seen.get(each.run) != each:
                await outbox.put(frame(msgspec.json.encode(each)))
        now = {each.run: each for each in found}
        for run in self._seen.keys() - now.keys():
            await outbox.put(frame(msgspec.json.encode({"run": run}), "gone"))
        self._seen = now

    async def _patience(self) -> float:
        return self._longest

    def sent(self) -> None:
        """Nothing to do: runs are never dropped."""
