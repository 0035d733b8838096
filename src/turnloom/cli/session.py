"""Follow a run in this terminal: show its events, answer its questions."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from turnloom.agents.events import QuestionAnswered, QuestionAsked, QuestionExpiredFact
from turnloom.agents.logic.answers import misanswer
from turnloom.agents.logic.folding import question_of
from turnloom.agents.spec import Question
from turnloom.app import Run
from turnloom.cli.forms import GivenValue
from turnloom.cli.narration import Narration, Origin
from turnloom.cli.questions import is_asked
from turnloom.errors import QuestionExpired as Expired
from turnloom.errors import TurnloomError
from turnloom.kernel.values import Json, as_data
from turnloom.log.events import ENDS, CancelRequested, RunPaused
from turnloom.log.spec import Event
from turnloom.runtime.spec import EFFECT, Delivery

T = TypeVar("T")


class Answers(Protocol):
    """Answers questions here: a person, or a script."""

    origin: Origin

    async def choose(self, questions: Sequence[Question]) -> Question | None:
        """Which of the open questions is answered next; None if none is."""
        ...

    async def answer(self, question: Question, number: int) -> GivenValue | None:
        """The answer to the run's question of that number, from 0; None if there is none."""
        ...

    def withdraw(self) -> None:
        """Withdraw a prompt whose question was closed."""
        ...


class ScriptedUser:
    """A user whose answers are scripted."""

    origin: Origin = "script"

    def __init__(self, lines: Callable[[], Awaitable[Sequence[Json]]]) -> None:
        self._lines = lines

    async def choose(self, questions: Sequence[Question]) -> Question | None:
        """The oldest question: lines answer in the order of the questions."""
        return questions[0]

    async def answer(self, question: Question, number: int) -> GivenValue | None:
        """The line of that number, if there is one. Scripts do not say whether a fork may act.

        Raises:
            TurnloomError: it does not answer the question.
        """
        lines = await self._lines() if question.tool != EFFECT else ()
        if number >= len(lines):
            return None
        if problem := misanswer(question, lines[number]):
            said = f"Answer {number + 1} of the scripted user, {as_data(lines[number])},"
            asked = f"the question of {question.tool}" if question.tool else "the question"
            raise TurnloomError(
                f"{said} does not fit {asked}: {problem}. Correct `user` in the script."
            )
        return GivenValue(lines[number])

    def withdraw(self) -> None:
        """Nothing to do: a script has no prompt."""


class Session:
    """One run, followed from a position until it ends or is left waiting. `user` answers here, and
    is not asked questions addressed to others."""

    def __init__(self, run: Run, narration: Narration, answers: Answers, user: str) -> None:
        self._run = run
        self._user = user
        self._narration = narration
        self._answers = answers
        self._position = 0
        self._answered = 0
        self._open: dict[str, Question] = {}
        self._settled: set[str] = set()
        self._given: set[str] = set()

    def recall(self, events: Sequence[Event]) -> None:
        """Take in earlier events."""
        for event in events:
            self._note(event)
            self._narration.recall(event)

    async def attend(self) -> Event | None:
        """The event that ended the run, or None if it waits for an answer from elsewhere."""
        try:
            with self._run.listening(self._narration.hear):
                return await self._follow()
        finally:
            self._narration.rest()

    async def _follow(self) -> Event | None:
        standing = {each.id for each in await self._run.questions()} if self._open else ()
        # The run continues without the answers of others.
        self._settled.update(self._open.keys() - standing)
        if not await self._ask():
            return None
        async with aclosing(self._run.events(self._position)) as events:
            async for event in events:
                self._tell(event)
                if event.kind in ENDS:
                    return event
                if isinstance(event.data, RunPaused) and not await self._ask():
                    return None
        return None

    def _note(self, event: Event) -> None:
        self._position = event.seq
        match event.data:
            case QuestionAsked() as asked:
                self._open[asked.question] = question_of(asked, event.seq)
            case QuestionAnswered(question=id, tool=tool):
                self._open.pop(id, None)
                self._answered += tool != EFFECT
            case QuestionExpiredFact(question=id):
                self._open.pop(id, None)
            case CancelRequested():
                self._open.clear()
            case _:
                pass

    def _tell(self, event: Event) -> None:
        here = isinstance(event.data, QuestionAnswered) and event.data.question in self._given
        self._note(event)
        self._narration.tell(event, self._answers.origin if here else "elsewhere")

    async def _ask(self) -> bool:
        """Have an open question answered, here or elsewhere; returns whether the run continues."""
        if not self._open or self._settled & self._open.keys():
            return True  # with earlier answers
        mine = [each for each in self._open.values() if is_asked(each, self._user)]
        if not mine:
            return False
        ids, chosen = {each.id for each in mine}, mine[0]
        if len(mine) > 1:
            is_open, picked = await self._unless_closed(ids, self._answers.choose(mine))
            if not is_open:
                return True
            if picked is None:
                return False
            chosen = picked
        asking = self._answers.answer(chosen, self._answered)
        is_open, answer = await self._unless_closed({chosen.id}, asking)
        return await self._give(chosen, answer) if is_open else True

    async def _unless_closed(
        self, ids: Collection[str], asking: Coroutine[Any, Any, T]
    ) -> tuple[bool, T | None]:
        """Whether none of these questions was closed elsewhere meanwhile, and the result of the
        prompt."""
        closed = asyncio.ensure_future(self._closed(ids))
        asked = asyncio.ensure_future(asking)
        try:
            await asyncio.wait({closed, asked}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return True, asked.result()
            self._answers.withdraw()
            self._settled.update(closed.result())
            return False, None
        finally:
            for task in (closed, asked):
                task.cancel()
            await asyncio.wait({closed, asked})

    async def _give(self, question: Question, answer: GivenValue | None) -> bool:
        """Deliver an answer; returns whether there is one."""
        if answer is None:
            return False
        self._settled.add(question.id)
        try:
            delivery = await self._run.answer(question.id, answer.value, user_id=self._user)
        except Expired as error:  # closed while it was typed; the run continues without it
            self._narration.remark(str(error))
            return True
        if delivery is Delivery.REPEATED:
            self._narration.remark("Another answer came first, and counts instead of this one.")
        else:
            self._given.add(question.id)
        return True

    async def _closed(self, ids: Collection[str]) -> Collection[str]:
        """Wait until one of these questions is closed, or the run ends; returns the closed ones."""
        async with aclosing(self._run.events(self._position)) as events:
            async for event in events:
                if isinstance(event.data, QuestionAnswered | QuestionExpiredFact):
                    if event.data.question in ids:
                        return {event.data.question}
                elif isinstance(event.data, CancelRequested) or event.kind in ENDS:
                    break
        return ids
