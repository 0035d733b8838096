"""One call of a tool, a hook or an engine: its context, its secrets, its questions, its end."""

import asyncio
import logging
import traceback
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar, cast, get_args

import msgspec
from pydantic_core import PydanticSerializationError, to_jsonable_python

from turnloom.agents.events import (
    EffectDone,
    QuestionAnswered,
    QuestionAsked,
    QuestionExpiredFact,
)
from turnloom.agents.logic.answers import addressing, answer_id, read_addressees
from turnloom.agents.spec import (
    ASKING,
    SELECTOR,
    Callee,
    Display,
    Question,
)
from turnloom.assembly.spec.sources import Assembly, VariableSource
from turnloom.errors import QuestionExpired as Expired
from turnloom.errors import TooManyQuestions, UsageError
from turnloom.kernel.arguments import as_string
from turnloom.kernel.contained import Quit, called, contained, error_name
from turnloom.kernel.deadlines import TimeLimit, in_time
from turnloom.kernel.durations import later
from turnloom.kernel.interruption import Interrupted
from turnloom.kernel.values import Json, as_object, error_text, is_text, preview, writable
from turnloom.log.logic import in_life
from turnloom.log.spec import Fact
from turnloom.runtime.journal import Journal, idempotency_key
from turnloom.runtime.logic import scope_of
from turnloom.runtime.spec import LoadedWorkflow
from turnloom.runtime.world import CallResult, GivenResult, RecordedError
from turnloom.variables.events import ContextChanged, ContextMissed
from turnloom.variables.logic.exposure import names_of
from turnloom.variables.logic.triggers import value_at
from turnloom.variables.logic.types import apart, is_json
from turnloom.variables.logic.writing import DraftValues, HeldValues
from turnloom.variables.spec import UNCHANGED, Context, Derived, UiResponse

# The largest JSON, in bytes, that a tool, a hook or an effect may return.
MOST_BYTES = 16 * 2**20


class Parked(Interrupted):
    """Ends a call that asked a person; the call is entered again once the answer is there."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.id)
        self.question = question


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: the key of the call, the writer of its changes, its timeout, and values that only
    it sees. `effect` is the key under which its intent is recorded, if it touches the world."""

    key: str
    writer: str
    timeout: float | None
    shown: Mapping[str, Json] = field(default_factory=dict[str, Json])
    effect: str = ""


class Call:
    """A call in progress. A repeated one starts with what the failed one wrote."""

    def __init__(
        self, journal: Journal, caller: Caller, callee: Callee, after: "Call | None" = None
    ) -> None:
        self.run = journal.state.run
        self.workflow = journal.workflow.name
        self.idempotency_key = idempotency_key(journal, caller.key)
        self.question: Question | None = None
        self._journal = journal
        self._caller = caller
        self._callee = callee
        self._asked = 0
        self._answers: list[tuple[str, Json]] = []
        self._doing: set[str] = set()
        self._notes: Sequence[Fact] = ()
        held = _held(journal, caller.shown)
        self.draft = DraftValues(held, caller.writer, after.draft if after else None)

    async def carry_out(self, arguments: dict[str, Json]) -> Any:
        """Call the callee, and return its result.

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
                raise Parked(self.question) from late
            raise TimeoutError(str(late)) from late
        except (Exception, BaseExceptionGroup) as error:
            if self.question is not None:
                raise Parked(self.question) from error  # whatever it did with the first exception
            if isinstance(error, Exception):
                raise
            raise Quit(type(error).__name__, error_text(error)) from error
        finally:
            refused = self.draft.close()
        if self.question is not None:
            raise Parked(self.question)
        if refused is not None:
            raise refused
        return given

    def _unanswered(self) -> Question | None:
        """The open question that this call asked when it was entered before, if any."""
        asked = f"{self._caller.key}/ask."
        questions = self._journal.state.questions
        return next((each for id, each in questions.items() if id.startswith(asked)), None)

    async def _enter(self, arguments: dict[str, Json]) -> Any:
        self.question = self._unanswered()
        if self.question is not None:
            raise Parked(self.question)
        origin = self._journal.origin
        if origin is not None and self._caller.effect:
            result = await origin.judge(self._caller.effect, self._caller.writer)
            if result is not None:
                return self._play(result)
        ASKING.set(self)
        with contained():
            return await self._callee(arguments, Context(self.draft, self))

    def _play(self, result: CallResult | GivenResult) -> Any:
        """Do what a recorded call did, and return its result, or what a person gave instead.

        Raises:
            RecordedError: it failed.
        """
        if isinstance(result, GivenResult):
            return result.value
        for number, (asked, answered) in enumerate(result.dialogue):
            self._repeat(f"{self._caller.key}/ask.{number}", asked, answered)
        for write in result.writes:
            if not write.removed:
                self.draft.write(write.name, opened(self._journal, write.value))
            elif write.name in [*self.draft.names()]:
                self.draft.remove(write.name)
        self._notes = result.notes
        if result.error is not None:
            raise self._opened(result.error)
        is_json = not isinstance(result.value, tuple)  # a step's change is opened where it is read
        return opened(self._journal, result.value) if is_json else result.value

    def _repeat(self, key: str, asked: QuestionAsked, answered: QuestionAnswered) -> None:
        """Record a question and its answer as another run has them, unless they are here."""
        journal, id = self._journal, in_life(key, self._journal.state.life)
        if journal.recorded(id) is None:
            journal.record(id, msgspec.structs.replace(asked, question=id))
            fact = msgspec.structs.replace(answered, question=id)
            journal.record(answer_id(id), fact, answered.by)

    def _opened(self, error: RecordedError) -> RecordedError:
        """A recorded error with secrets in clear."""
        message, stack = (opened(self._journal, each) for each in (str(error), error.stack))
        return RecordedError(error.name, message, stack, error.handler)

    def _go_on(self) -> None:
        """Raise if the call is parked or closed."""
        if self.question is not None:
            raise Parked(self.question)
        self._check_open()

    def _check_open(self) -> None:
        if self.draft.closed:
            raise UsageError(f"The call of {self._caller.writer} is over: it took too long.")

    async def ask(
        self,
        tool: str,
        payload: Json,
        seconds: float | None,
        display: Display | None,
        *,
        to: object = None,
    ) -> Json:
        """The recorded answer to the next question of this call; without one, the call parks."""
        if not self._callee.may_ask:
            raise UsageError("Only async tools and hooks may ask people. Make it `async def`.")
        if not self._journal.workflow.has_people:
            raise UsageError(
                f"{self.workflow!r} is BackendOnly: its runs cannot ask anyone. Decide in the "
                "code, or set `startup_mode: AgentDriven`."
            )
        self._go_on()
        question = self._make(tool, payload, seconds, display, whom=self._whom(to))
        self._asked += 1
        answered = answer_to(self._journal, question.id)
        if answered is not None:
            self._answers.append((question.tool, answered.value))
            return apart(answered.value)
        if isinstance(self._journal.recorded(f"{question.id}/expired"), QuestionExpiredFact):
            raise Expired(f"{question.tool!r} was not answered in time.")
        if self._journal.state.cancel is not None:
            raise UsageError("The run was cancelled, so it cannot ask any more.")
        self._check_room(question)
        self.question = question
        raise Parked(question)

    def _check_room(self, question: Question) -> None:
        """Refuse a question of a run that has as many open ones as it may."""
        journal, most = self._journal, self._journal.most_questions
        if len((journal.state.questions.keys() | journal.asking) - {question.id}) >= most:
            raise TooManyQuestions(
                f"This run has {most} open questions, the most that it may have. Wait for answers, "
                "or raise `limits.questions` in turnloom.toml."
            )
        journal.asking.add(question.id)

    def _whom(self, to: object) -> tuple[str, ...]:
        """The addressees of a question: by default the run's user.

        Raises:
            UsageError: one is no person or role.
        """
        if to is None:
            return (self._journal.state.user,)
        try:
            named = read_addressees(to)
        except ValueError as error:
            raise UsageError(f"`to` is {preview(to)}: {error}.") from None
        return tuple(self._clear(each, "an addressee") for each in named)

    def _make(
        self,
        tool: str,
        payload: Json,
        timeout: float | None,
        display: Display | None,
        *,
        whom: tuple[str, ...],
    ) -> Question:
        if not is_text(tool) or not is_json(payload):
            raise UsageError(f"A question takes a tool's name and JSON, not {preview(payload)}.")
        if tool in ("", SELECTOR):  # ids that the run itself uses: for a message, for a speaker
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
        asked = in_life(f"{self._caller.key}/ask.{self._asked}", journal.state.life)
        recorded = journal.recorded(asked)
        if isinstance(recorded, QuestionAsked):
            asked = recorded.question
            if recorded.tool != name:
                raise UsageError(f"{asked} was asked by {recorded.tool!r}, and now by {name!r}.")
        due = later(journal.clock.now(), timeout) if timeout is not None else None
        to, among = addressing(whom)
        return Question(
            asked,
            _prompt(payload),
            to,
            name,
            payload=payload,
            component=(ui and ui.component) or "",
            display=display or (ui and ui.mode) or "inline",
            schema=kit.responses.get(name),
            due=due,
            among=among,
        )

    def _clear(self, name: str, of: str) -> str:
        """A name from user code, which is recorded as it is.

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
        """The result of an effect: from the log, or performed now."""
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
        """The facts of the call, to be recorded under an id (its own key by default): what it
        wrote, what was refused, what it should have written."""
        by = id or self._caller.key
        for fact in self.draft.facts():
            if isinstance(fact, ContextChanged) and fact.name in self.draft.made:
                self._journal.objects[fact.name, by] = self.draft.made[fact.name]
            yield fact
        yield from self._notes
        for name, trigger in _declared(self._journal) if self._answers else ():
            for tool, answer in self._answers:
                value = value_at(answer, trigger.response_key)
                asked = self._journal.workflow.toolkit.called(trigger.tool) == tool
                if asked and value is not UNCHANGED and name not in self.draft.written:
                    yield ContextMissed(name, tool, trigger.response_key, value)

    def stack(self, error: Exception) -> str:
        """The traceback of an error of the call, masked for the program's log."""
        lines = "".join(traceback.format_exception(error))
        return self._journal.secrets.masked(writable(lines)).rstrip()

    def recover(self) -> None:
        """Keep the objects that the call made again after they were lost with a process; drop its
        other writes."""
        for name, value in self.draft.made.items():
            if self._journal.state.ephemeral.get(name) == self._caller.key:
                self._journal.objects[name, self._caller.key] = value


def _held(journal: Journal, shown: Mapping[str, Json]) -> HeldValues:
    """The variables of the run as its own code sees them: secrets in clear, objects live."""
    state = journal.state
    secrets = {name: value for name, value in journal.secrets.items() if name in state.values}
    return HeldValues(
        state.values,
        state.ephemeral,
        journal.objects,
        {**secrets, **shown},
        definitions=journal.workflow.variables.definitions,
        recorded=journal.secrets.received_data,
    )


def answer_to(journal: Journal, question: str) -> QuestionAnswered | None:
    """The recorded answer to a question of an open turn, or of a hook of the run."""
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
    """Record that a person is asked, unless the question is open already."""
    journal.asking.discard(question.id)
    if question.id not in journal.state.questions:
        journal.record(question.id, _asked(question))


def _asked(question: Question) -> QuestionAsked:
    return QuestionAsked(
        question.id,
        question.prompt,
        question.to,
        question.tool,
        payload=question.payload,
        component=question.component,
        display=question.display,
        schema=question.schema,
        due=question.due,
        among=question.among,
    )


def _prompt(payload: Json) -> str:
    """The prompt of a payload, if it has one."""
    said = as_object(payload) or {}
    words = (said.get(key) for key in ("prompt", "question", "message", "title"))
    return next((word for word in words if isinstance(word, str)), "")


def as_json(value: Any) -> Json:
    """A value from user code as JSON, copied.

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
    """Refuse a value that is too large for the log."""
    size = len(msgspec.json.encode(value))
    if size > MOST_BYTES:
        raise TypeError(
            f"It gave {size:,} bytes of JSON, and {MOST_BYTES:,} are the most that a log keeps of "
            "one result. Keep it elsewhere, and give where it is."
        )
    return value


T = TypeVar("T")


def opened(journal: Journal, value: T, names: Collection[str] | None = None) -> T:
    """A recorded value with secrets in clear: those of these names, or all that the run has. A
    secret behind a closed gate stays a mark."""
    if not journal.has_secrets or names == NO_NAMES:
        return value
    secrets, values = journal.secrets, journal.state.values
    wanted = secrets.names if names is None else names
    return cast(T, secrets.opened(value, [each for each in wanted if each in values]))


def exposed(journal: Journal, loaded: LoadedWorkflow, agent: str) -> frozenset[str]:
    """The secrets that the agent's prompt shows, by its exposure or its sources, and that the run
    has: a closed gate withholds others."""
    if not journal.has_secrets:
        return NO_NAMES
    secrets, values = journal.secrets, journal.state.values
    exposure = journal.workflow.variables.exposures.get(agent)
    names = [*(names_of(exposure) if exposure is not None else ()), *_sourced(loaded, agent)]
    return frozenset(name for name in names if name in secrets and name in values)


def _sourced(loaded: LoadedWorkflow, agent: str) -> list[str]:
    """The variables that are sources of the agent's context."""
    staff = loaded.staff.get(agent)
    context = staff.context if staff is not None else None
    sources = context.sources if isinstance(context, Assembly) else ()
    return [name for each in sources if isinstance(each, VariableSource) for name in each.names]


NO_NAMES: frozenset[str] = frozenset()


log = logging.getLogger("turnloom.runs")

J = TypeVar("J")


async def side_by_side(
    jobs: Sequence[J], call: Callable[[J], Awaitable[T]]
) -> AsyncGenerator[tuple[J, T]]:
    """Run `call` for all jobs concurrently, and yield each job with its result as it completes.

    An exception of a call is raised as it is, and the other calls are cancelled. Calls that
    complete together come in their order.
    """
    going = {asyncio.ensure_future(call(job)): job for job in jobs}
    left = set(going)
    try:
        while left:
            await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for task in [task for task in going if task in left and task.done()]:
                left.discard(task)
                yield going[task], task.result()
    finally:
        await _cut_off(left)


async def _cut_off(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel calls that nothing waits for; log the errors they end with."""
    for task in tasks:
        task.cancel()
    for error in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(error, Exception):
            log.warning(
                "A call that was cut off failed: %s: %s", error_name(error), error_text(error)
            )


class ConcurrentCalls:
    """The tool calls of one answer. A call that asked a person waits for the answer here while
    other calls run, which may take long."""

    def __init__(self, journal: Journal, calls: int) -> None:
        self._journal = journal
        self._going = calls
        self._changed = asyncio.Event()

    @contextmanager
    def going(self) -> Generator[None]:
        """The scope of one call, from its beginning to its end."""
        try:
            yield
        finally:
            self._going -= 1
            self._tell()

    async def is_answered(self, question: str) -> bool:
        """Wait until a question is closed, or until no other call runs; returns whether it is
        closed."""
        self._going -= 1
        self._tell()
        try:
            if self._going:
                await self._until_closed(question)
        finally:
            self._going += 1
        return question not in self._journal.state.questions

    async def _until_closed(self, question: str) -> None:
        journal = self._journal
        await journal.commit()  # store the question
        journal.on_closed.append(self._tell)
        try:
            while self._going and question in journal.state.questions:
                await self._changed.wait()
        finally:
            journal.on_closed.remove(self._tell)
        await journal.commit()  # store the answer before the call acts on it

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
