"""Runs that go on elsewhere, and of which somebody tells what happens."""

from turnloom.log.ports import Clock
from turnloom.log.spec import Event, Fact
from turnloom.runtime.service.journal import Appends
from turnloom.variables.logic.secrets import Secrets

# The form of such a run: nobody here decides whose turn it is.
TOLD = "chat"


class Recording:
    """The log of one such run: what is told is stored before anything else can be."""

    def __init__(self, log: Appends, clock: Clock, run: str, secrets: Secrets) -> None:
        self.run = run
        self._log = log
        self._clock = clock
        self._secrets = secrets
        self._last = 0

    async def record(self, id: str, fact: Fact, actor: str, cause: int | None) -> int:
        """Store a fact without the run's secrets, and give its place; it follows from `cause`, or
        from what came before."""
        fact = self._secrets.mask(fact) if self._secrets else fact
        last, now = self._last, self._clock.now()
        event = Event(
            id, self.run, last + 1, now, fact.kind, actor, fact, cause or last or None, fact.version
        )
        await self._log.append(self.run, [event], last)
        self._last = event.seq
        return event.seq
