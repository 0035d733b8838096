"""A recorded run as the world of an edited definition."""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import msgspec

from turnloom.agents.events import ModelCalled, QuestionAsked
from turnloom.agents.logic.folding import question_of
from turnloom.flow.events import StepStarted
from turnloom.kernel.threads import UserCalls
from turnloom.log.ports import Effect
from turnloom.log.spec import Event, Fact, Intent
from turnloom.runs.actions import Action
from turnloom.runtime.backtest.matching import ORDERED, POSITION, MatchedRecord, scope_of
from turnloom.runtime.calls import Parked
from turnloom.runtime.replay.record import Gate, is_mail, is_meanwhile, is_outside
from turnloom.runtime.replay.secrets import fact_of
from turnloom.runtime.world import RUN, CallFailed
from turnloom.variables.logic.conditions import UndecidedCondition

T = TypeVar("T")

# Effects that read no variables: a model sees its frame only.
_BLIND = re.compile(
    r"/model(?:#\d+)?\Z|/loop\Z|/draw\Z|^chat/(?:pick|judge|server)|^(?:forward|set)/"
)

# How the error of a turn begins that its run decided on.
DECIDED = ("BudgetExceeded", "TooManyMistakes", "TooManyRounds")


class EditedWorld(MatchedRecord):
    """The world of an edited run: effects are looked up in the record by what is asked, in the
    order of the record."""

    def __init__(self, events: Sequence[Event], calls: UserCalls) -> None:
        super().__init__(events, calls)
        # Fills in for effects that the record does not hold.
        self.answer_unknown: Callable[[str, Effect], Awaitable[Sequence[Fact]]]
        # Fits recorded facts to the edited definition.
        self.adapt: Callable[[str, Sequence[Fact]], Sequence[Fact] | None]
        self._missing: list[Gate] = []

    async def perform(self, key: str, effect: Effect, scope: str) -> Sequence[Fact]:
        """The facts that an effect left, or its question or error; of an effect that the record
        does not hold, what can be assumed."""
        asked, inside = self.named(key), self.named(scope)
        if key.endswith("/cached") and self._place(asked) is None:
            await self.reach(RUN)
            return ()
        while True:
            self._check_answered(scope)
            gate = Gate((inside,), asked)
            if not self._holds(key, asked, inside):
                await self._wait_unknown(gate)
                return await self.answer_unknown(key, effect)
            await self._wait(gate)
            event = self.next
            assert event is not None
            if isinstance(event.data, QuestionAsked) and event.id.startswith(f"{inside}/ask."):
                raise Parked(self._question(event))
            if is_meanwhile(event, asked, inside):
                id = self.ours(event.id)
                self.journal.record(id, fact_of(self.journal, event), event.actor)
                continue
            self._heed_values(key)
            error = self._error(asked, inside)
            if error is not None:
                raise CallFailed(error, [*self._facts(f"{asked}/left")])
            facts = self.adapt(key, [*self._facts(asked)])
            return await self.answer_unknown(key, effect) if facts is None else facts

    def _heed_values(self, key: str) -> None:
        """Code that may read variables may do otherwise once one of them has another value."""
        if self.findings.has_other_values and not _BLIND.search(key):
            self.findings.is_assumed = True

    def _question(self, event: Event) -> Any:
        question = question_of(event.data, 0)
        own = self.ours(question.id)
        return question if own == question.id else msgspec.structs.replace(question, id=own)

    def _holds(self, key: str, asked: str, inside: str) -> bool:
        """Whether the record has something of an effect: what it left, its error or question, or
        that it was begun."""
        begun = self.journal.recorded(f"{key}?")
        if isinstance(begun, Intent) and not isinstance(begun, ModelCalled):
            there = self._intent(asked)
            if there is not None and there.request != begun.request:
                return False
        ids = (asked, f"{asked}.0", f"{asked}/again", f"{inside}/failed")
        if any(self._place(id) is not None for id in ids):
            return True
        rest = self.events[self.position : self._end_of_life()]
        return any(each.id.startswith(f"{inside}/ask.") for each in rest) or (
            self._intent(asked) is not None
        )

    def _intent(self, asked: str) -> Any:
        """The recorded intent of an effect."""
        places = self._spots.get(POSITION.sub("@", f"{asked}?"), ())
        found = next((self.events[each].data for each in reversed(places)), None)
        return found if isinstance(found, Intent | StepStarted) else None

    async def _wait_unknown(self, gate: Gate) -> None:
        """Wait until nothing else can run: the run may have been cut off here."""
        self._missing.append(gate)
        try:
            await self._wait(gate)
        finally:
            self._missing.remove(gate)

    def begin(self, rouse: Callable[[], None]) -> None:
        """Begin a drive."""
        self._missing.clear()
        super().begin(rouse)

    async def reach(self, scope: str) -> None:
        """Wait until the next event is one of a scope, or no other work has it."""
        await super().reach(self.named(scope) if scope else scope)

    async def decide(self, decide: Callable[[], Action | None]) -> Action | None:
        """The next action, unless it depends on something unknown."""
        try:
            return await super().decide(decide)
        except UndecidedCondition as error:
            unknown = [f"{each.what} ({each.why})" for each in error.unknown]
            self.undecide("who is next", unknown, self.journal.state.turns)

    def deadline(self, scope: str, seconds: float | None) -> AbstractAsyncContextManager[Any]:
        """A timeout that expires when the record says so."""
        return super().deadline(self.named(scope), seconds)

    async def answer(self, scope: str, make: Callable[[], Awaitable[T]]) -> T:
        """The answer of a turn.

        Raises:
            RecordedFailure: the record says that the turn failed.
        """
        return await super().answer(self.named(scope), make)

    def _fail(self, event: Event) -> bool:
        decided = self.error_of(scope_of(event.id)).startswith(DECIDED)
        return False if decided else super()._fail(event)

    def _let_end(self, event: Event) -> None:
        if self._missing and not is_mail(event):
            self._missing[0].open()
        elif not self._pass_to_gate(event) and not self._take_early(event):
            super()._let_end(event)

    def _take_early(self, event: Event) -> bool:
        """Give work what the record has later."""
        if is_outside(event) or any(not each.key for each in self._gates):
            return False
        for gate in self._gates:
            place = self._place(f"{gate.key}.0")
            if place is not None and not self._is_cut(place):
                gate.open()
                return True
        return False

    def _pass_to_gate(self, event: Event) -> bool:
        """Pass over what a turn or step recorded before the effect that it waits for."""
        scope = scope_of(event.id)
        if is_outside(event) or not ORDERED.match(scope):
            return False
        for gate in self._gates:
            place = self._place(f"{gate.key}.0") if gate.key else None
            if place is not None and scope_of(gate.key) == scope:
                self._pass_over(scope, place)
                self._advance()
                return True
        return False
