"""One call of a tool or hook: the context it gets, the questions it asks, what it leaves."""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NoReturn, get_args

import anyio
from anyio import to_thread
from pydantic_core import PydanticSerializationError, to_jsonable_python

from weft.agents.events import (
    EffectDone,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpired,
)
from weft.agents.spec import ASKING, Callee, Display, Question
from weft.errors import QuestionExpired as Expired
from weft.errors import UsageError
from weft.kernel.values import Json, as_object, is_text, preview
from weft.log.events import RunPaused
from weft.log.spec import Fact
from weft.runtime.service.journal import Journal
from weft.variables.events import ContextMissed
from weft.variables.logic.triggers import value_at
from weft.variables.logic.types import is_json
from weft.variables.logic.writing import Draft, Held
from weft.variables.spec import UNCHANGED, Context, Derived, UiResponse

log = logging.getLogger("weft.calls")


class Parked(BaseException):
    """Ends a call that asked a person; it is entered again when the answer is there."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the key of the call, the writer of what it writes, the seconds it may take, and
    values that it alone is shown."""

    key: str
    writer: str
    timeout: float
    shown: Mapping[str, Json] = field(default_factory=dict[str, Json])


class Call:
    """A call that is going on."""

    def __init__(self, journal: Journal, caller: Caller, callee: Callee) -> None:
        self.run = journal.state.run
        self.workflow = journal.workflow.name
        self.idempotency_key = f"{self.run}/{caller.key}"
        self.question: Question | None = None
        self._journal = journal
        self._caller = caller
        self._callee = callee
        self._asked = 0
        self._answers: list[tuple[str, Json]] = []
        self.draft = Draft(_held(journal, caller.shown), caller.writer)

    async def carry_out(self, arguments: dict[str, Json]) -> Json:
        """What the callee gives, as JSON.

        Raises:
            Parked: it asked a person.
            TimeoutError: it took too long.
            TypeError: it gave something that is not JSON.
        """
        context, given = Context(self.draft, self), None
        token = ASKING.set(self)
        try:
            with anyio.move_on_after(self._caller.timeout) as scope:
                given = await self._callee(arguments, context)
        except (Exception, BaseExceptionGroup) as error:
            if self.question is not None:
                raise Parked from error  # whatever it made of the first one
            raise
        finally:
            ASKING.reset(token)
        self._go_on()
        if scope.cancelled_caught:
            raise TimeoutError(f"It took over {self._caller.timeout:g} s.")
        return as_json(given)

    def _go_on(self) -> None:
        """Let nobody go on without the answer who asked and caught what ended the call."""
        if self.question is not None:
            raise Parked

    async def ask(
        self, tool: str, payload: Json, seconds: float | None, display: Display | None
    ) -> Json:
        """The recorded answer to the next question of this call; without one, the call parks."""
        if not self._callee.may_ask:
            raise UsageError("Only async tools and hooks may ask people. Make it `async def`.")
        self._go_on()
        question = self._make(tool, payload, seconds, display)
        self._asked += 1
        answered = self._journal.recorded(f"{question.id}/answer")
        if isinstance(answered, QuestionAnswered):
            self._answers.append((question.tool, answered.value))
            return answered.value
        if isinstance(self._journal.recorded(f"{question.id}/expired"), QuestionExpired):
            raise Expired(f"Nobody answered {question.tool!r} in time.")
        if self._journal.state.cancel is not None:
            raise UsageError("The run was cancelled; nobody is asked any more.")
        self.question = question
        raise Parked

    def _make(
        self, tool: str, payload: Json, timeout: float | None, display: Display | None
    ) -> Question:
        if not is_text(tool) or not is_json(payload):
            raise UsageError(f"A question takes a tool's name and JSON, not {preview(payload)}.")
        if display not in (None, *get_args(Display)):
            raise UsageError(f"A question is shown inline or as an artifact, not {display!r}.")
        if timeout is not None and timeout <= 0:
            raise UsageError(f"A question waits for seconds above 0, not {timeout!r}.")
        journal, kit = self._journal, self._journal.workflow.toolkit
        name = kit.called(tool)
        ui = kit.tools[name].ui if name in kit.tools else None
        asked = f"{self._caller.key}/ask.{self._asked}"
        recorded = journal.recorded(asked)
        if isinstance(recorded, QuestionAsked) and recorded.tool != name:
            raise UsageError(f"{asked} was asked by {recorded.tool!r}, and now by {name!r}.")
        due = journal.clock.now() + timedelta(seconds=timeout) if timeout is not None else None
        return Question(
            asked,
            _prompt(payload),
            journal.state.user,
            name,
            payload,
            (ui and ui.component) or "",
            display or (ui and ui.mode) or "inline",
            kit.responses.get(name),
            due,
        )

    async def once(self, name: str, effect: Callable[[], Any]) -> Json:
        """What an effect gave, from the record or by doing it now."""
        self._go_on()
        id = f"{self._caller.key}/once:{name}"
        done = self._journal.recorded(id)
        if isinstance(done, EffectDone):
            return done.result
        if inspect.iscoroutinefunction(effect):
            given = await effect()
        else:
            given = await to_thread.run_sync(effect, abandon_on_cancel=True)
            given = await given if inspect.isawaitable(given) else given
        fact = EffectDone(self._caller.key, name, as_json(given))
        await self._journal.put(id, fact)
        return fact.result

    def facts(self) -> Iterator[Fact]:
        """What the call wrote, was refused and should have written."""
        self._journal.objects.update(self.draft.objects)
        yield from self.draft.facts()
        for name, trigger in _declared(self._journal) if self._answers else ():
            for tool, answer in self._answers:
                value = value_at(answer, trigger.response_key)
                asked = self._journal.workflow.toolkit.called(trigger.tool) == tool
                if asked and value is not UNCHANGED and name not in self.draft.written:
                    yield ContextMissed(name, tool, trigger.response_key, value)


def _held(journal: Journal, shown: Mapping[str, Json]) -> Held:
    """The values of the run as its own code sees them: secrets open, objects alive."""
    state = journal.state
    secrets = {name: value for name, value in journal.secrets.items() if name in state.values}
    definitions = journal.workflow.variables.definitions
    return Held(state.values, state.ephemeral, journal.objects, {**secrets, **shown}, definitions)


def _declared(journal: Journal) -> Iterator[tuple[str, UiResponse]]:
    """The variables that tools set from answers."""
    for name, definition in journal.workflow.variables.definitions.items():
        source = definition.source
        for trigger in source.triggers if isinstance(source, Derived) else ():
            if isinstance(trigger, UiResponse) and trigger.apply == "tool":
                yield name, trigger


class Waiting(Exception):
    """The run waits for a person: nothing more can be done in this drive."""


def park(journal: Journal, question: Question) -> NoReturn:
    """Put on record that a person is asked and that the run waits.

    Raises:
        Waiting: always.
    """
    ask(journal, question)
    raise Waiting(question.id)


def ask(journal: Journal, question: Question) -> None:
    """Put on record that a person is asked and that the run waits."""
    journal.record(question.id, _asked(question))
    journal.record(f"{question.id}/wait", RunPaused(question.id))


def _asked(question: Question) -> QuestionAsked:
    return QuestionAsked(
        question.id,
        question.prompt,
        question.to,
        question.tool,
        question.payload,
        question.component,
        question.display,
        question.schema,
        question.due,
    )


def _prompt(payload: Json) -> str:
    """What a payload says in words, if it does."""
    said = as_object(payload) or {}
    words = (said.get(key) for key in ("prompt", "question", "message", "title"))
    return next((word for word in words if isinstance(word, str)), "")


def as_json(value: Any) -> Json:
    """A value that code gave, as JSON.

    Raises:
        TypeError: it cannot be written down.
    """
    if is_json(value):
        return value
    try:
        plain = to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise TypeError(f"It gave {preview(value)}, which is not JSON. Give data.") from error
    if not is_json(plain):
        raise TypeError(f"It gave {preview(value)}, which is not JSON. Give data.")
    return plain
