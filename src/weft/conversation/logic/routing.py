"""Whose turn it is: rules in declared order, then the pattern's default."""

from collections.abc import Callable, Mapping
from typing import Any

from weft.agents.events import TurnFinished, UserText
from weft.agents.spec import (
    TERMINATE,
    USER,
    Ask,
    Decision,
    Finish,
    Question,
    RunState,
    TakeTurn,
)
from weft.conversation.events import Considered, RouteDecided
from weft.conversation.spec import Conversation, Floor, Rule
from weft.log.spec import Fact
from weft.variables.logic.conditions import judge


def _on_route(floor: Floor, fact: RouteDecided) -> None:
    floor.next, floor.reason = fact.target, fact.reason


def _on_turn(floor: Floor, fact: TurnFinished) -> None:
    floor.last, floor.agent, floor.next = fact.agent, fact.agent, None


def _on_user(floor: Floor, fact: UserText) -> None:
    if fact.author == USER:
        floor.last, floor.next = USER, None


_FOLDS: dict[type, Callable[[Floor, Any], None]] = {
    RouteDecided: _on_route,
    TurnFinished: _on_turn,
    UserText: _on_user,
}


class Conversing:
    """A conversation as something that decides whose turn it is."""

    progress = Floor
    folds: Mapping[type, Callable[[Any, Any], None]] = _FOLDS

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.name = conversation.name
        self.version = conversation.version
        self.agents = conversation.agents
        self.variables = conversation.variables
        self.triggers = conversation.triggers

    def begin(self) -> Floor:
        """Nobody has spoken."""
        return Floor()

    def decide(self, state: RunState) -> Decision:
        """The next speaker, with the route on record."""
        floor: Floor = state.progress
        if floor.next is not None:
            return self._go(state, floor.next, floor.reason, ())
        route = self._route(state, floor)
        fact = (f"{_moment(state)}/route", route)
        return self._go(state, route.target, route.reason, (fact,))

    def _go(
        self, state: RunState, target: str, reason: str, facts: tuple[tuple[str, Fact], ...]
    ) -> Decision:
        if target == TERMINATE:
            return Finish(reason, facts)
        if target == USER:
            return Ask(self._question(state), facts)
        return TakeTurn(target, facts)

    def _question(self, state: RunState) -> Question:
        opening = self.conversation.orchestrator.initial_message_to_user
        prompt = opening if opening and not state.turns and not state.progress.last else ""
        return Question(f"{_moment(state)}/ask", prompt or "", state.user)

    def _route(self, state: RunState, floor: Floor) -> RouteDecided:
        setup = self.conversation.orchestrator
        if not floor.last:
            target = USER if setup.startup_mode == "UserDriven" else self._first()
            return RouteDecided("", target, f"startup: {setup.startup_mode}")
        if setup.max_turns is not None and state.turns >= setup.max_turns:
            return RouteDecided(floor.last, TERMINATE, f"max_turns: {setup.max_turns} reached")
        considered: list[Considered] = []
        for rule in self.conversation.rules.get(floor.last, ()):
            entry = _consider(rule, state)
            considered.append(entry)
            if entry.fired:
                reason = f"{rule.kind} rule {rule.number}"
                return RouteDecided(floor.last, rule.target, reason, tuple(considered))
        target, reason = self._default(floor)
        return RouteDecided(floor.last, target, reason, tuple(considered))

    def _default(self, floor: Floor) -> tuple[str, str]:
        if floor.last == USER:
            return floor.agent or self._first(), "no rule fired: back to whom the user answered"
        if self.conversation.orchestrator.human_in_the_loop:
            return USER, "no rule fired: the user, as human_in_the_loop is set"
        return TERMINATE, "no rule fired: the end"

    def _first(self) -> str:
        return self.conversation.orchestrator.initial_agent or next(iter(self.agents))


def _consider(rule: Rule, state: RunState) -> Considered:
    if rule.condition is None:
        return Considered(rule.number, rule.target, True)
    verdict = judge(rule.condition, state.values, state.absent)
    return Considered(
        rule.number, rule.target, verdict.holds, rule.said, verdict.saw, verdict.why_not
    )


def _moment(state: RunState) -> str:
    """A name for this point of the run that the same point always has."""
    return f"t{state.turns}.{state.history.count}"
