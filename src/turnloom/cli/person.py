"""A person at the keyboard, prompted line by line."""

import asyncio
import os
import sys
from collections.abc import Sequence

from turnloom.agents.logic.answers import misanswer
from turnloom.agents.spec import Question
from turnloom.cli.forms import AnswerForm, FormField, GivenValue, word
from turnloom.cli.narration import PROMPT, Narration, Origin
from turnloom.cli.questions import gist
from turnloom.kernel.values import Json


def is_attended() -> bool:
    """Whether a person is at standard input."""
    # Without a standard input at all, Python has none here either.
    return bool(sys.stdin) and sys.stdin.isatty()


class Keyboard:
    """Standard input, line by line; what was typed ahead is kept for the next line."""

    def __init__(self, file: int = 0) -> None:
        self._file = file
        self._typed = b""

    async def line(self) -> str | None:
        """The next line without its end, or None at the end of the input."""
        while b"\n" not in self._typed:
            more = await self._more()
            if not more:
                return None
            self._typed += more
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    async def _more(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._file, _mark, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._file)
        return os.read(self._file, 4096)


def _mark(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


# The prompt for the number of a question.
CHOICE = "question> "


class Person:
    """A person at the keyboard."""

    origin: Origin = "typed"

    def __init__(self, narration: Narration) -> None:
        self._narration = narration
        self._keyboard = Keyboard()

    async def choose(self, questions: Sequence[Question]) -> Question | None:
        """The question that the person answers next; None at the end of the input."""
        self._narration.remark(f"{len(questions)} questions are open. Answer them in any order:")
        for number, question in enumerate(questions, 1):
            self._narration.remark(f"{number}) {gist(question) or 'your turn'}")
        try:
            while True:
                typed = (await self._line(CHOICE)).strip()
                if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(questions):
                    return questions[int(typed) - 1]
                if typed:
                    self._narration.remark(f"Give a number from 1 to {len(questions)}.")
        except EOFError:
            self._narration.withdraw()
            return None

    async def answer(self, question: Question, number: int) -> GivenValue | None:
        """The person's answer; None at the end of the input."""
        self._narration.present(question)
        try:
            answer = await (self._fitting(question) if question.tool else self._words())
        except EOFError:
            self._narration.withdraw()
            return None
        return GivenValue(answer)

    def withdraw(self) -> None:
        """Leave the line of the prompt."""
        self._narration.withdraw()

    async def _line(self, label: str) -> str:
        """A line that the person types.

        Raises:
            EOFError: there are no more.
        """
        self._narration.prompt(label)
        line = await self._keyboard.line()
        if line is None:
            raise EOFError
        return line

    async def _words(self) -> str:
        """A line that is not empty; an empty one prompts again."""
        while not (line := await self._line(PROMPT)).strip():
            continue
        return line

    async def _fitting(self, question: Question) -> Json:
        """An answer that fits the form; any other prompts again."""
        form = AnswerForm(question)
        while True:
            answer = await self._filled(form)
            problem = misanswer(question, answer)
            if problem is None:
                return answer
            self._narration.remark(problem)

    async def _filled(self, form: AnswerForm) -> Json:
        given = {field.name: await self._value(form, field) for field in form.fields}
        found = {name: each.value for name, each in given.items() if each is not None}
        return found if form.is_object else found[""]

    async def _value(self, form: AnswerForm, field: FormField) -> GivenValue | None:
        """The value of a field; None if it is optional and left out."""
        for line in _introduction(field):
            self._narration.remark(line)
        label = f"{field.name}> " if len(form.fields) > 1 else PROMPT
        while True:
            typed = (await self._line(label)).strip()
            if typed:
                value = form.typed(field, typed)
                if isinstance(value, GivenValue):
                    return value
                self._narration.remark(value)
            elif not field.required:
                return None
            elif field.nullable:
                return GivenValue(None)


def _introduction(field: FormField) -> list[str]:
    """The purpose of a field, and its accepted values."""
    if field.choices:
        numbered = [f"{number}) {word(each)}" for number, each in enumerate(field.choices, 1)]
        about = _about(field, "")
        return [about, *numbered] if about else numbered
    about = _about(field, "y/n" if field.kind == "boolean" else field.demand)
    return [about] if about else []


def _about(field: FormField, takes: str) -> str:
    optional = "" if field.required else "or nothing"
    notes = " ".join(filter(None, (takes, optional)))
    said = ": ".join(filter(None, (field.name, field.description)))
    return f"{said} ({notes})" if notes and said else said
