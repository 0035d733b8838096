"""Answer a turn: engines in order, in as many tries as declared."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from turnloom.agents.events import AgentOutput, AgentText, ModelAnswered
from turnloom.agents.logic.dialogues import passed_on
from turnloom.agents.spec import (
    UNPREPARED,
    Answer,
    Component,
    Exchange,
    PreparedRequest,
    Publication,
)
from turnloom.assembly.logic.assembled import AssembledContext
from turnloom.assembly.logic.labels import together
from turnloom.board.spec import Audience
from turnloom.errors import BudgetExceeded
from turnloom.kernel.contained import error_name
from turnloom.kernel.values import error_text, preview
from turnloom.log.spec import Fact
from turnloom.reaction.events import SampleChosen
from turnloom.runs.brief import Brief, Sinks, TextSink, TurnOutcome, discard
from turnloom.runtime.around.components import around_calls
from turnloom.runtime.around.message_hooks import MessageHooks
from turnloom.runtime.calls import Waiting, exposed, side_by_side
from turnloom.runtime.journal import Journal
from turnloom.runtime.spec import AgentRuntime, LoadedWorkflow
from turnloom.runtime.turn.context import NOTHING, GatheredContext, Gatherer
from turnloom.runtime.turn.frames import FrameParts, RecordedFrame, TurnFrames
from turnloom.runtime.turn.model_calls import EngineCall, ModelCalls
from turnloom.runtime.turn.tools import OfferedTool, offers_to
from turnloom.runtime.user_code import ask_user_code

# Seconds that a score may take.
DEADLINE = 60.0


class TurnParts(msgspec.Struct, frozen=True):
    """The parts that all engines of a turn share."""

    number: int
    agent: str
    staff: AgentRuntime
    sights: Sequence[RecordedFrame]
    hooks: MessageHooks | None
    sinks: Sinks


class TurnAnswers:
    """Makes the agents of one run answer."""

    def __init__(
        self,
        journal: Journal,
        loaded: LoadedWorkflow,
        sights: TurnFrames,
        gatherer: Gatherer,
        messages: MessageHooks,
        components: Callable[[str], Sequence[Component]],
        window: int = 0,
    ) -> None:
        self._journal = journal
        self._components = components
        self._window = window
        self._loaded = loaded
        self._sights = sights
        self._gatherer = gatherer
        self._messages = messages
        self._hooked = bool(journal.workflow.message_hooks)

    async def answer(self, brief: Brief, sinks: Sinks) -> TurnOutcome:
        """The agent's answer in a turn, or the error."""
        agent = brief.agent
        staff = self._loaded.staff[agent]
        prepared = await self._messages.prepare(brief.turn, agent) if self._hooked else UNPREPARED
        offers = offers_to(self._journal.workflow.agents[agent], self._journal, self._loaded)
        contexts, problem = await self._gatherer.gather(brief, prepared.messages)
        if problem:
            return TurnOutcome(problem)
        assembled = contexts[0].assembled
        shown = assembled.context if assembled else AssembledContext.empty()
        try:
            prepared = await brief.request(prepared, shown)
        except Exception as error:  # noqa: BLE001 - whatever a step raises fails its turn
            return TurnOutcome(f"{error_name(error)}: {error_text(error)}")
        if brief.engines is not None:
            staff = replace(staff, engines=brief.engines)
        await self._journal.world.reach(f"t{brief.turn}")
        frames = NOTHING if prepared.holds_context else contexts
        sights = [
            self._sights.see(brief, place, _around(offers, prepared, each))
            for place, each in enumerate(frames)
        ]
        # A text that a hook may rewrite is not streamed.
        rewrites = self._hooked and self._messages.has(agent, "process_message_before_send")
        hooks = self._messages if rewrites else None
        turn = TurnParts(
            brief.turn, agent, staff, sights, hooks=hooks, sinks=_hushed if rewrites else sinks
        )
        if staff.samples == 1:
            outcome = await self._try(turn, f"t{brief.turn}")
        else:
            outcome = await self._best(turn)
        return outcome if assembled is None else msgspec.structs.replace(outcome, context=shown)

    async def _try(self, turn: TurnParts, scope: str) -> TurnOutcome:
        """One try of a turn: its engines in order; the result of the last one counts."""
        ended = TurnOutcome("")
        before: list[Exchange] = []
        audience = _audience(turn.sights, self._gatherer.read_around(turn.number))
        shown = exposed(self._journal, self._loaded, turn.agent)
        for place, engine in enumerate(turn.staff.engines):
            sight = turn.sights[min(place, len(turn.sights) - 1)]
            inside = f"{scope}/e{place}" if place else scope
            is_last = place == len(turn.staff.engines) - 1
            around = around_calls(self._components(turn.agent), engine)
            board = partial(self._gatherer.board, turn.agent)
            asked = EngineCall(
                engine, around, is_last, audience, secrets=shown, window=self._window, board=board
            )
            rounds = self._rounds(turn, asked, sight, inside)
            try:
                latest = await rounds.answer(sight.shown, before)
            except BudgetExceeded as error:
                return TurnOutcome(f"{error_name(error)}: {error_text(error)}")
            if latest.error:
                return latest
            ended, audience = _after(ended, latest), rounds.audience
            if is_last or _is_handed_over(latest.facts):
                break
            before.append(passed_on(latest.facts))
        return ended

    def _rounds(
        self, turn: TurnParts, asked: EngineCall, sight: RecordedFrame, scope: str
    ) -> ModelCalls:
        hooks, sinks = turn.hooks, turn.sinks
        if not asked.is_last and turn.agent not in self._journal.workflow.products:
            hooks, sinks = None, _hushed  # only the next engine reads what it says
        task = self._sights.open(sight, sinks(1), scope)
        return ModelCalls(
            self._journal, asked, task, sight.around.offers, hooks=hooks, sinks=sinks, scope=scope
        )

    async def _best(self, turn: TurnParts) -> TurnOutcome:
        """Several tries at the same time; the best counts, failed ones do not. They are not
        streamed."""
        turn = msgspec.structs.replace(turn, sinks=_hushed)
        tries: dict[int, TurnOutcome] = {}

        async def attempt(number: int) -> TurnOutcome | Waiting:
            try:
                return await self._try(turn, f"t{turn.number}/s{number}")
            except Waiting as waiting:
                return waiting

        waits: list[Waiting] = []
        async with aclosing(side_by_side(range(turn.staff.samples), attempt)) as ended:
            async for number, came in ended:
                if isinstance(came, Waiting):
                    waits.append(came)
                else:
                    tries[number] = came
        if waits:
            raise waits[0]
        if all(each.error for each in tries.values()):
            return tries[0]
        return await self._choose(turn, tries)

    async def _choose(self, turn: TurnParts, tries: dict[int, TurnOutcome]) -> TurnOutcome:
        async def effect() -> Sequence[Fact]:
            scores = [await self._score(turn, tries[number]) for number in sorted(tries)]
            known = [score for score in scores if score is not None]
            chosen = scores.index(max(known)) if known else -1
            return (SampleChosen(turn.number, turn.agent, tuple(scores), chosen),)

        try:
            facts = await self._journal.once(f"t{turn.number}/choice", effect)
        except Exception as error:  # noqa: BLE001 - whatever a score raises fails the turn
            return TurnOutcome(f"{error_name(error)}: {error_text(error)}")
        chosen = facts[0]
        assert isinstance(chosen, SampleChosen)
        return tries[chosen.chosen]

    async def _score(self, turn: TurnParts, ended: TurnOutcome) -> float | None:
        score = turn.staff.score
        if ended.error or score is None:
            return None
        given: Any = await ask_user_code(score, self._answer(ended.facts), deadline=DEADLINE)
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        if not is_number or not -sys.float_info.max <= given <= sys.float_info.max:
            raise ValueError(f"the score is {preview(given)}. Let `score` give a finite number.")
        return float(given)

    def _answer(self, facts: Sequence[Fact]) -> Answer:
        """The answer of an agent, as its engine returned it."""
        text = "".join(fact.text for fact in facts if isinstance(fact, AgentText))
        made = [fact for fact in facts if isinstance(fact, AgentOutput)]
        if made and made[0].agent not in self._journal.workflow.products:
            return Answer(text, output=made[-1].output)
        return Answer(text, artifacts=tuple(map(self._publication, made)))

    def _publication(self, made: AgentOutput) -> Publication:
        value = self._loaded.types.read(made.model, made.output)
        return Publication(value, frozenset(made.tags), made.visibility, made.partition)


def _audience(sights: Sequence[RecordedFrame], read: Audience) -> Audience:
    """The audience that may see everything that a turn is shown and that components around it
    read."""
    if len(sights) == 1 and not read:
        return sights[0].shown.visibility
    return together((*(seen for each in sights for seen in each.shown.visibility), *read))


def _around(
    offers: Mapping[str, OfferedTool], prepared: PreparedRequest, context: GatheredContext
) -> FrameParts:
    """The surroundings of a frame; messages stand in it once."""
    said = prepared._replace(messages=None) if context.tells else prepared
    return FrameParts(offers, said, context)


def _is_handed_over(facts: Sequence[Fact]) -> bool:
    """Whether an engine's last answer handed the turn over: nothing else follows tool calls at
    once."""
    answered = facts[0] if facts else None
    return isinstance(answered, ModelAnswered) and bool(answered.calls)


def _after(before: TurnOutcome, latest: TurnOutcome) -> TurnOutcome:
    """The combined outcome of two engines: the later one counts unless it made no artifacts."""
    if not before.facts or any(isinstance(fact, AgentOutput) for fact in latest.facts):
        return latest
    kept = [fact for fact in before.facts if isinstance(fact, AgentOutput)]
    return TurnOutcome("", (*kept, *latest.facts))


def _hushed(call: int) -> TextSink:
    return discard
