"""Take a step of a flow: call its function, or let its agent take a turn."""

from collections.abc import Callable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any, cast

import msgspec
from pydantic import BaseModel

from turnloom.agents.events import AgentOutput, AgentText, TurnFinished
from turnloom.agents.logic.outputs.models import read_program_model
from turnloom.agents.spec import USER, PreparedRequest, ToolSchema
from turnloom.assembly.logic import piece, spoken
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.spec import ChosenProvider, Message
from turnloom.assembly.spec.sources import Assembly
from turnloom.board.spec import Artifact
from turnloom.errors import NoCandidates
from turnloom.flow.events import StepCompensated, StepCompleted
from turnloom.flow.logic.flowing import FlowForm, charge_of
from turnloom.flow.logic.states import StateChange, StateCopies, StateModel
from turnloom.flow.spec.nodes import StepNode
from turnloom.flow.spec.progress import Progress, Step
from turnloom.flow.spec.steps import AgentStep, StepContext, StepInfo, function_of
from turnloom.guards.events import SelectionMade
from turnloom.kernel.contained import called, error_name
from turnloom.kernel.values import Json, as_data, error_text, writable
from turnloom.log.spec import Fact
from turnloom.runs.brief import (
    Choice,
    DeclaredContexts,
    Settlement,
    Sinks,
    TextSink,
    TurnOutcome,
    contexts_of,
)
from turnloom.runtime.around.guards import STEP, in_time, settle
from turnloom.runtime.around.selection import ChoiceRequest
from turnloom.runtime.calls import Call, Caller, Parked, opened, park
from turnloom.runtime.drive.live import LiveRun
from turnloom.runtime.user_code import ask_user_code
from turnloom.runtime.world import CallFailed, RecordedError
from turnloom.variables.spec import Context

# Seconds that a step may take to build a request, or to apply an answer.
DEADLINE = 60.0


class StepCallee:
    """A step as a callee, called with the state and a context."""

    schema = ToolSchema("step", "", {})

    def __init__(
        self, function: Callable[..., Any], state: Any, about: StepInfo, *, takes_context: bool
    ) -> None:
        self._function = function
        self._state = state
        self._about = about
        self._takes_context = takes_context
        self.may_ask = iscoroutinefunction(function)

    async def __call__(self, arguments: Mapping[str, Json], context: Context) -> Any:
        """The result of the step."""
        if not self._takes_context:
            return await called(self._function, self._state)
        return await called(self._function, self._state, StepContext(context, self._about))


class TurnFailed(Exception):
    """An agent's turn failed; the error has its own name."""

    def __init__(self, error: str) -> None:
        self.name, _, message = error.partition(": ")
        super().__init__(message)


class Steps:
    """Takes the steps of one run; its caller records their results."""

    def __init__(self, live: LiveRun, workflow: FlowForm) -> None:
        self._live = live
        self._journal = live.journal
        self._workflow = workflow
        self._copies = StateCopies(workflow.states)

    @property
    def states(self) -> StateModel:
        """How states are read and written."""
        return self._workflow.states

    def state(self, written: Mapping[str, Json]) -> Any:
        """The state as steps get it: decoded anew, with secrets in clear."""
        return self._copies.load(opened(self._journal, written))

    def values(self, update: Mapping[str, Json]) -> dict[str, object]:
        """The values that a step changed, with secrets in clear."""
        return self._workflow.states.values(opened(self._journal, update))

    def reduce(
        self, written: Mapping[str, Json], changes: Sequence[Mapping[str, Json]]
    ) -> dict[str, Json]:
        """The fields whose reducers are code, as they are after changes; that code gets secrets.

        Raises:
            InvalidUpdate: the resulting state is invalid.
        """
        return self._workflow.states.reduce(opened(self._journal, written), changes)

    def settle(self, step: Step) -> None:
        """Settle what was reserved for an attempt, unless its turn did. Compensation is not
        charged."""
        is_settled = step.turn and step.turn not in self._journal.state.open
        if not (step.undoes or is_settled):
            settle(self._journal, charge_of(step.number, step.attempt, step.turn), STEP)

    async def call(
        self, step: Step, node: StepNode, written: Mapping[str, Json], about: StepInfo
    ) -> Fact:
        """Call a function step, record what it changes, and return that.

        Raises:
            Waiting: it asked a person.
            Exception: whatever it raises.
        """
        key, state = f"s{step.number}", self.state(written)
        code, seconds, wide = node.step, node.timeout, node.takes_context
        if step.undoes:
            code, seconds, wide = node.compensate, node.undo_seconds, node.undo_takes_context
        callee = StepCallee(function_of(code), state, about, takes_context=wide)
        id = f"{key}/a{step.attempt}"
        caller = Caller(key, f"step:{about.step}", seconds, effect=id)
        call = Call(self._journal, caller, callee)
        left = f"{id}/left"

        async def effect() -> Sequence[Fact]:
            charge = charge_of(step.number, step.attempt, step.turn)
            try:
                given = await in_time(self._journal, charge, call.carry_out({}))
                change = self._read(given, state, lambda: self.state(written))
            except Exception as error:
                raise CallFailed(error, [*call.facts(left)]) from error
            return [*call.facts(id), outcome_of(step, node, change, {})]

        try:
            *writes, came = await self._journal.perform(id, effect, scope=key)
        except Parked as parked:
            park(self._journal, parked.question)
        except CallFailed as failed:
            self._journal.complete(left, failed.facts)
            raise failed.error from failed.error.__cause__
        try:
            made = self._reduced(step, node, written, came)
        except Exception:
            self._journal.complete(left, call.facts(left))
            raise
        self.settle(step)
        return self._journal.complete(id, [*writes, made])[-1]

    def _read(self, given: Any, state: Any, shown: Callable[[], Any]) -> StateChange:
        """The change that a step made, or that is recorded of another run.

        Raises:
            InvalidUpdate: it is none.
        """
        if isinstance(given, StateChange):
            return given._replace(fields=opened(self._journal, given.fields))
        return self.states.read(given, state, shown)

    def _reduced(self, step: Step, node: StepNode, written: Mapping[str, Json], came: Fact) -> Fact:
        """The outcome of a step with the fields that code reduces.

        Raises:
            InvalidUpdate: the resulting state is invalid.
        """
        assert isinstance(came, StepCompleted | StepCompensated)
        sure = came.confidence if isinstance(came, StepCompleted) else None
        change = StateChange(came.update, sure)
        return outcome_of(step, node, change, self.reduce(written, [change.fields]))

    async def turn(
        self, step: Step, node: StepNode, written: Mapping[str, Json], sinks: Sinks
    ) -> Fact:
        """Let a step's agent take a turn, and give what its answer changed.

        Raises:
            Waiting: a person was asked.
            TurnFailed: the agent could not answer.
            Exception: whatever the step makes of the answer raises.
        """
        chosen = await self._choose(step, node, written)
        brief = StepBrief(self, self._live, step, node, written=written, chosen=chosen)
        settlement = await self._live.turns.take(brief, sinks)
        if settlement.error is not None:
            raise settlement.error
        return settlement.facts[-1][1]

    async def _choose(
        self, step: Step, node: StepNode, written: Mapping[str, Json]
    ) -> SelectionMade | None:
        """The agent that a selection chooses for a step.

        Raises:
            NoCandidates: no candidate is left.
        """
        if node.select is None:
            return None
        wanted = ChoiceRequest(node.select.candidates, self.state(written), node.name)
        key = f"s{step.number}/a{step.attempt}/select"
        made = await self._live.selections.choose(key, node.select, wanted)
        if not made.chosen:
            raise NoCandidates(made.notes[-1])
        return made

    def cut_off(self, step: Step, status: str, error: str) -> None:
        """Record that the turn of a step was interrupted."""
        if step.turn in self._journal.state.open:
            fact = TurnFinished(step.turn, step.node, status, error)
            self._journal.record(f"t{step.turn}/end", fact)


def outcome_of(step: Step, node: StepNode, change: StateChange, reduced: dict[str, Json]) -> Fact:
    """The changes of a step or its compensation."""
    if step.undoes:
        return StepCompensated(
            node.name, step.undoes, step.number, step.node, update=change.fields, reduced=reduced
        )
    return completed(step, node, change, reduced)


def completed(
    step: Step, node: StepNode, change: StateChange, reduced: dict[str, Json]
) -> StepCompleted:
    """The fact that a step changed the state, and whether its confidence is high enough."""
    sure, least = change.confidence, node.require_confidence
    is_unsure = least is not None and sure is not None and sure < least
    return StepCompleted(
        node.name,
        step.place,
        step.number,
        step.attempt,
        update=change.fields,
        reduced=reduced,
        confidence=sure,
        is_unsure=is_unsure,
        strand=step.strand,
    )


class StepBrief:
    """The brief of an agent step: it builds the request from the state, and its answer changes the
    state."""

    inputs: tuple[Artifact, ...] = ()
    hears_history = False
    applies_context = True

    def __init__(
        self,
        steps: Steps,
        live: LiveRun,
        step: Step,
        node: StepNode,
        written: Mapping[str, Json],
        chosen: SelectionMade | None,
    ) -> None:
        self.turn = step.turn
        self.agent = node.name
        self.correlation = live.journal.state.run
        self.timeout = node.timeout
        self.about = steps.state(written)
        self._steps = steps
        self._journal = live.journal
        self._step = step
        self._node = node
        self._written = written
        self._streamed = 0
        self._prompt = ""
        self._declared: AgentStep[Any, Any] = node.step
        self._chosen = chosen
        named = live.loaded.staff[node.name].named
        self.engines = (named[chosen.chosen],) if chosen else None

    @property
    def choice(self) -> Choice | None:
        """The step's selection of who answers."""
        selection, chosen = self._node.select, self._chosen
        if selection is None or chosen is None:
            return None
        return Choice(selection, (chosen.category,), chosen.chosen)

    def contexts(self, agent: DeclaredContexts) -> Sequence[ChosenProvider | Assembly | None]:
        """The provider of each engine, else the step's; a selected agent uses the step's."""
        return (agent.context,) if self.engines else contexts_of(agent, agent.context)

    def listen(self, sinks: Sinks) -> Sinks:
        """Send deltas to the step as well."""
        hear = self._declared.on_text
        if hear is None:
            return sinks

        def both(call: int) -> TextSink:
            sink = sinks(call)

            def send(text: str | None) -> None:
                if text is not None:
                    self._streamed += len(text)
                    hear(text)
                sink(text)

            return send

        return both

    async def request(
        self, prepared: PreparedRequest, context: AssembledContext
    ) -> PreparedRequest:
        """The request: the agent's thread, and what the step asks now."""
        said_before = tuple(self._thread)
        received, name = self._journal.secrets.received, self._node.name
        if _holds_context(self._declared):
            built = await _ask(self._declared.build_messages, self.about, context)
            own = [
                Message(0, writable(each.author), received(writable(each.text))) for each in built
            ]
            messages = (*said_before, *own)
            return PreparedRequest(
                messages=messages,
                withheld=context.withheld,
                left_by=f"steps.{name}",
                holds_context=True,
            )
        prompt = received(writable(str(await _ask(self._declared.user_prompt, self.about))))
        self._prompt = prompt
        asked = piece("prompt", f"steps.{name}", spoken(USER, prompt), "what the step asks")
        return PreparedRequest(messages=said_before, pieces=(asked,), left_by=f"threads.{name}")

    @property
    def _thread(self) -> Sequence[Message]:
        progress: Progress = self._journal.state.progress
        return progress.threads.get(self._declared.thread or "", ())

    async def settle(self, outcome: TurnOutcome) -> Settlement:
        """The change that the answer makes; an error fails the step, not the turn."""
        if outcome.error:
            return Settlement(error=outcome.cause or TurnFailed(outcome.error))
        try:
            change, reduced = await self._change(outcome.facts, outcome.context)
        except Exception as error:  # noqa: BLE001 - fails the step
            return Settlement(error=error)
        fact = completed(self._step, self._node, change, reduced)
        if self._declared.thread is not None:
            said = self._said(outcome.facts)
            fact = msgspec.structs.replace(fact, thread=self._declared.thread, said=said)
        return Settlement([(f"s{self._step.number}/a{self._step.attempt}.0", fact, "driver")])

    async def _change(
        self, facts: Sequence[Fact], context: AssembledContext
    ) -> tuple[StateChange, dict[str, Json]]:
        """The changes of an answer, and the fields that code reduces."""
        answer = self._answer(facts)
        if self._declared.on_text is not None and isinstance(answer, str) and not self._streamed:
            hear = self._declared.on_text  # its engine returned the whole object
            await self._journal.world.send(lambda: hear(answer))
        given = await _ask(self._declared.apply, self.about, answer, context)
        states, shown = self._steps.states, lambda: self._steps.state(self._written)
        change = states.read(given, self.about, shown)
        if change.confidence is None:
            change = change._replace(confidence=_sure(answer))
        return change, self._steps.reduce(self._written, [change.fields])

    def _said(self, facts: Sequence[Fact]) -> tuple[Message, ...]:
        """The messages that the agent's thread keeps: the request and the answer."""
        words = [each.text for each in facts if isinstance(each, AgentText)]
        words += [as_data(each.output) for each in facts if isinstance(each, AgentOutput)]
        asked = Message(0, USER, self._prompt)
        return (asked, *(Message(0, self._node.name, each) for each in words))

    def _answer(self, facts: Sequence[Fact]) -> Any:
        """The answer as the step gets it: a value of its output type, or a text."""
        model = cast(type[BaseModel] | None, self._declared.output_type)
        for fact in facts:
            if isinstance(fact, AgentOutput) and model is not None:
                return read_program_model(model, opened(self._journal, fact.output))
        return "".join(fact.text for fact in facts if isinstance(fact, AgentText))


async def _ask(function: Callable[..., Any], *args: Any) -> Any:
    return await ask_user_code(function, *args, deadline=DEADLINE)


def _holds_context(agent: AgentStep[Any, Any]) -> bool:
    """Whether a step's request contains the whole prompt."""
    own: Any = type(agent).build_messages
    return own is not cast(Any, AgentStep).build_messages


def _sure(answer: Any) -> float | None:
    """The confidence that an answer states, if any."""
    sure: Any = getattr(answer, "confidence", None)
    is_number = isinstance(sure, int | float) and not isinstance(sure, bool)
    return float(sure) if is_number and 0 <= sure <= 1 else None


def error_parts(error: Exception) -> tuple[str, str]:
    """The name and message of a step's error; those of a turn are already recorded."""
    if isinstance(error, TurnFailed | RecordedError):
        return error.name, str(error)
    return error_name(error), error_text(error)
