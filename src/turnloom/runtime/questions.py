"""Questions of runs to people, and their answers."""

from collections.abc import Sequence
from itertools import count

from turnloom.agents.events import AnswerRefused, QuestionAnswered, QuestionAsked
from turnloom.agents.logic.answers import Answerer, answer_id, may_answer, misanswer, refusal
from turnloom.agents.logic.folding import open_questions, question_of
from turnloom.agents.spec import Question
from turnloom.errors import NotYours, QuestionExpired, TurnloomError, UsageError
from turnloom.kernel.values import Json
from turnloom.log.events import ENDS, RunPaused, RunRetried
from turnloom.log.logic import standing
from turnloom.log.ports import Clock
from turnloom.log.service import PAGE, ends_of
from turnloom.log.spec import UNREADABLE, Event, RunKey
from turnloom.runtime.drive.driver import Stores
from turnloom.runtime.mail import MailDelivery
from turnloom.runtime.spec import Delivery, Reply, WaitingQuestion
from turnloom.variables.logic.types import same


class Questions:
    """The questions of the runs of a store."""

    def __init__(self, stores: Stores, clock: Clock, mailing: MailDelivery) -> None:
        self._log = stores.log
        self._inbox = stores.inbox
        self._clock = clock
        self._mailing = mailing

    async def open(
        self, run: RunKey, by: Answerer | None = None, *, all_of_own: bool = True
    ) -> list[Question]:
        """The open questions of a run, the oldest first. The run's user sees all of them if
        `all_of_own`; others see those addressed to them.

        Raises:
            NotYours: the run belongs to another person, and asks this one nothing.
        """
        first, last = await ends_of(self._log, run)
        asked = await self._asked(run, last)
        if by is not None and not (all_of_own and by.user == first.data.user):
            asked = [each for each in asked if may_answer(each, by, first.data.user)]
            if not asked and by.user != first.data.user:
                raise NotYours("This run belongs to another user.")
        kept = await self._kept(run, asked, first.data.user) if asked else ()
        return [each for each in asked if not (each.id in kept or self._is_overdue(each))]

    async def waiting(
        self, tenant: str, by: Answerer, *, limit: int, before: str | None = None
    ) -> list[WaitingQuestion]:
        """The open questions of a tenant's runs that a person may answer, those of the latest run
        first, up to the run with which there are `limit`. It looks at open runs only.

        Raises:
            UnknownRun: there is no run `before`.
        """
        found: list[WaitingQuestion] = []
        while len(found) < limit:
            page = await self._log.runs(tenant, PAGE, before=before, unfinished=True)
            for first, last in page:
                if UNREADABLE in (first.kind, last.kind):
                    continue  # it is listed as broken
                run, owner = RunKey(tenant, last.run), first.data.user
                asked = [
                    each for each in await self._asked(run, last) if may_answer(each, by, owner)
                ]
                kept = await self._kept(run, asked, owner) if asked else ()
                found += [
                    WaitingQuestion(run.id, first.data.workflow, owner, each)
                    for each in asked
                    if not (each.id in kept or self._is_overdue(each))
                ]
                if len(found) >= limit:
                    break
            if len(page) < PAGE:
                break
            before = page[-1][1].run
        return found

    async def _kept(self, run: RunKey, asked: Sequence[Question], user: str) -> set[str]:
        """The questions that were answered, although no process has taken the answer in yet."""
        replies = [each for _, each in await self._inbox.pending(run) if isinstance(each, Reply)]
        return {
            question.id
            for question in asked
            for reply in replies
            if reply.question == question.id
            and refusal(question, reply.value, _answerer(reply), user) is None
        }

    async def answer(
        self, run: RunKey, question: str | None, value: Json, by: Answerer | None = None
    ) -> Delivery:
        """Answer a question of a run, by default as its user; returns the delivery status of the
        answer.

        Raises:
            NotYours: another person is asked.
            QuestionExpired: it comes too late.
            UsageError: the run has no such question, or several, or the answer is not one.
        """
        first, last = await ends_of(self._log, run)
        by = Answerer(first.data.user) if by is None else by
        asked = await self._meant(
            run, await self._asked(run, last), question, by, user=first.data.user
        )
        if asked is None:
            return await self._refuse_or_repeat(run, question, value, by)
        if not may_answer(asked, by, first.data.user):
            whom = repr(asked.to) if by.user == first.data.user else "another person"
            raise NotYours(
                f"Question {asked.id!r} is asked of {whom}, and only they can answer it, not "
                f"{by.user!r}. Say who answers: `user_id=…`, or `--user …` on the command line."
            )
        problem = misanswer(asked, value)
        if problem and not self._is_overdue(asked):
            raise UsageError(f"This does not answer {asked.id!r}: {problem}.")
        id = await self._answer_id(run, asked, first.data.user)
        is_first = await self._inbox.offer(run, id, Reply(asked.id, value, by.user, by.role))
        delivery = await self._deliver(run, id, asked)
        if problem:  # it was delivered all the same, so the run notices that the time is over
            raise QuestionExpired(_EXPIRED.format(asked.id))
        if delivery is Delivery.KEPT:
            return delivery if is_first else Delivery.REPEATED
        events = await self._log.read(run, asked.seq)
        counts = any(event.id == id and event.kind == QuestionAnswered.kind for event in events)
        if is_first and counts:
            return delivery
        return await self._refuse_or_repeat(run, asked.id, value, by)

    async def _deliver(self, run: RunKey, id: str, asked: Question) -> Delivery:
        """Deliver an answer to its run; if the run cannot continue here, say that the answer is
        kept."""
        try:
            return await self._mailing.deliver(run, id, asked.seq)
        except TurnloomError as error:
            error.add_note(_KEPT)
            raise

    async def _meant(
        self, run: RunKey, asked: Sequence[Question], id: str | None, by: Answerer, user: str
    ) -> Question | None:
        """The question that is answered: the one of this id or, without one, the only one that this
        person may answer; else any, so that the error names its addressee.

        Raises:
            UsageError: they can answer several.
        """
        if id is not None:
            return next((each for each in asked if each.id == id), None)
        theirs = [each for each in asked if may_answer(each, by, user)]
        kept = await self._kept(run, theirs, user) if len(theirs) > 1 else ()
        due = [each for each in theirs if not (each.id in kept or self._is_overdue(each))]
        if len(due) > 1:
            ids = ", ".join(each.id for each in due)
            raise UsageError(
                f"Run {run.id!r} asks {len(due)} questions: {ids}. Say which one you answer: its "
                "id, or `--question ID` on the command line."
            )
        return next(iter(due or theirs or asked), None)

    async def _asked(self, run: RunKey, last: Event) -> list[Question]:
        """The open questions of a run whose last event this is."""
        if last.kind in ENDS:
            return []
        if not isinstance(last.data, RunPaused):  # other work of the run continues
            return open_questions(standing(await self._log.read(run)))
        first = last.data.waiting_for
        if not first:
            return []
        # It paused for the oldest question, so all of them are after that.
        events = await self._log.read(run, (last.cause or 1) - 1)
        found = open_questions(events)
        is_retried = any(isinstance(event.data, RunRetried) for event in events)
        if not is_retried and any(each.id == first for each in found):
            return found
        return open_questions(standing(await self._log.read(run)))

    def _is_overdue(self, question: Question) -> bool:
        """Whether a question has expired, also if no process has noticed."""
        return question.due is not None and question.due <= self._clock.now()

    async def _answer_id(self, run: RunKey, asked: Question, user: str) -> str:
        """The id of the next answer: one that was refused, or no longer counts after a retry, does
        not block it."""
        events = await self._log.read(run, asked.seq)
        counted = {event.seq for event in standing(events)}
        taken = {
            event.id
            for event in events
            if isinstance(event.data, AnswerRefused)
            or (isinstance(event.data, QuestionAnswered) and event.seq not in counted)
        }
        for id, message in await self._inbox.pending(run):
            if isinstance(message, Reply) and refusal(
                asked, message.value, _answerer(message), user
            ):
                taken.add(id)
        return next(id for id in (answer_id(asked.id, n) for n in count()) if id not in taken)

    async def answered_by(self, run: RunKey, question: str, by: Answerer | None) -> str:
        """The person whose answer to a question that is put to someone counts; empty without
        one.

        Raises:
            NotYours: they are neither the run's user nor an addressee of a question.
            UnknownRun: there is no such run.
        """
        await ends_of(self._log, run)
        events = standing(await self._log.read(run))
        if by is not None and question not in _asked_of(events, by):
            return ""
        answers = [event.data for event in events if isinstance(event.data, QuestionAnswered)]
        return next((each.by for each in answers if each.question == question), "")

    async def _refuse_or_repeat(
        self, run: RunKey, question: str | None, value: Json, by: Answerer
    ) -> Delivery:
        """Say why a question cannot be answered; one that has its answer keeps it. Without an id,
        an equal answer counts as a repeat."""
        events = standing(await self._log.read(run))
        asked = _asked_of(events, by)
        if question is not None and question not in asked:
            raise UsageError(
                f"Run {run.id!r} did not ask {question!r}. It asked: "
                f"{', '.join(asked) or 'nothing'}."
            )
        answers = [event.data for event in events if isinstance(event.data, QuestionAnswered)]
        if any(answer.question == question for answer in answers):
            return Delivery.REPEATED
        if (
            question is None
            and answers
            and answers[-1].by == by.user
            and same(answers[-1].value, value)
        ):
            return Delivery.REPEATED
        meant = question or (asked[-1] if asked else "")
        if any(event.id == f"{meant}/expired" for event in events):
            raise QuestionExpired(_EXPIRED.format(meant))
        if question is None:
            raise UsageError(f"Run {run.id!r} has no open question.")
        raise UsageError(f"Question {question!r} is not open any more.")


def _answerer(reply: Reply) -> Answerer:
    return Answerer(reply.by, reply.role)


def _asked_of(events: Sequence[Event], by: Answerer) -> list[str]:
    """The ids of the questions that were put to a person; the run's user knows of all.

    Raises:
        NotYours: it is neither the run's user nor an addressee.
    """
    user: str = events[0].data.user
    asked = (event for event in events if isinstance(event.data, QuestionAsked))
    questions = [question_of(event.data, event.seq) for event in asked]
    if by.user == user:
        return [each.id for each in questions]
    theirs = [each.id for each in questions if may_answer(each, by, user)]
    if not theirs:
        raise NotYours("This run belongs to another user, and asks others.")
    return theirs


# Said of an answer that the run cannot take in here.
_KEPT = "The answer is kept. It counts once a process that can continue the run resumes it."

_EXPIRED = "Question {!r} expired before; the answer changes nothing."
