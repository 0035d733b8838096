"""Messages of users to their conversations, at any time."""

from turnloom.agents.logic.answers import MOST_CHARACTERS
from turnloom.errors import Conflict, MessageRejected, NotYours, UsageError
from turnloom.log.events import ENDS, RunStarted
from turnloom.log.ports import EventLog
from turnloom.log.service import ends_of
from turnloom.log.spec import Event, RunKey
from turnloom.runtime.forking import Forks
from turnloom.runtime.mail import MailDelivery
from turnloom.runtime.ports import Definitions, Entropy
from turnloom.runtime.spec import Say, SentMessage, continuation_of

# Begins the ids of the events of messages, so that they are none of the run's own.
MESSAGE = "message/"


class Messages:
    """Sends messages to the conversations of a store."""

    def __init__(
        self,
        log: EventLog,
        entropy: Entropy,
        definitions: Definitions,
        mailing: MailDelivery,
        forks: Forks,
    ) -> None:
        self._log = log
        self._definitions = definitions
        self._entropy = entropy
        self._mailing = mailing
        self._forks = forks

    def new_id(self) -> str:
        """The id of a message to which its sender gives none."""
        return self._entropy.token()

    async def send(self, run: RunKey, id: str, say: Say) -> SentMessage:
        """Send a message to a conversation; to one that ended, it begins the run that continues it.
        The same id again changes nothing.

        Raises:
            MessageRejected: a turn is open, and the message is to be rejected then.
            NotYours: the run belongs to another person.
            RunBusy: the process that drives the run does not take the message in.
            UsageError: it is no conversation, or the text is too long.
        """
        if len(say.text) > MOST_CHARACTERS:
            raise UsageError(f"A message may have at most {MOST_CHARACTERS:,} characters.")
        event_id = f"{MESSAGE}{id}"
        while True:
            first, last = await ends_of(self._log, run)
            self._check(run, first.data, say)
            if last.kind not in ENDS:
                event = await self._mailing.send(run, event_id, say)
                if event is not None:
                    return _sent(id, run, event, repeated=event.seq <= last.seq)
                continue  # it ended before the message was taken in
            if event := await self._recorded(run, event_id):
                return _sent(id, run, event, repeated=True)
            following = RunKey(run.tenant, continuation_of(run.id))
            if await self._log.ends(following) is None:
                try:
                    await self._forks.continue_with(run, event_id, say)
                    return SentMessage(id, following.id, "taken")
                except Conflict:
                    pass  # another message continues it
            run = following

    def _check(self, run: RunKey, started: RunStarted, say: Say) -> None:
        """Refuse a message that its run does not take.

        Raises:
            NotYours: the run belongs to another person.
            UsageError: it is no conversation.
        """
        if started.user != say.by:
            raise NotYours("This run belongs to another user.")
        if not self._definitions.hears(started):
            raise UsageError(
                f"Run {run.id!r} is a {started.form}, which takes no messages. Answer its "
                "questions, or publish on its board."
            )

    async def _recorded(self, run: RunKey, id: str) -> Event | None:
        return next((each for each in await self._log.read(run) if each.id == id), None)


def _sent(id: str, run: RunKey, event: Event, *, repeated: bool) -> SentMessage:
    """What became of a message.

    Raises:
        MessageRejected: it was rejected.
    """
    if event.data.verdict == "rejected":
        raise MessageRejected(run.id)
    return SentMessage(id, run.id, event.data.verdict, repeated)
