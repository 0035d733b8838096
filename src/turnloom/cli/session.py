"""A run attended to in this terminal: what happens is told, what is asked is answered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from turnloom.agents.events import QuestionAnswered, QuestionAsked, QuestionExpired
from turnloom.agents.logic.answers import misanswer
from turnloom.agents.logic.folding import question_of
from turnloom.agents.spec import Question
from turnloom.app import Run
from turnloom.cli.forms import Given
from turnloom.cli.narration import Narration
from turnloom.errors import QuestionExpired as Expired
from turnloom.errors import TurnloomError
from turnloom.kernel.values import Json, as_data
from turnloom.log.events import ENDS, CancelRequested, RunPaused
from turnloom.log.spec import Event


class Answers(Protocol):
    """Whoever answers questions here."""

    typed: bool

    async def answer(self, question: Question, number: int) -> Given | None:
        """The answer to the run's question of that number, from 0, or nothing."""
        ...

    def withdraw(self) -> None:
        """The question does not stand any more."""
        ...


class Script:
    """A user whose answers were written down before."""

    typed = False

    def __init__(self, lines: Callable[[], Awaitable[Sequence[Json]]]) -> None:
        self._lines = lines

    async def answer(self, question: Question, number: int) -> Given | None:
        """The line of that number, if there is one.

        Raises:
            TurnloomError: it does not answer the question.
        """
        lines = await self._lines()
        if number >= len(lines):
            return None
        if problem := misanswer(question, lines[number]):
            said = f"Answer {number + 1} of the scripted user, {as_data(lines[number])},"
            asked = f"the question of {question.tool}" if question.tool else "the question"
            raise TurnloomError(
                f"{said} does not fit {asked}: {problem}. Correct `user` in the script."
            )
        return Given(lines[number])

    def withdraw(self) -> None:
        """Nothing: no prompt stands."""


class Session:
    """One run, followed from a position on until it ends or is left waiting; `user` is who answers
    here, and is asked no question of other people."""

    def __init__(self, run: Run, narration: Narration, answers: Answers, user: str) -> None:
        self._run = run
        self._user = user
        self._narration = narration
        self._answers = answers
        self._position = 0
        self._answered = 0
        self._question: Question | None = None
        self._settled = ""
        self._typed: tuple[str, Json] | None = None

    def recall(self, events: Sequence[Event]) -> None:
        """Take in what happened before."""
        for event in events:
            self._note(event)
            self._narration.recall(event)

    async def attend(self) -> Event | None:
        """The event that ended the run, or nothing when it waits for an answer from elsewhere."""
        try:
            with self._run.listening(self._narration.hear):
                return await self._follow()
        finally:
            self._narration.rest()

    async def _follow(self) -> Event | None:
        if not await self._ask(await self._standing()):
            return None
        async with aclosing(self._run.events(self._position)) as events:
            async for event in events:
                self._tell(event)
                if event.kind in ENDS:
                    return event
                if isinstance(event.data, RunPaused) and not await self._ask(self._question):
                    return None
        return None

    async def _standing(self) -> Question | None:
        """The question that was open before, unless the run goes on without its answer."""
        asked = self._question
        return asked if asked is not None and await self._run.question() is not None else None

    def _note(self, event: Event) -> None:
        self._position = event.seq
        match event.data:
            case QuestionAsked() as asked:
                self._question = question_of(asked, event.seq)
            case QuestionAnswered():
                self._question = None
                self._answered += 1
            case QuestionExpired():
                self._question = None
            case CancelRequested():
                self._question = None
            case _:
                pass

    def _tell(self, event: Event) -> None:
        here = isinstance(event.data, QuestionAnswered) and self._typed == (
            event.data.question,
            event.data.value,
        )
        self._note(event)
        self._narration.tell(event, typed_here=here)

    async def _ask(self, question: Question | None) -> bool:
        """Have an open question answered, here or elsewhere; whether the run goes on."""
        if question is None or question.id == self._settled:
            return True
        if question.to not in ("", self._user):
            return False
        closed = asyncio.ensure_future(self._closed(self._position))
        answer = asyncio.ensure_future(self._answers.answer(question, self._answered))
        try:
            await asyncio.wait({closed, answer}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return await self._give(question, answer.result())
            self._answers.withdraw()
            closed.result()
            self._settled = question.id
            return True
        finally:
            for task in (closed, answer):
                task.cancel()
            await asyncio.wait({closed, answer})

    async def _give(self, question: Question, answer: Given | None) -> bool:
        """Deliver an answer; whether there is one."""
        if answer is None:
            return False
        self._settled = question.id
        if self._answers.typed:
            self._typed = (question.id, answer.value)
        try:
            await self._run.answer(question.id, answer.value, user_id=self._user)
        except Expired as error:  # while it was typed; the run goes on without it
            self._narration.remark(str(error))
        return True

    async def _closed(self, after: int) -> None:
        """Wait until the open question is answered, or the run is to end."""
        async with aclosing(self._run.events(after)) as events:
            async for event in events:
                if isinstance(event.data, QuestionAnswered | QuestionExpired | CancelRequested):
                    return
                if event.kind in ENDS:
                    return
