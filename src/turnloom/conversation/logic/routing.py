"""The form of conversations: handoff rules in order, then the pattern's default."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from turnloom.agents.events import (
    ChanceDrawn,
    QuestionAnswered,
    SpeakerPicked,
    TransferChosen,
    TurnFinished,
    TurnStarted,
    UserText,
)
from turnloom.agents.spec import (
    SELECTOR,
    TERMINATE,
    USER,
    Failure,
    Products,
    Question,
    RunState,
    ToolSchema,
    Transfer,
)
from turnloom.conversation.events import ConsideredRule, RouteDecided
from turnloom.conversation.logic.reach import candidates_of
from turnloom.conversation.spec import Conversation, ConversationState, HandoffRule
from turnloom.guards.events import SelectionMade
from turnloom.guards.logic.loops import substitute
from turnloom.kernel.values import Json, as_data
from turnloom.log.logic import in_life
from turnloom.log.spec import Event, Fact
from turnloom.runs.actions import Action, Ask, Begin, Draw, Finish, Pick, Select, Work
from turnloom.runs.form import Rest, stopped
from turnloom.runs.retries import none_misplaced, redo_turns
from turnloom.variables.logic.conditions import judge

_PLACE = re.compile(r"\$\{\s*([^\W\d]\w*)\s*\}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")

# The prefix of handoff tools.
TRANSFER = "transfer_to_"

# The maximum length of a target in the name of its tool; providers allow 64 in all.
_NAME = 40


# The answer of a model that chooses none of the user's handoffs.
NO_TRANSFER = "no_transfer"


def names_in(condition: str) -> list[str]:
    """The variables in a condition in words, as in `${name}`."""
    return list(dict.fromkeys(_PLACE.findall(condition)))


def transfer(rule: HandoffRule, values: Mapping[str, Json], absent: Mapping[str, str]) -> Transfer:
    """A handoff as a tool; its description has the condition with the current values."""

    def value(found: re.Match[str]) -> str:
        if (name := found[1]) in values:
            return as_data(values[name])
        return f"absent ({absent.get(name, 'not set')})"

    name = f"{TRANSFER}{_UNFIT.sub('_', rule.target)[:_NAME]}_{rule.number}"
    description = f"Hand over to {rule.target}. {_PLACE.sub(value, rule.said)}"
    parameters: dict[str, Json] = {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    return Transfer(ToolSchema(name, description, parameters), rule.number, rule.target)


def _on_route(state: RunState, fact: RouteDecided) -> None:
    floor: ConversationState = state.progress
    floor.next, floor.reason, floor.choice, floor.picked = fact.target, fact.reason, 0, ""


def _on_turn(state: RunState, fact: TurnFinished) -> None:
    """Note the speaker; a failed turn fails the run."""
    floor: ConversationState = state.progress
    floor.last, floor.agent, floor.next, floor.selected = fact.agent, fact.agent, None, ""
    floor.streak[fact.agent] = floor.streak.get(fact.agent, 0) + 1
    if fact.status == "failed" and state.failure is None:
        state.failure = Failure(f"turn {fact.turn} of {fact.agent} failed", fact.error)


def _on_user(state: RunState, fact: UserText) -> None:
    if fact.author == USER:
        floor: ConversationState = state.progress
        floor.last, floor.next, floor.selected = USER, None, ""
        floor.streak.clear()


def _on_transfer(state: RunState, fact: TransferChosen) -> None:
    state.progress.choice = fact.rule


def _on_drawn(state: RunState, fact: ChanceDrawn) -> None:
    state.progress.picked = fact.drawn


def _on_picked(state: RunState, fact: SpeakerPicked) -> None:
    """Note the speaker, or the rule of the user that a model chose: -1 if it chose none."""
    if NO_TRANSFER not in fact.among:
        state.progress.picked = fact.picked
    elif fact.picked == NO_TRANSFER:
        state.progress.choice = -1
    else:
        state.progress.choice = int(fact.picked.rpartition("_")[2])


def _on_answered(state: RunState, fact: QuestionAnswered) -> None:
    if fact.tool == SELECTOR:
        state.progress.picked = str(fact.value)


def _on_selected(state: RunState, fact: SelectionMade) -> None:
    """Decide the route again if another candidate was chosen."""
    floor: ConversationState = state.progress
    floor.selected, floor.category = fact.chosen, fact.category
    if fact.chosen != fact.meant:
        floor.next = None


_FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    RouteDecided: _on_route,
    TurnFinished: _on_turn,
    UserText: _on_user,
    TransferChosen: _on_transfer,
    ChanceDrawn: _on_drawn,
    SpeakerPicked: _on_picked,
    QuestionAnswered: _on_answered,
    SelectionMade: _on_selected,
}


class Route(NamedTuple):
    """The next speaker, and the reason."""

    target: str
    reason: str


class ConversationForm:
    """The form of a conversation's runs."""

    form = "conversation"
    hears = True
    products: Mapping[str, Products] = {}
    progress = ConversationState
    redo = staticmethod(redo_turns)
    misplaced = staticmethod(none_misplaced)

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.name = conversation.name
        self.version = conversation.version
        self.agents = conversation.agents
        self.variables = conversation.variables
        self.triggers = conversation.triggers
        self.toolkit = conversation.toolkit
        self.outputs = conversation.outputs
        self.hooks = conversation.hooks
        self.message_hooks = conversation.message_hooks
        self.has_people = conversation.orchestrator.startup_mode != "BackendOnly"
        self._setup = conversation.orchestrator
        self._roster = list(self.agents)
        self._before_reply = _some(conversation, lambda rule: rule.pre)
        self._after_reply = _some(conversation, lambda rule: not rule.pre)
        self._by_model = _some(conversation, lambda rule: rule.llm)
        limited = (a.name for a in self.agents.values() if a.max_consecutive_auto_reply is not None)
        self._steered = {*self._before_reply, *limited}
        self._candidates = candidates_of(self._setup)

    def begin(self) -> ConversationState:
        """The state before the first message."""
        return ConversationState()

    def evolve(self, state: RunState, event: Event) -> None:
        """Fold an event into the conversation's state."""
        fold = _FOLDS.get(event.data.__class__)
        if fold is not None:
            fold(state, event.data)

    def work(self, state: RunState) -> Sequence[Work]:
        """The open turn: no other begins before it ends."""
        return [
            Work(
                f"t{number}",
                number,
                turn.agent,
                number,
                is_over=number == state.interrupted,
                is_alone=True,
            )
            for number, turn in state.open.items()
        ]

    def rest(self, state: RunState) -> Rest:
        """What an idle run waits for: nothing of the form's own."""
        return Rest()

    def due(self, state: RunState) -> datetime | None:
        """The next deadline: a conversation has none."""
        return None

    def overdue(self, state: RunState, now: datetime) -> Sequence[tuple[str, Fact]]:
        """The facts of passed deadlines: none."""
        return ()

    def shows(self, agent: str) -> bool:
        """Whether the user sees this agent's messages."""
        visible = self.conversation.visible
        return visible is None or agent in visible

    def alternatives(self, state: RunState) -> Sequence[str]:
        """The agents that could take a turn in place of one another: all of them."""
        return self._roster

    def transfers(self, agent: str, state: RunState) -> Sequence[Transfer]:
        """The handoffs that the agent's model may choose now."""
        rules = self._by_model.get(agent)
        return [transfer(rule, state.values, state.absent) for rule in rules] if rules else ()

    def decide(self, state: RunState) -> Action | None:
        """Begin the next speaker's turn, with the route recorded; or let someone pick the
        speaker."""
        end = stopped(state)
        if end is not None and (end.at_once or not state.open):
            return end
        if state.open or state.questions:
            return None
        floor: ConversationState = state.progress
        if floor.next is not None:
            return self._go(state, Route(floor.next, floor.reason), ())
        route = self._route(state, floor)
        if not isinstance(route, RouteDecided):
            return route
        first, then = _ROUTES[bool(floor.selected)]
        route = self._rotated(state, route)
        moment = _moment(state)
        if route.target not in self._steered:
            return self._go(state, route, ((f"{moment}/{first}", route),))
        routes = self._before(state, route)
        limited = self._limited(floor, routes[-1])
        if limited is not routes[-1]:
            # The user's own rules may pass the turn on, once: to an agent that may still reply.
            routes[-1:] = self._before(state, limited)
            limited = self._limited(floor, routes[-1])
        routes[-1] = limited
        facts = tuple(
            (f"{moment}/{then}.{n}" if n else f"{moment}/{first}", each)
            for n, each in enumerate(routes)
        )
        return self._go(state, routes[-1], facts)

    def _rotated(self, state: RunState, route: RouteDecided) -> RouteDecided:
        """The route, or one to another agent if its target is in a loop."""
        other = substitute(state, route.target, self._roster)
        if other is None:
            return route
        reason = f"loop detection: {route.target} is in a loop, another agent speaks"
        return msgspec.structs.replace(route, target=other, reason=reason)

    def _go(
        self, state: RunState, way: Route | RouteDecided, facts: tuple[tuple[str, Fact], ...]
    ) -> Action:
        if way.target == TERMINATE:
            return Finish(reason=way.reason, facts=facts)
        if way.target == USER:
            return Ask(self._question(state), facts)
        if way.target in self._candidates and not state.progress.selected:
            return Select(f"{_moment(state)}/selection", way.target, facts)
        turn = state.turns + 1
        opens = ((f"t{turn}", TurnStarted(turn, way.target)),)
        return Begin(f"t{turn}", opens, way.target, facts)

    def _question(self, state: RunState) -> Question:
        opening = self._setup.initial_message_to_user
        prompt = opening if opening and not state.turns and not state.progress.last else ""
        return Question(in_life(f"{_moment(state)}/ask", state.life), prompt or "", state.user)

    def _route(self, state: RunState, floor: ConversationState) -> RouteDecided | Action:
        setup = self._setup
        if floor.selected:
            reason = "chosen among the candidates by selection"
            return RouteDecided(floor.last, floor.selected, reason)
        if not floor.last:
            target = USER if setup.startup_mode == "UserDriven" else self._first()
            return RouteDecided("", target, f"startup: {setup.startup_mode}")
        if setup.max_turns is not None and state.turns >= setup.max_turns:
            return RouteDecided(floor.last, TERMINATE, f"max_turns: {setup.max_turns} reached")
        considered: list[ConsideredRule] = []
        for rule in self._after_reply.get(floor.last, ()):
            if rule.llm and floor.last == USER and not floor.choice:
                return self._judging(state)
            entry = _consider(rule, state, floor.choice)
            considered.append(entry)
            if entry.fired:
                return RouteDecided(floor.last, rule.target, _named(rule), tuple(considered))
        way = self._default(state, floor)
        if not isinstance(way, Route):
            return way
        return RouteDecided(floor.last, way.target, way.reason, tuple(considered))

    def _judging(self, state: RunState) -> Pick:
        """Let the workflow's model choose among the user's `string_llm` rules."""
        offered = [each.schema for each in self.transfers(USER, state)]
        choices = {each.name: each.description for each in offered}
        choices[NO_TRANSFER] = "None of the others applies."
        return Pick(f"chat/judge/{_moment(state)}", tuple(choices), choices=choices)

    def _limited(self, floor: ConversationState, route: RouteDecided) -> RouteDecided:
        """The route, or its end if the target has reached its limit of consecutive replies."""
        agent = self.agents.get(route.target)
        most = agent.max_consecutive_auto_reply if agent else None
        if most is None or floor.streak.get(route.target, 0) < most:
            return route
        end = USER if self._setup.human_in_the_loop else TERMINATE
        reason = f"max_consecutive_auto_reply: {route.target} replied {most} times"
        return msgspec.structs.replace(route, target=end, reason=reason)

    def _before(self, state: RunState, route: RouteDecided) -> list[RouteDecided]:
        """The route, and those that `pre` rules add to it.

        Rules in a cycle are followed once: the agent that they return to replies.
        """
        routes, met = [route], set[str]()
        while (agent := routes[-1].target) in self._before_reply:
            if agent in met:
                reason = f"{routes[-1].reason}; {agent} was passed over once and replies"
                routes[-1] = msgspec.structs.replace(routes[-1], reason=reason)
                break
            met.add(agent)
            rules = self._before_reply[agent]
            entries = [_consider(rule, state, 0) for rule in rules]
            fired = next((n for n, entry in enumerate(entries) if entry.fired), None)
            if fired is None:
                considered = (*routes[-1].considered, *entries)
                routes[-1] = msgspec.structs.replace(routes[-1], considered=considered)
                break
            rule = rules[fired]
            reply = "the user is asked" if agent == USER else f"{agent} would reply"
            reason = f"{_named(rule)}, before {reply}"
            routes.append(RouteDecided(agent, rule.target, reason, tuple(entries[: fired + 1])))
        return routes

    def _default(self, state: RunState, floor: ConversationState) -> Route | Action:
        """The pattern's route when no rule fires."""
        first = self._setup.initial_agent
        match self._setup.orchestration_pattern:
            case "DefaultPattern":
                return self._usual(floor)
            case _ if first is not None and not floor.agent:
                return Route(first, "no rule fired: initial_agent replies first")
            case "RoundRobinPattern":
                ring = [*self._roster, *self._people()]
                last = floor.last if floor.last in ring else floor.agent
                place = ring.index(last) if last else -1
                return Route(ring[(place + 1) % len(ring)], "no rule fired: the next in the round")
            case pattern:
                among = self._others(floor)
                if len(among) == 1:
                    return Route(among[0], "no rule fired: the only agent")
                if floor.picked:
                    return Route(floor.picked, f"no rule fired: {_WHO_PICKS[pattern]} picked")
                return _picking(pattern, state, among)

    def _usual(self, floor: ConversationState) -> Route:
        if floor.last == USER:
            back = floor.agent or self._first()
            return Route(back, "no rule fired: back to the agent that the user answered")
        if self._setup.human_in_the_loop:
            return Route(USER, "no rule fired: the user, as human_in_the_loop is set")
        return Route(TERMINATE, "no rule fired: the end")

    def _people(self) -> list[str]:
        return [USER] if self._setup.human_in_the_loop else []

    def _others(self, floor: ConversationState) -> tuple[str, ...]:
        """The agents that can be picked: all except the last speaker, if there is another one."""
        everyone = [*self._roster, *self._people()]
        if self._setup.orchestration_pattern == "ManualPattern":
            return (*everyone, TERMINATE)
        others = [name for name in everyone if name != floor.last]
        return tuple(others or everyone)

    def _first(self) -> str:
        return self._setup.initial_agent or self._roster[0]


def _some(
    conversation: Conversation, wanted: Callable[[HandoffRule], bool]
) -> dict[str, tuple[HandoffRule, ...]]:
    """The rules that match, by source."""
    found = {source: tuple(filter(wanted, rules)) for source, rules in conversation.rules.items()}
    return {source: rules for source, rules in found.items() if rules}


# The ids of recorded routes of one moment: by the rules, and after a selection.
_ROUTES = (("route", "pre"), ("selected", "selected.pre"))

_WHO_PICKS = {"RandomPattern": "chance", "AutoPattern": "the model", "ManualPattern": "the user"}


def _picking(pattern: str, state: RunState, among: tuple[str, ...]) -> Action:
    """The action that picks the next speaker."""
    moment = _moment(state)
    match pattern:
        case "RandomPattern":
            return Draw(f"{moment}/draw", among)
        case "AutoPattern":
            return Pick(f"chat/pick/{moment}", among)
        case _:
            schema = {"enum": list(among)}
            prompt = "Who speaks next?"
            id = in_life(f"{moment}/pick", state.life)
            question = Question(id, prompt, state.user, SELECTOR, payload=None, schema=schema)
            return Ask(question)


def _named(rule: HandoffRule) -> str:
    return f"{'string_llm' if rule.llm else rule.kind} rule {rule.number}"


def _consider(rule: HandoffRule, state: RunState, choice: int) -> ConsideredRule:
    if rule.llm:
        chosen = rule.number == choice
        whose = "workflow" if state.progress.last == USER else "agent"
        why_not = "" if chosen else f"the {whose}'s model did not choose it"
        return ConsideredRule(rule.number, rule.target, chosen, rule.said, saw={}, why_not=why_not)
    if rule.condition is None:
        return ConsideredRule(rule.number, rule.target, True)
    holds, saw, why_not = judge(rule.condition, state.values, state.absent)
    return ConsideredRule(rule.number, rule.target, holds, rule.said, saw=saw, why_not=why_not)


def _moment(state: RunState) -> str:
    """A stable name for this point of the run."""
    return f"t{state.turns}.{state.history.count}"
