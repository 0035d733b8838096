"""The inbox in this process's memory."""

from collections.abc import AsyncIterator, Sequence
from weakref import WeakSet

import anyio

from turnloom.adapters.memory.log import MemoryLog
from turnloom.log.spec import RunKey
from turnloom.runtime.spec import MOST_MAIL, Message, Stop, refuse_flood


class MemoryInbox:
    """Messages to runs, kept until their event is in the log beside it."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._mail: dict[RunKey, dict[str, Message]] = {}
        self._readers: WeakSet[_Arrivals] = WeakSet()

    async def offer(self, run: RunKey, id: str, message: Message) -> bool:
        """Keep a message for a run; whether it is the first under this id. Another is dropped."""
        self._log.check_open()
        waiting = self._mail.setdefault(run, {})
        is_first = id not in waiting and not self._log.holds(run, id)
        if is_first:
            if not isinstance(message, Stop):  # a run can always be ended
                self._check_room(run, waiting)
            waiting[id] = message
            for reader in self._readers:
                reader.tell(run)
        return is_first

    def _check_room(self, run: RunKey, waiting: dict[str, Message]) -> None:
        """Forget what was taken in when there is much, and refuse more than there may be."""
        if len(waiting) >= MOST_MAIL:
            for id in [each for each in waiting if self._log.holds(run, each)]:
                del waiting[id]
        refuse_flood(run.id, len(waiting))

    async def pending(self, run: RunKey) -> Sequence[tuple[str, Message]]:
        """The messages of a run whose id is not in its log, oldest first."""
        self._log.check_open()
        waiting = self._mail.get(run)
        if not waiting:
            return ()
        left = {id: it for id, it in waiting.items() if not self._log.holds(run, id)}
        self._mail[run] = left
        return [*left.items()]

    def arrivals(self) -> AsyncIterator[RunKey]:
        """The runs of all tenants that get mail from now on; a run with several messages may come
        once."""
        self._log.check_open()
        reader = _Arrivals(self._log)
        self._readers.add(reader)
        return reader

    def close(self) -> None:
        """Tell whoever waits that nothing comes any more."""
        for reader in tuple(self._readers):
            reader.ring()


class _Arrivals:
    """One reader's view of arriving mail: the runs it has not been told of yet."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._runs: dict[RunKey, None] = {}
        self._bell: anyio.Event | None = None

    def __aiter__(self) -> "_Arrivals":
        return self

    async def __anext__(self) -> RunKey:
        while not self._runs:
            self._log.check_open()
            self._bell = anyio.Event()
            await self._bell.wait()
        run = next(iter(self._runs))
        del self._runs[run]
        return run

    def tell(self, run: RunKey) -> None:
        self._runs[run] = None
        self.ring()

    def ring(self) -> None:
        if self._bell:
            self._bell.set()
