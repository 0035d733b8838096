"""A run attended to in this terminal: what happens is told, what is asked is answered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from weft.agents.events import QuestionAnswered, QuestionAsked, QuestionExpired
from weft.agents.logic.folding import question_of
from weft.agents.spec import Question
from weft.app import Run
from weft.cli.keyboard import Keyboard
from weft.cli.narration import Narration
from weft.kernel.values import Json
from weft.log.events import ENDS, CancelRequested, RunPaused
from weft.log.spec import Event


class Answers(Protocol):
    """Whoever answers questions here."""

    typed: bool

    async def answer(self, question: Question, number: int) -> Json:
        """The answer to the run's question of that number, from 0, or nothing."""
        ...

    def withdraw(self) -> None:
        """The question does not stand any more."""
        ...


class Person:
    """Somebody at the keyboard."""

    typed = True

    def __init__(self, narration: Narration) -> None:
        self._narration = narration
        self._keyboard = Keyboard()

    async def answer(self, question: Question, number: int) -> str | None:
        """What the person types; an empty line asks again."""
        line = ""
        while line is not None and not line.strip():
            self._narration.prompt(question)
            line = await self._keyboard.line()
        if line is None:
            self._narration.withdraw()
        return line

    def withdraw(self) -> None:
        """Leave the line of the prompt."""
        self._narration.withdraw()


class Script:
    """A user whose answers were written down before."""

    typed = False

    def __init__(self, lines: Callable[[], Awaitable[Sequence[Json]]]) -> None:
        self._lines = lines

    async def answer(self, question: Question, number: int) -> Json:
        """The line of that number, if there is one."""
        lines = await self._lines()
        return lines[number] if number < len(lines) else None

    def withdraw(self) -> None:
        """Nothing: no prompt stands."""


class Session:
    """One run, followed from a position on until it ends or is left waiting."""

    def __init__(self, run: Run, narration: Narration, answers: Answers) -> None:
        self._run = run
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
        if not await self._ask(self._question):
            return None
        async with aclosing(self._run.events(self._position)) as events:
            async for event in events:
                self._tell(event)
                if event.kind in ENDS:
                    return event
                if isinstance(event.data, RunPaused) and not await self._ask(self._question):
                    return None
        return None

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

    async def _give(self, question: Question, value: Json) -> bool:
        """Deliver an answer; whether there is one."""
        if value is None:
            return False
        self._settled = question.id
        if self._answers.typed:
            self._typed = (question.id, value)
        await self._run.answer(question.id, value)
        return True

    async def _closed(self, after: int) -> None:
        """Wait until the open question is answered, or the run is to end."""
        async with aclosing(self._run.events(after)) as events:
            async for event in events:
                if isinstance(event.data, QuestionAnswered | QuestionExpired | CancelRequested):
                    return
                if event.kind in ENDS:
                    return
