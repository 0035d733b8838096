"""Data flow of variables: uses before any trigger can have fired, and variables without a use."""

from collections.abc import Iterator, Mapping, Set

from turnloom.agents.spec import Agent
from turnloom.conversation.logic.reach import ROUTING, START, beyond, followers
from turnloom.conversation.logic.rosters import placed_contexts
from turnloom.conversation.logic.routing import names_in
from turnloom.conversation.logic.scope import Scope
from turnloom.conversation.logic.sources import read_in
from turnloom.conversation.spec import HandoffRule, Orchestrator
from turnloom.kernel.documents import DeclarationFile, Path
from turnloom.kernel.values import preview
from turnloom.variables.logic.conditions import Term
from turnloom.variables.logic.exposure import names_of, place_in
from turnloom.variables.logic.triggers import TRIGGER_LOADERS
from turnloom.variables.logic.types import same
from turnloom.variables.spec import Derived, Trigger, VariableDefinition

Rules = Mapping[str, tuple[HandoffRule, ...]]

# Facts that only occur in a turn of their agent.
_TURNS = ("agent.text", "turn.finished")


def check_flow(
    scope: Scope, orchestrator: Orchestrator, rules: Rules, agents: Mapping[str, Agent]
) -> None:
    """Report uses of variables that cannot be set yet, and variables without a use."""
    if not scope.is_sound((*ROUTING, "context_variables", "tools", "hooks", "script")):
        return
    if not scope.others_write:
        follows = followers(scope.places, orchestrator, rules)
        order = Order(follows, scope.variables.definitions)
        _check_shown(scope, order, agents)
        _check_conditions(scope, order, rules)
    # Code may read any variable.
    if not scope.folder.code:
        _check_unused(scope, rules, agents)


class Order:
    """The possible order of turns and triggers."""

    def __init__(
        self, follows: Mapping[str, Set[str]], definitions: Mapping[str, VariableDefinition]
    ) -> None:
        self._definitions = definitions
        self._later = {name: beyond(name, follows) for name in follows}

    def has(self, party: str) -> bool:
        """Whether an agent ever has a turn."""
        return party in self._later[START]

    def can_be_set(self, name: str, before: str) -> bool:
        """Whether a variable can be set when a turn begins."""
        return any(before in self._after(trigger) for trigger in self._triggers(name))

    def can_be(self, term: Term, after: str) -> bool:
        """Whether a variable can have a value when a turn ends."""
        return any(
            after in self._after(trigger) or after in self._pullers(trigger)
            for trigger in self._triggers(term.name)
            if _can_set(trigger, term)
        )

    def _triggers(self, name: str) -> tuple[Trigger, ...]:
        definition = self._definitions.get(name)
        source = definition.source if definition else None
        return source.triggers if isinstance(source, Derived) else ()

    def _after(self, trigger: Trigger) -> set[str]:
        """The agents that can have a turn after a trigger fired."""
        return {name for puller in self._pullers(trigger) for name in self._later[puller]}

    def _pullers(self, trigger: Trigger) -> set[str]:
        """The agents whose turns can fire a trigger; the start, if anything else can."""
        found, waiting, known = set[str](), [trigger], set[str]()
        while waiting:
            trigger = waiting.pop()
            topics = TRIGGER_LOADERS[trigger.type].listen(trigger, "").topics
            for kind, subject in topics or (("", ""),):
                if kind != "context.changed":
                    found.add(subject if kind in _TURNS else START)
                elif subject not in known:
                    known.add(subject)
                    waiting += self._triggers(subject)
        return {name for name in found if name == START or self.has(name)}


def _can_set(trigger: Trigger, term: Term) -> bool:
    return trigger.values is None or any(same(value, term.value) for value in trigger.values)


def _check_shown(scope: Scope, order: Order, agents: Mapping[str, Agent]) -> None:
    """Report variables that are always null when an agent sees them."""
    for agent, document, path, name in _shown(scope, agents):
        definition = scope.definition(name) if order.has(agent) else None
        source = definition.source if definition else None
        if not isinstance(source, Derived) or source.default is not None:
            continue
        if not order.can_be_set(name, before=agent):
            scope.report.warn(
                document,
                path,
                "W065",
                f"Agent {agent!r} sees {name!r} before any trigger can set it.",
                remedy="Add a default or an earlier trigger, or show it to a later agent.",
            )


def _shown(
    scope: Scope, agents: Mapping[str, Agent]
) -> Iterator[tuple[str, DeclarationFile, Path, str]]:
    """The variables that agents see, by exposures and sources, with the path of each."""
    document = scope.document("context_variables")
    for name, exposure in scope.variables.exposures.items():
        for variable in names_of(exposure):
            path = (*scope.views[name].path, *place_in(exposure, variable))
            yield name, document, path, variable
    for agent in agents.values():
        for placed in placed_contexts(scope, agent):
            for path, variable in read_in(placed.choice):
                yield agent.name, placed.document, (*placed.path, *path), variable


def _check_conditions(scope: Scope, order: Order, rules: Rules) -> None:
    """Report rules that need a value which is only set after they are judged."""
    document = scope.document("handoffs")
    root = scope.report.part(document, "handoff_rules").path
    for source, rule, term in _terms(rules):
        if order.has(source) and _is_set(scope, term) and not order.can_be(term, after=source):
            scope.report.warn(
                document,
                (*root, rule.number - 1, "condition"),
                "W065",
                f"Rule {rule.number} never fires: no trigger can set {term.name!r} to "
                f"{preview(term.value)} before {source!r} has replied.",
                remedy="Add an earlier trigger, or drop the rule.",
            )


def _terms(rules: Rules) -> Iterator[tuple[str, HandoffRule, Term]]:
    for source, found in rules.items():
        for rule in found:
            for term in rule.condition.terms if rule.condition else ():
                yield source, rule, term


def _is_set(scope: Scope, term: Term) -> bool:
    """Whether a term needs a trigger, and has one."""
    definition = scope.definition(term.name)
    source = definition.source if definition else None
    if not isinstance(source, Derived) or same(source.default, term.value):
        return False
    return any(_can_set(trigger, term) for trigger in source.triggers)


def _check_unused(scope: Scope, rules: Rules, agents: Mapping[str, Agent]) -> None:
    """Report variables that no exposure, source, condition or trigger names."""
    variables = scope.variables
    used = {name for *_, name in _shown(scope, agents)}
    used |= {term.name for _, _, term in _terms(rules)}
    used |= {name for found in rules.values() for rule in found for name in names_in(rule.said)}
    used |= {name for each in variables.definitions.values() for name in _heard(each)}
    for name in variables.definitions:
        if name not in used:
            scope.report.warn(
                scope.document("context_variables"),
                scope.declared[name].path,
                "W066",
                f"Variable {name!r} is not used: no agent sees it, nothing depends on it.",
                remedy="Show it to an agent, use it in a condition, or remove it.",
            )


def _heard(definition: VariableDefinition) -> Iterator[str]:
    """The variables that the triggers of a variable listen to."""
    source = definition.source
    for trigger in source.triggers if isinstance(source, Derived) else ():
        listener = TRIGGER_LOADERS[trigger.type].listen(trigger, "")
        topics = (*listener.topics, *([listener.restarts] if listener.restarts else ()))
        yield from (subject for kind, subject in topics if kind == "context.changed")
