"""Call an agent's engine and its tools, until the agent is done."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.events import (
    AgentOutput,
    AgentText,
    CallsSettled,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TransferChosen,
)
from turnloom.agents.logic.answers import (
    as_answer,
    as_plain,
    interpret,
    interpret_draft,
    interpret_made,
    mended,
    said_by,
)
from turnloom.agents.logic.dialogues import Outcome, exchange_of, request
from turnloom.agents.logic.endings import cut_off, unanswered
from turnloom.agents.logic.model_errors import without_keys
from turnloom.agents.spec import Engine, Exchange, Products, Task, ToolCall
from turnloom.assembly.events import FrameAssembled
from turnloom.assembly.logic.labels import together
from turnloom.board.service import Witness
from turnloom.board.spec import Audience, BoardHandle
from turnloom.errors import ContextTooLarge
from turnloom.guards.logic.windows import POLICY, CallSize, call_size, describe_size
from turnloom.kernel.contained import error_name
from turnloom.kernel.digests import digest
from turnloom.kernel.values import Json, as_data, as_object, error_text
from turnloom.log.spec import Fact
from turnloom.runs.brief import Sinks, TurnOutcome
from turnloom.runtime.around.guards import (
    begin_model_call,
    begin_tool_calls,
    end_model_call,
    end_tool_call,
    heed_window,
    in_time,
    window_of,
    within,
)
from turnloom.runtime.around.message_hooks import MessageHooks
from turnloom.runtime.calls import (
    Call,
    Caller,
    ConcurrentCalls,
    Parked,
    Waiting,
    as_json,
    ask,
    opened,
    park,
    side_by_side,
)
from turnloom.runtime.engine_calls import BoardReads, Retries, ask_engine, engine_call
from turnloom.runtime.journal import Diverged, Journal, idempotency_key
from turnloom.runtime.turn.tools import OfferedTool
from turnloom.runtime.user_code import stack_of
from turnloom.variables.events import ContextChanged, ContextMissed, ContextRefused
from turnloom.variables.logic.types import same

# How often in one turn an engine may make a mistake: a failed tool, or an invalid output.
MISTAKES = 3

# The variables that an engine writes, apart from its answer.
WRITTEN = (ContextChanged, ContextMissed, ContextRefused)

# Characters of an error that an engine is shown.
TOLD = 2000


class ToolJob(NamedTuple):
    """A tool call, with its key."""

    key: str
    offer: OfferedTool
    arguments: dict[str, Json]


class EngineCall(msgspec.Struct, frozen=True):
    """One engine in a turn: itself, with components around it, whether it is the last one, the
    audience of what the turn was shown, its secrets, the context window of every model if a setting
    gives it, and the board as the agent may read it."""

    engine: Engine
    wrapped: Engine
    is_last: bool = True
    audience: Audience = ()
    secrets: frozenset[str] = frozenset()
    window: int = 0
    board: Callable[[Witness], BoardHandle] | None = None


class ModelCalls:
    """The calls of one engine in one turn, from the log or made now."""

    def __init__(
        self,
        journal: Journal,
        asked: EngineCall,
        task: Task,
        offers: Mapping[str, OfferedTool],
        hooks: MessageHooks | None,
        sinks: Sinks,
        scope: str,
    ) -> None:
        self._journal = journal
        self._asked = asked
        self._task = task
        self._offers = offers
        self._hooks = hooks
        self._sinks = sinks
        self._scope = scope
        # The audience that may see everything the turn was shown and its engines read so far.
        self.audience = asked.audience
        self._agent = journal.workflow.agents[task.agent]
        self._output = journal.workflow.outputs.get(task.agent)
        self._products = journal.workflow.products.get(task.agent)
        self._plain = self._output is None and self._products is None and hooks is None
        self._drafts = self._products is None and not asked.is_last

    async def answer(self, shown: FrameAssembled, before: Sequence[Exchange] = ()) -> TurnOutcome:
        """Call the model until the agent is done; `before` holds the exchanges of earlier engines
        in this turn.

        Raises:
            BudgetExceeded: the budget does not suffice; that is recorded, and the run fails.
        """
        exchanges: list[Exchange] = [*before]
        mistakes = rounds = 0
        for number in count():
            key = model_key(self._scope, number)
            facts = await self._ask(key, number, shown, exchanges)
            answered = facts[0]
            if not isinstance(answered, ModelAnswered):
                assert isinstance(answered, ModelFailed)
                return TurnOutcome(f"{answered.error}: {answered.message}")
            self.audience = self._joined(answered.visibility)
            if self._plain and not answered.calls:
                return TurnOutcome("", facts)  # plain text: nothing follows
            if failure := cut_off(answered) or self._has_called_enough(answered, rounds):
                return TurnOutcome(failure)
            exchange = await self._follow(key, facts)
            if exchange is None:
                return TurnOutcome("", facts)
            if failure := unanswered(answered) if exchange.problem else "":
                return TurnOutcome(failure)
            exchanges += (*answered.before, exchange)
            rounds += bool(exchange.calls)
            problem = exchange.problem or _failed(exchange)
            mistakes += bool(problem)
            if mistakes > MISTAKES:
                return TurnOutcome(f"TooManyMistakes: {problem}")
        raise AssertionError("counting has no end")

    def _has_called_enough(self, answered: ModelAnswered, rounds: int) -> str:
        """The error of a turn that calls tools after its last round of calls.

        A handoff can always be chosen: it ends the turn.
        """
        called = [self._offers.get(call.tool) for call in answered.calls]
        handed_over = any(offer is not None and offer.transfer for offer in called)
        most = self._agent.max_tool_rounds
        if not called or handed_over or rounds < most:
            return ""
        return f"TooManyRounds: it called tools again after {most} rounds of calls"

    async def _ask(
        self, key: str, number: int, shown: FrameAssembled, exchanges: Sequence[Exchange]
    ) -> Sequence[Fact]:
        reads, name = BoardReads(), type(self._asked.engine).__name__
        retries = Retries(self._journal, key, self._task, name)
        task = self._call(number, exchanges, reads, retries)
        call = self._engine_call(key, task)

        async def effect() -> Sequence[Fact]:
            async with self._journal.limits.hold(self._journal, key, task):
                return await answered()

        async def answered() -> Sequence[Fact]:
            try:
                window = window_of(self._asked.engine, task.model, self._asked.window)
                if window:
                    size = self._size(shown, exchanges)
                    await heed_window(self._journal, f"{key}/window", task, size, window=window)
                try:
                    facts = await self._answered(key, task, call, reads)
                finally:
                    retries.end()
                if self._journal.has_secrets:
                    facts = self._masked_names(facts)
            except Exception as error:  # noqa: BLE001 - whatever an engine raises is recorded
                facts = (self._failure(task, error, shown, exchanges),)
            return facts if call is None else (*facts, *call.facts())

        intent = ModelCalled(request(shown.digest, exchanges), task.turn, task.agent, name)
        begin_model_call(self._journal, key, task.model, shown.tokens, exchanges=exchanges)
        try:
            facts = await self._journal.once(key, effect, intent=intent)
        except Diverged as error:
            return (ModelFailed(task.turn, task.agent, "Diverged", str(error)),)
        except Parked as parked:
            park(self._journal, parked.question)
        end_model_call(self._journal, key, task.model, facts)
        return facts

    def _size(self, shown: FrameAssembled, exchanges: Sequence[Exchange]) -> CallSize:
        return call_size(shown, self._journal.state.views[shown.view][1], exchanges)

    def _failure(
        self, task: Task, error: Exception, shown: FrameAssembled, exchanges: Sequence[Exchange]
    ) -> ModelFailed:
        """The fact of a failed call; if it was too large, with the sizes of what it was shown."""
        message = without_keys(error_text(error))
        if isinstance(error, ContextTooLarge):
            message = f"{message} {describe_size(self._size(shown, exchanges))} {POLICY}"
        stack = without_keys(stack_of(error, self._journal.secrets))
        return ModelFailed(task.turn, task.agent, error_name(error), message, stack=stack)

    def _engine_call(self, key: str, task: Task) -> Call | None:
        """The call of the engine, if it takes the run's variables."""
        takes = getattr(self._asked.engine, "takes_variables", False)
        return engine_call(self._journal, key, self._asked.wrapped, task) if takes else None

    async def _answered(
        self, key: str, task: Task, call: Call | None, reads: BoardReads
    ) -> Sequence[Fact]:
        """The facts of an answer."""
        asking = call.carry_out({}) if call else ask_engine(self._asked.wrapped, task)
        try:
            answer, replaced = mended(await in_time(self._journal, key, asking))
        finally:
            reads.end()
        if self._products is None:
            facts = self._interpreted(task, answer)
        else:
            facts = await self._published(task, answer, reads, self._products)
        if not replaced and not reads.ids:
            return facts
        read = {"read": reads.ids, "visibility": reads.visibility}
        answered = msgspec.structs.replace(facts[0], replaced=replaced, **read)
        return (answered, *facts[1:])

    async def _published(
        self, task: Task, answer: Any, reads: BoardReads, products: Products
    ) -> Sequence[Fact]:
        """The facts of an answer that may publish artifacts."""
        answer = as_answer(task, answer)
        is_last, audience = self._asked.is_last, self._joined(reads.visibility)
        made = await products.read(answer, audience, is_last=is_last)
        return interpret_made(task, answer, self._journal.workflow, made)

    def _interpreted(self, task: Task, answer: Any) -> Sequence[Fact]:
        """The facts of an answer in words or data."""
        if self._drafts:
            return interpret_draft(task, as_plain(answer))
        facts = interpret(task, as_plain(answer), self._journal.workflow, self._output)
        return _unsaid(facts) if self._hooks is not None else facts

    def _joined(self, read: Audience) -> Audience:
        """The audience of what the turn was shown and read before, and of what was read now."""
        return together((*self.audience, *read)) if read else self.audience

    def _masked_names(self, facts: Sequence[Fact]) -> Sequence[Fact]:
        """The facts of an answer, with names of unknown tools masked."""
        answered, *rest = facts
        if not isinstance(answered, ModelAnswered) or not answered.calls:
            return facts
        received, offers = self._journal.secrets.received, self._offers
        names = [
            each.tool if each.tool in offers else received(each.tool) for each in answered.calls
        ]
        pairs = zip(answered.calls, names, strict=True)
        calls = tuple(msgspec.structs.replace(call, tool=name) for call, name in pairs)
        return msgspec.structs.replace(answered, calls=calls), *rest

    def _call(
        self, number: int, exchanges: Sequence[Exchange], reads: BoardReads, retries: Retries
    ) -> Task:
        """The task of a call, numbered from 0; it notes what the engine reads, and its failed
        attempts."""
        task, bind = self._task, self._asked.board
        board = None if bind is None else bind(reads.note)
        if not number:
            return msgspec.structs.replace(
                task, exchanges=tuple(exchanges), board=board, retry=retries.note
            )
        return msgspec.structs.replace(
            task,
            board=board,
            retry=retries.note,
            number=task.number + number,
            key=idempotency_key(self._journal, model_key(self._scope, number)),
            exchanges=tuple(exchanges),
            say=task.say if self._hooks is not None else self._sinks(number + 1),
        )

    async def _follow(self, key: str, facts: Sequence[Fact]) -> Exchange | None:
        """The input of the next model call; None if the agent is done."""
        answered = facts[0]
        assert isinstance(answered, ModelAnswered)
        words = [fact for fact in facts[1:] if not isinstance(fact, WRITTEN)]
        if self._drafts and answered.raw:
            words = [AgentText(self._task.turn, self._task.agent, answered.raw)]  # not recorded
        elif self._hooks is not None and answered.raw and not words:
            words = await self._say(key, answered.raw, self._hooks)
        if answered.calls:
            outcomes = await self._call_all(key, answered.calls)
        else:
            outcomes = await self._invoke(key, facts)
        return None if outcomes is None else exchange_of(answered, words, outcomes)

    async def _say(self, key: str, text: str, hooks: MessageHooks) -> list[Fact]:
        """Let hooks rewrite a text, and record it as the agent's."""
        task, workflow = self._task, self._journal.workflow
        text = await hooks.outgoing(key, task.turn, task.agent, text)
        if not text:
            return []
        return [self._journal.keep(f"{key}/said", lambda: said_by(task, text, workflow))]

    async def _call_all(self, key: str, calls: Sequence[ToolCall]) -> list[Outcome] | None:
        """The outcomes of the called tools; None after a handoff."""
        jobs = [
            ToolJob(f"{key}/tool.{n}", offer, call.arguments)
            for n, call in enumerate(calls)
            if (offer := self._offers.get(call.tool)) is not None and offer.callee is not None
        ]
        await self._run(jobs)
        if self._transferred(key, calls):
            return None
        return [self._ended(f"{key}/tool.{n}", call) for n, call in enumerate(calls)]

    def _transferred(self, key: str, calls: Sequence[ToolCall]) -> bool:
        task = self._task
        for number, call in enumerate(calls):
            offer = self._offers.get(call.tool)
            if offer is not None and (chosen := offer.transfer) is not None:
                fact = TransferChosen(task.turn, task.agent, chosen.rule, chosen.target)
                self._journal.keep(f"{key}/tool.{number}.0", lambda fact=fact: fact)
                return True
        return False

    def _ended(self, key: str, call: ToolCall) -> Outcome:
        outcome = self._journal.outcome(key) or self._journal.complete(key, [self._unknown(call)])
        return _outcome(outcome)

    def _unknown(self, call: ToolCall) -> ToolFailed:
        offered = ", ".join(self._offers) or "none"
        message = f"Unknown tool {call.tool!r}. Offered: {offered}."
        return ToolFailed(
            self._task.turn, self._task.agent, call.tool, "UnknownTool", message=message
        )

    async def _invoke(self, key: str, facts: Sequence[Fact]) -> list[Outcome]:
        """Call the tools that take the agent's output, if it gave one; their outcomes."""
        given = [fact.output for fact in facts if isinstance(fact, AgentOutput)]
        auto = [offer for offer in self._offers.values() if offer.auto] if given else []
        jobs = [
            ToolJob(f"{key}/auto.{n}", offer, _arguments(offer, given[0]))
            for n, offer in enumerate(auto)
        ]
        await self._run(jobs)
        return [_outcome(self._journal.outcome(job.key)) for job in jobs]

    async def _run(self, jobs: Sequence[ToolJob]) -> None:
        """Call the tools of an answer side by side; when all are done, let what they wrote take
        effect in the order of the calls.

        Raises:
            Waiting: one of them asked a person.
            BudgetExceeded: the budget does not suffice for all of them.
        """
        undone = [job for job in jobs if not self._journal.outcome(job.key)]
        alone = len(jobs) == 1
        made = await self._call_each(undone, alone=alone) if undone else {}
        if len(jobs) > 1:
            self._settle([job.key for job in jobs], made)

    async def _call_each(
        self, jobs: Sequence[ToolJob], *, alone: bool
    ) -> dict[str, Mapping[str, Any]]:
        """Record what each call leaves as soon as it is done; returns the objects it made."""
        journal = self._journal
        begin_tool_calls(journal, [job.key for job in jobs])
        left = [self._begin(job) for job in jobs]
        await journal.commit()
        made: dict[str, Mapping[str, Any]] = {}
        waiting: list[ToolJob] = []
        abreast = ConcurrentCalls(journal, len(left))
        carry_out = partial(self._carry_out, abreast, made, alone)
        async with aclosing(side_by_side(left, carry_out)) as ended:
            async for job, facts in ended:
                if facts is None:
                    waiting.append(job)
                    continue
                journal.complete(job.key, facts, derives=alone)
                end_tool_call(journal, job.key)
                if len(left) > 1:  # the others may take long
                    await journal.commit()
        if waiting:
            raise Waiting(waiting[0].key)
        if len(left) > 1:
            await journal.world.reach(jobs[0].key.rpartition("/")[0])
        return made

    def _settle(self, keys: Sequence[str], made: Mapping[str, Mapping[str, Any]]) -> None:
        """Apply the writes of an answer's calls, and what derives from their results, in the order
        of the calls."""
        journal, task = self._journal, self._task
        settled = f"{keys[0].rpartition('/')[0]}/settled"
        if journal.recorded(settled) is not None:
            return
        cause = journal.record(settled, CallsSettled(task.turn, task.agent)).seq
        for key in keys:
            facts = journal.outcome(key)
            self._write(key, _outcome(facts).writes, made.get(key, {}), cause)
            for number in range(len(facts)):
                journal.derive(f"{key}.{number}")

    def _write(
        self, key: str, writes: Sequence[ContextChanged], made: Mapping[str, Any], cause: int
    ) -> None:
        """Record the writes of a call that change something."""
        journal, values = self._journal, self._journal.state.values
        for number, write in enumerate(writes):
            if _is_idle(write, values):
                continue
            if write.ephemeral and write.name in made:
                journal.objects[write.name, key] = made[write.name]
            fact = msgspec.structs.replace(write, previous=values.get(write.name))
            journal.record(f"{key}.w{number}", fact, write.writer, cause)

    def _begin(self, job: ToolJob) -> ToolJob:
        """The recorded call: code that changed since does not change its arguments."""
        called = self._journal.keep(f"{job.key}?", lambda: _tool_called(self._task, job))
        return job._replace(arguments=called.arguments)

    def _opened(self, job: ToolJob) -> dict[str, Json]:
        """The arguments of a call, with the secrets that the agent was shown in clear."""
        return opened(self._journal, job.arguments, self._asked.secrets)

    async def _carry_out(
        self,
        abreast: ConcurrentCalls,
        made: dict[str, Mapping[str, Any]],
        alone: bool,
        job: ToolJob,
    ) -> Sequence[Fact] | None:
        """What one call leaves; None if it waits for a person. It is entered again if the answer
        comes while others run."""

        async def effect() -> Sequence[Fact]:
            call, outcome = await self._enter(job)
            made[job.key] = call.draft.made
            return _left_by(call, outcome, alone=alone)

        with abreast.going():
            while True:
                try:
                    return await self._journal.perform(job.key, effect)
                except Parked as parked:
                    question = parked.question
                ask(self._journal, question)
                if not await abreast.is_answered(question.id):
                    return None

    async def _enter(self, job: ToolJob) -> tuple[Call, Outcome]:
        """The outcome of a call, entered from its beginning.

        Raises:
            Parked: it asked a person.
        """
        turn, agent, name = self._task.turn, self._task.agent, job.offer.schema.name
        assert job.offer.callee is not None
        seconds = within(self._journal, job.offer.timeout)
        caller = Caller(job.key, f"tool:{name}", seconds, effect=job.key)
        call = Call(self._journal, caller, job.offer.callee)
        try:
            given = as_json(await call.carry_out(self._opened(job)))
            return call, ToolReturned(turn, agent, name, given)
        except Exception as error:  # noqa: BLE001 - the engine is shown whatever a tool raises
            message = self._journal.secrets.masked(error_text(error))[:TOLD]
            stack = stack_of(error, self._journal.secrets)
            return call, ToolFailed(
                turn, agent, name, error_name(error), message=message, stack=stack
            )


def _unsaid(facts: Sequence[Fact]) -> Sequence[Fact]:
    """An answer whose text waits for hooks to rewrite it."""
    answered, *rest = facts
    if not isinstance(answered, ModelAnswered) or not any(isinstance(f, AgentText) for f in rest):
        return facts
    raw = "".join(fact.text for fact in rest if isinstance(fact, AgentText))
    return (msgspec.structs.replace(answered, raw=raw),)


def model_key(scope: str, number: int) -> str:
    """The key of a model call of a turn, or of one engine's part of it, from 0."""
    return f"{scope}/model#{number + 1}" if number else f"{scope}/model"


def _left_by(call: Call, outcome: Outcome, *, alone: bool) -> list[Fact]:
    """What a call leaves. The writes of a lone call take effect at once; otherwise the outcome
    carries them until all calls are done."""
    facts = [*call.facts()]
    if alone:
        return [*facts, outcome]
    writes = tuple(fact for fact in facts if isinstance(fact, ContextChanged))
    others = [fact for fact in facts if not isinstance(fact, ContextChanged)]
    return [*others, msgspec.structs.replace(outcome, writes=writes)]


def _is_idle(write: ContextChanged, values: Mapping[str, Json]) -> bool:
    """Whether a write changes nothing any more."""
    if write.removed:
        return write.name not in values
    return not write.ephemeral and write.name in values and same(values[write.name], write.value)


def _outcome(facts: Sequence[Fact]) -> Outcome:
    """The outcome of a tool call, from what is recorded under its key."""
    last = facts[-1]
    assert isinstance(last, ToolReturned | ToolFailed)
    return last


def _failed(exchange: Exchange) -> str:
    return next((result.error for result in exchange.results if result.error), "")


def _tool_called(task: Task, job: ToolJob) -> ToolCalled:
    name, arguments = job.offer.schema.name, job.arguments
    asked = digest(as_data([name, arguments]))
    return ToolCalled(asked, task.turn, task.agent, name, arguments=arguments)


def _arguments(offer: OfferedTool, output: Json) -> dict[str, Json]:
    """The arguments that an output gives a tool: by name, or the whole for its only parameter."""
    wanted = list(offer.schema.parameters.get("properties", {}))
    given = as_object(output) or {}
    if offer.schema.parameters.get("additionalProperties") is True:
        return given
    found = {name: given[name] for name in wanted if name in given}
    return found or ({wanted[0]: output} if len(wanted) == 1 else {})
