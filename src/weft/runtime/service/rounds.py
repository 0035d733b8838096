"""An agent's answer: its engine is asked and tools are called, until the agent is done."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from weft.agents.events import (
    AgentOutput,
    AgentText,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    OutputRefused,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TransferChosen,
)
from weft.agents.logic.answers import interpret, said_by
from weft.agents.spec import Engine, Exchange, Question, Task, ToolCall, ToolResult
from weft.kernel.digests import chain, digest
from weft.kernel.values import Json, as_data, as_object, said
from weft.log.spec import Fact
from weft.runtime.service.calls import Call, Caller, Parked, as_json, park
from weft.runtime.service.journal import Diverged, Journal
from weft.runtime.service.messages import MessageHooks
from weft.runtime.service.offers import Offer
from weft.variables.logic.exposure import names_of

# How often in one turn an engine is told that a tool failed or that its output is wrong.
MISTAKES = 3

# How many characters of an error an engine is told.
TOLD = 2000


class Job(NamedTuple):
    """A tool to be called, under its key."""

    key: str
    offer: Offer
    arguments: dict[str, Json]


class Rounds:
    """The calls of one turn, found on record or made."""

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        task: Task,
        offers: Mapping[str, Offer],
        hooks: MessageHooks,
    ) -> None:
        self._journal = journal
        self._engine = engine
        self._task = task
        self._offers = offers
        self._hooks = hooks
        self._rewrites = hooks.has(task.agent, "process_message_before_send")
        self._agent = journal.workflow.agents[task.agent]
        self._output = journal.workflow.outputs.get(task.agent)

    async def answer(self, frame: str) -> str:
        """Ask until the agent is done; what went wrong, if anything did."""
        exchanges: list[Exchange] = []
        mistakes = 0
        for number in count():
            key = model_key(self._task.turn, number)
            facts = await self._ask(key, number, frame, exchanges)
            if isinstance(facts[0], ModelFailed):
                return f"{facts[0].error}: {facts[0].message}"
            exchange = await self._follow(key, facts)
            if exchange is None:
                return ""
            exchanges.append(exchange)
            problem = exchange.problem or _failed(exchange)
            mistakes += bool(problem)
            if mistakes > MISTAKES:
                return f"TooManyMistakes: {problem}"
            if number + 1 == self._agent.max_tool_rounds and exchange.calls:
                return f"TooManyRounds: it called tools in {number + 1} rounds without an answer"
        raise AssertionError("counting has no end")

    async def _ask(
        self, key: str, number: int, frame: str, exchanges: Sequence[Exchange]
    ) -> Sequence[Fact]:
        before = self._task
        task = before if not number else _later(before, number, exchanges, self._journal)

        async def effect() -> Sequence[Fact]:
            try:
                answer = await self._engine(task)
                facts = interpret(task, answer, self._journal.workflow, self._output)
                return _unsaid(facts) if self._rewrites else facts
            except (Exception, SystemExit) as error:  # noqa: BLE001 - all of it is recorded
                return (ModelFailed(task.turn, task.agent, type(error).__name__, said(error)),)

        request = chain(frame, *(digest(as_data(each)) for each in exchanges)) if number else frame
        intent = ModelCalled(request, task.turn, task.agent, type(self._engine).__name__)
        try:
            return await self._journal.once(key, effect, intent=intent)
        except Diverged as error:
            return (ModelFailed(task.turn, task.agent, "Diverged", str(error)),)

    async def _follow(self, key: str, facts: Sequence[Fact]) -> Exchange | None:
        """What comes of an answer: nothing more, or what the engine is told in the next call."""
        answered = facts[0]
        assert isinstance(answered, ModelAnswered)
        text = next((getattr(fact, "text", "") for fact in facts[1:]), "") or answered.raw
        if self._rewrites and answered.raw and len(facts) == 1:
            text = await self._say(key, text)
        if answered.calls:
            results = await self._call_all(key, answered.calls)
            return None if results is None else Exchange(text, answered.calls, tuple(results))
        for fact in facts[1:]:
            if isinstance(fact, OutputRefused):
                return Exchange(text, problem=fact.problem)
            if isinstance(fact, AgentOutput):
                return await self._invoke(key, fact.output)
        return None

    async def _say(self, key: str, text: str) -> str:
        """Let hooks rewrite a text, and put on record that the agent said it so."""
        task, workflow = self._task, self._journal.workflow
        text = await self._hooks.outgoing(key, task.turn, task.agent, text)
        if text:
            self._journal.keep(f"{key}/said", lambda: said_by(task, text, workflow))
        return text

    async def _call_all(self, key: str, calls: Sequence[ToolCall]) -> list[ToolResult] | None:
        """The results of the tools that were called; nothing when the turn was handed over."""
        jobs = [
            Job(f"{key}/tool.{n}", offer, call.arguments)
            for n, call in enumerate(calls)
            if (offer := self._offers.get(call.tool)) is not None and offer.callee is not None
        ]
        await self._run(jobs)
        if self._transferred(key, calls):
            return None
        return [self._result(f"{key}/tool.{n}", call) for n, call in enumerate(calls)]

    def _transferred(self, key: str, calls: Sequence[ToolCall]) -> bool:
        task = self._task
        for number, call in enumerate(calls):
            offer = self._offers.get(call.tool)
            if offer is not None and (chosen := offer.transfer) is not None:
                fact = TransferChosen(task.turn, task.agent, chosen.rule, chosen.target)
                self._journal.keep(f"{key}/tool.{number}.0", lambda fact=fact: fact)
                return True
        return False

    def _result(self, key: str, call: ToolCall) -> ToolResult:
        outcome = self._journal.outcome(key) or self._journal.complete(key, [self._unknown(call)])
        fact = outcome[-1]
        if isinstance(fact, ToolReturned):
            return ToolResult(fact.result)
        assert isinstance(fact, ToolFailed)
        return ToolResult(error=f"{fact.error}: {fact.message}")

    def _unknown(self, call: ToolCall) -> ToolFailed:
        offered = ", ".join(self._offers) or "none"
        message = f"There is no tool {call.tool!r} here. Offered: {offered}."
        return ToolFailed(self._task.turn, self._task.agent, call.tool, "UnknownTool", message)

    async def _invoke(self, key: str, output: Json) -> Exchange | None:
        """Call the tools that take the agent's output; what is wrong is told to the engine."""
        jobs = [
            Job(f"{key}/auto.{n}", offer, _arguments(offer, output))
            for n, offer in enumerate(each for each in self._offers.values() if each.auto)
        ]
        await self._run(jobs)
        for job in jobs:
            failed = self._journal.outcome(job.key)[-1]
            if isinstance(failed, ToolFailed):
                problem = f"Tool {failed.tool} failed with it: {failed.error}: {failed.message}"
                return Exchange(as_data(output), problem=problem)
        return None

    async def _run(self, jobs: Sequence[Job]) -> None:
        """Call tools side by side; what they leave is recorded in the order of the calls.

        Raises:
            Waiting: one of them asked a person.
        """
        journal = self._journal
        left = [job for job in jobs if not journal.outcome(job.key)]
        if not left:
            return
        for job in left:
            journal.begin(job.key, _tool_called(self._task, job))
        await journal.commit()
        questions: list[Question] = []
        async with asyncio.TaskGroup() as group:
            for job, going in [(job, group.create_task(self._carry_out(job))) for job in left]:
                call, fact = await going
                if fact is not None:
                    journal.complete(job.key, [*call.facts(), fact])
                    await journal.commit() if job is not left[-1] else None
                elif call.question is not None:
                    questions.append(call.question)
        if questions:
            park(journal, questions[0])

    def _opened(self, job: Job) -> dict[str, Json]:
        """The arguments of a call; a secret that the agent was shown is itself again."""
        exposure = self._journal.workflow.variables.exposures.get(self._task.agent)
        if exposure is None or not self._journal.secrets:
            return job.arguments
        return self._journal.secrets.opened(job.arguments, names_of(exposure))

    async def _carry_out(self, job: Job) -> tuple[Call, Fact | None]:
        """One call to its end; nothing is to be recorded when it waits for a person."""
        turn, agent, name = self._task.turn, self._task.agent, job.offer.schema.name
        assert job.offer.callee is not None
        caller = Caller(job.key, f"tool:{name}", job.offer.timeout)
        call = Call(self._journal, caller, job.offer.callee)
        try:
            given = as_json(await call.carry_out(self._opened(job)))
            return call, ToolReturned(turn, agent, name, given)
        except Parked:
            return call, None
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is told to the engine
            message = self._journal.secrets.masked(said(error))[:TOLD]
            return call, ToolFailed(turn, agent, name, type(error).__name__, message)


def _unsaid(facts: Sequence[Fact]) -> Sequence[Fact]:
    """An answer whose text is kept back for hooks to rewrite."""
    answered, *rest = facts
    if not isinstance(answered, ModelAnswered) or not any(isinstance(f, AgentText) for f in rest):
        return facts
    raw = "".join(fact.text for fact in rest if isinstance(fact, AgentText))
    return (msgspec.structs.replace(answered, raw=raw),)


def model_key(turn: int, number: int) -> str:
    """The key of a model call of a turn, from 0."""
    return f"t{turn}/model#{number + 1}" if number else f"t{turn}/model"


def _later(task: Task, number: int, exchanges: Sequence[Exchange], journal: Journal) -> Task:
    key = f"{journal.state.run}/{model_key(task.turn, number)}"
    return msgspec.structs.replace(
        task, number=task.number + number, key=key, exchanges=tuple(exchanges)
    )


def _failed(exchange: Exchange) -> str:
    return next((result.error for result in exchange.results if result.error), "")


def _tool_called(task: Task, job: Job) -> ToolCalled:
    name, arguments = job.offer.schema.name, job.arguments
    request = digest(as_data([name, arguments]))
    return ToolCalled(request, task.turn, task.agent, name, arguments)


def _arguments(offer: Offer, output: Json) -> dict[str, Json]:
    """The arguments that an output gives a tool: by name, or the whole for its only one."""
    wanted = list(offer.schema.parameters.get("properties", {}))
    given = as_object(output) or {}
    found = {name: given[name] for name in wanted if name in given}
    return found or ({wanted[0]: output} if len(wanted) == 1 else {})
