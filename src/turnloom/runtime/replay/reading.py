"""A run that reads its log instead of writing it."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, cast

from turnloom.agents.events import MessageSent, QuestionAnswered
from turnloom.assembly.spec import TurnContext
from turnloom.hooks.events import LifecycleToolCall
from turnloom.kernel.contained import Quit
from turnloom.log.ports import Clock
from turnloom.log.spec import Event
from turnloom.runtime.drive.intake import expire, put_on_record
from turnloom.runtime.drive.live import LiveRun
from turnloom.runtime.journal import BatchTime, Journal
from turnloom.runtime.replay.comparing import is_same_event
from turnloom.runtime.replay.record import BOUNDARIES, CLOCK, RecordedWorld, Stopped, is_mail
from turnloom.runtime.replay.secrets import fact_of
from turnloom.runtime.spec import IfBusy, Reply, Say


class JournalReader(Journal):
    """A journal that stores nothing: what is recorded is compared with the next event of the log,
    which takes effect in its place."""

    record_of: RecordedWorld

    def _accept(self, event: Event, id: str) -> Event:
        """The next event of the log, if it is this one.

        Raises:
            Stopped: it is not, or the log or the process ended here.
        """
        record = self.record_of
        recorded = record.next
        if record.is_over:
            raise Stopped
        if recorded is None or isinstance(recorded.data, BOUNDARIES) and not _opens(event):
            record.end()
            raise Stopped
        if record.stored[record.position].id != id or not is_same_event(recorded, event):
            record.diverge(event)
            raise Stopped
        record.pass_by()
        return recorded


def _opens(event: Event) -> bool:
    return isinstance(event.data, BOUNDARIES)


class RecordedTime(BatchTime):
    """The times of the log."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)

    def now(self) -> datetime:
        """The time of the next event."""
        return self._clock.now()


class RecordedClock:
    """A clock that stands at the next event of a log."""

    def __init__(self, record: RecordedWorld) -> None:
        self._record = record

    def now(self) -> datetime:
        """The time of the next event, or of the last one."""
        record = self._record
        return (record.next or record.events[-1]).at


class RecordedObjects(dict[tuple[str, str], Any]):
    """Objects of a process: they are lost where the log says that hooks made them again."""

    def __init__(self, record: RecordedWorld) -> None:
        super().__init__()
        self._record = record

    def __contains__(self, key: object) -> bool:
        event = self._record.next
        return not (event and isinstance(event.data, LifecycleToolCall) and event.data.restored)


class RecordedComponent:
    """Stands for the components around a turn: it raises what they raised."""

    def __init__(self, record: RecordedWorld) -> None:
        self._record = record

    async def around_turn(self, ctx: TurnContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Run the turn, unless they did not, and raise the error with which it ended."""
        turn = self._record.named(f"t{ctx.turn}")
        if not self._record.error_of(turn, only=True):
            await call_next()
        if error := self._record.error_of(turn):
            name, _, message = error.partition(": ")
            raise Quit(name, message)


class RecordedRun(LiveRun):
    """A run that gets its messages and its time from its log."""

    record_of: RecordedWorld

    async def take_in(self) -> None:
        """RecordedWorld the messages and the time that the log has here."""
        while self._take_one():
            await self.journal.settle()

    def _take_one(self) -> bool:
        event, position = self.record_of.next, self.record_of.position
        if event is None:
            return False
        if event.actor == CLOCK:
            expire(self.journal)
            return self.record_of.position > position
        if not is_mail(event):
            return False
        fact, id = fact_of(self.journal, event), self.record_of.stored[position].id
        if isinstance(fact, QuestionAnswered):
            put_on_record(self.journal, id, Reply(fact.question, fact.value, fact.by, fact.role))
        elif isinstance(fact, MessageSent):
            if_busy = cast("IfBusy", fact.if_busy)
            put_on_record(self.journal, id, Say(fact.text, fact.by, if_busy))
        else:
            self.journal.record(id, fact, event.actor, is_given=True)
        return True

    async def hear(self) -> None:
        """Take in the messages that the log has here."""
        while (event := self.record_of.next) is not None and isinstance(event.data, MessageSent):
            self._take_one()

    def expire(self) -> None:
        """RecordedWorld what has expired by the time of the next event."""
        event = self.record_of.next
        if event is not None and event.actor == CLOCK:
            expire(self.journal)

    def seconds_until(self, instant: datetime | None) -> float | None:
        """Wait for the log, not for the clock."""
        return None

    async def freeze(self) -> None:
        """Save nothing."""
