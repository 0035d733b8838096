"""One call of a tool or hook: the context it gets, the questions it asks, what it leaves."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, get_args

import msgspec
from pydantic_core import PydanticSerializationError, to_jsonable_python

from turnloom.agents.events import (
    EffectDone,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpired,
)
from turnloom.agents.spec import ASKING, SELECTOR, Callee, Display, Question
from turnloom.errors import QuestionExpired as Expired
from turnloom.errors import UsageError
from turnloom.kernel.arguments import as_string
from turnloom.kernel.contained import Interrupted, Quit, called, contained
from turnloom.kernel.deadlines import TimeLimit, in_time
from turnloom.kernel.durations import later
from turnloom.kernel.values import Json, as_object, is_text, preview, said, writable
from turnloom.log.spec import Fact
from turnloom.runtime.logic import scope_of
from turnloom.runtime.service.journal import Journal
from turnloom.variables.events import ContextChanged, ContextMissed
from turnloom.variables.logic.triggers import value_at
from turnloom.variables.logic.types import apart, is_json
from turnloom.variables.logic.writing import Draft, Held
from turnloom.variables.spec import UNCHANGED, Context, Derived, UiResponse

# How much JSON a tool, a hook or an effect may give at most.
MOST_BYTES = 16 * 2**20


class Parked(Interrupted):
    """Ends a call that asked a person; it is entered again when the answer is there."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the key of the call, the writer of what it writes, the seconds it may take, and
    values that it alone is shown."""

    key: str
    writer: str
    timeout: float | None
    shown: Mapping[str, Json] = field(default_factory=dict[str, Json])


class Call:
    """A call that is going on; one made again goes on with what the failed one wrote."""

    def __init__(
        self, journal: Journal, caller: Caller, callee: Callee, after: "Call | None" = None
    ) -> None:
        self.run = journal.state.run
        self.workflow = journal.workflow.name
        self.idempotency_key = f"{self.run}/{caller.key}"
        self.question: Question | None = None
        self._journal = journal
        self._caller = caller
        self._callee = callee
        self._asked = 0
        self._answers: list[tuple[str, Json]] = []
        self._doing: set[str] = set()
        held = _held(journal, caller.shown)
        self.draft = Draft(held, caller.writer, after.draft if after else None)

    async def carry_out(self, arguments: dict[str, Json]) -> Any:
        """What the callee gives.

        Raises:
            Parked: it asked a person.
            TimeoutError: it took too long.
            WriteRefused: it changed in place what it cannot write.
            Exception: whatever it raises.
        """
        try:
            given = await in_time(self._enter(apart(arguments)), self._caller.timeout)
        except TimeLimit as late:
            if self.question is not None:
                raise Parked from late
            raise TimeoutError(str(late)) from late
        except (Exception, BaseExceptionGroup) as error:
            if self.question is not None:
                raise Parked from error  # whatever it made of the first one
            if isinstance(error, Exception):
                raise
            raise Quit(type(error).__name__, said(error)) from error
        finally:
            refused = self.draft.close()
        if self.question is not None:
            raise Parked
        if refused is not None:
            raise refused
        return given

    def _unanswered(self) -> Question | None:
        """What this call asked when it was entered before, if that is still open."""
        asked = f"{self._caller.key}/ask."
        questions = self._journal.state.questions
        return next((each for id, each in questions.items() if id.startswith(asked)), None)

    async def _enter(self, arguments: dict[str, Json]) -> Any:
        self.question = self._unanswered()
        if self.question is not None:
            raise Parked
        ASKING.set(self)
        with contained():
            return await self._callee(arguments, Context(self.draft, self))

    def _go_on(self) -> None:
        """Let nobody go on who asked and caught what ended the call, or whose call is over."""
        if self.question is not None:
            raise Parked
        self._check_open()

    def _check_open(self) -> None:
        if self.draft.closed:
            raise UsageError(f"The call of {self._caller.writer} is over: it took too long.")

    async def ask(
        self, tool: str, payload: Json, seconds: float | None, display: Display | None
    ) -> Json:
        """The recorded answer to the next question of this call; without one, the call parks."""
        if not self._callee.may_ask:
            raise UsageError("Only async tools and hooks may ask people. Make it `async def`.")
        if not self._journal.workflow.has_people:
            raise UsageError(
                f"{self.workflow!r} is BackendOnly: its runs have nobody to ask. Decide in the "
                "code, or set `startup_mode: AgentDriven`."
            )
        self._go_on()
        question = self._make(tool, payload, seconds, display)
        self._asked += 1
        answered = _answer_to(self._journal, question.id)
        if answered is not None:
            self._answers.append((question.tool, answered.value))
            return apart(answered.value)
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
        if tool in ("", SELECTOR):  # so the run itself asks: for a message, for a speaker
            raise UsageError(f"A question is asked by a tool, not by {tool!r}. Name the tool.")
        if display not in (None, *get_args(Display)):
            raise UsageError(f"A question is shown inline or as an artifact, not {display!r}.")
        if timeout is not None and timeout <= 0:
            raise UsageError(f"A question waits for seconds above 0, not {timeout!r}.")
        journal, kit = self._journal, self._journal.workflow.toolkit
        name = kit.called(tool)
        if name not in kit.tools:
            self._clear(name, "a tool")
        ui = kit.tools[name].ui if name in kit.tools else None
        asked = f"{self._caller.key}/ask.{self._asked}"
        recorded = journal.recorded(asked)
        if isinstance(recorded, QuestionAsked) and recorded.tool != name:
            raise UsageError(f"{asked} was asked by {recorded.tool!r}, and now by {name!r}.")
        due = later(journal.clock.now(), timeout) if timeout is not None else None
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

    def _clear(self, name: str, of: str) -> str:
        """A name that code gives, which is recorded as it is.

        Raises:
            UsageError: a secret stands in it.
        """
        if self._journal.secrets.stands_in(name):
            raise UsageError(
                f"A secret stands in the name of {of}, and names are recorded in clear. Use "
                "another name."
            )
        return name

    async def once(self, name: str, effect: Callable[[], Any]) -> Json:
        """What an effect gave, from the record or by doing it now."""
        name = self._clear(as_string(name, "The name of an effect"), "an effect")
        self._go_on()
        id = f"{self._caller.key}/once:{name}"
        done = self._journal.recorded(id)
        if isinstance(done, EffectDone):
            return apart(done.result)
        if name in self._doing:
            raise UsageError(f"Effect {name!r} is being done already. Use another name for this.")
        self._doing.add(name)
        try:
            given = await called(effect)
        finally:
            self._doing.discard(name)
        self._check_open()
        fact = EffectDone(self._caller.key, name, as_json(given))
        await self._journal.put(id, fact)
        return apart(fact.result)

    def facts(self, id: str = "") -> Iterator[Fact]:
        """What the call wrote, was refused and should have written, to be recorded under an id: the
        key of the call where nothing else is said."""
        by = id or self._caller.key
        for fact in self.draft.facts():
            if isinstance(fact, ContextChanged) and fact.name in self.draft.made:
                self._journal.objects[fact.name, by] = self.draft.made[fact.name]
            yield fact
        for name, trigger in _declared(self._journal) if self._answers else ():
            for tool, answer in self._answers:
                value = value_at(answer, trigger.response_key)
                asked = self._journal.workflow.toolkit.called(trigger.tool) == tool
                if asked and value is not UNCHANGED and name not in self.draft.written:
                    yield ContextMissed(name, tool, trigger.response_key, value)

    def stack(self, error: Exception) -> str:
        """Where an error of the call came from, as the program's log may have it."""
        lines = "".join(traceback.format_exception(error))
        return self._journal.secrets.masked(writable(lines)).rstrip()

    def recover(self) -> None:
        """Keep what the call made again of what was lost with a process; nothing else counts."""
        for name, value in self.draft.made.items():
            if self._journal.state.ephemeral.get(name) == self._caller.key:
                self._journal.objects[name, self._caller.key] = value


def _held(journal: Journal, shown: Mapping[str, Json]) -> Held:
    """The values of the run as its own code sees them: secrets open, objects alive."""
    state = journal.state
    secrets = {name: value for name, value in journal.secrets.items() if name in state.values}
    return Held(
        state.values,
        state.ephemeral,
        journal.objects,
        {**secrets, **shown},
        journal.workflow.variables.definitions,
        journal.secrets.received_data,
    )


def _answer_to(journal: Journal, question: str) -> QuestionAnswered | None:
    """The answer on record to a question of an open turn, or of a hook of the run."""
    state, scope = journal.state, scope_of(journal.state, question)
    facts = [event.data for event in scope.recorded.values()] if scope else state.chat.values()
    answers = (fact for fact in facts if isinstance(fact, QuestionAnswered))
    return next((answer for answer in answers if answer.question == question), None)


def _declared(journal: Journal) -> Iterator[tuple[str, UiResponse]]:
    """The variables that tools set from answers."""
    for name, definition in journal.workflow.variables.definitions.items():
        source = definition.source
        for trigger in source.triggers if isinstance(source, Derived) else ():
            if isinstance(trigger, UiResponse) and trigger.apply == "tool":
                yield name, trigger


class Waiting(Exception):
    """The work waits for a person."""


def park(journal: Journal, question: Question) -> NoReturn:
    """Ask a person, and leave the work until the question is answered.

    Raises:
        Waiting: always.
    """
    ask(journal, question)
    raise Waiting(question.id)


def ask(journal: Journal, question: Question) -> None:
    """Put on record that a person is asked, unless the question is open already."""
    if question.id not in journal.state.questions:
        journal.record(question.id, _asked(question))


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
    """A value that code gave, as JSON that the code has no hold on.

    Raises:
        TypeError: it cannot be written down.
    """
    if is_json(value):
        return _fitting(apart(value))
    try:
        plain = to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise TypeError(f"It gave {preview(value)}, which is not JSON. Give data.") from error
    if not is_json(plain):
        raise TypeError(f"It gave {preview(value)}, which is not JSON. Give data.")
    return _fitting(plain)


def _fitting(value: Json) -> Json:
    """Refuse what is too much for a log."""
    size = len(msgspec.json.encode(value))
    if size > MOST_BYTES:
        raise TypeError(
            f"It gave {size:,} bytes of JSON, and {MOST_BYTES:,} are the most that a log keeps of "
            "one result. Keep it elsewhere, and give where it is."
        )
    return value
