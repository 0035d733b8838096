"""Derived variables: the triggers of a fact, and the changes they make."""

from collections.abc import Iterator, Mapping, Set
from datetime import datetime
from typing import Any, NamedTuple

from turnloom.kernel.values import Json
from turnloom.variables.events import ContextChanged, ContextRefused, TimerSet
from turnloom.variables.logic.matching import Patterns, Shape
from turnloom.variables.logic.triggers import SUBJECTS, Listener, Seen, Topic, listeners, topic_of
from turnloom.variables.logic.types import coerce, misfit, same
from turnloom.variables.spec.definitions import VariableDefinition
from turnloom.variables.spec.triggers import UNCHANGED, Function, TimerTrigger, Trigger

Change = ContextChanged | ContextRefused | TimerSet


class DerivationRule(NamedTuple):
    """One trigger of one variable; `number` is its position among all."""

    number: int
    definition: VariableDefinition
    trigger: Trigger
    writer: str
    listener: Listener

    def is_spent(self, fired: Set[str]) -> bool:
        """Whether it fires once and has fired."""
        return self.trigger.once and self.writer in fired


# Patterns per set.
TOGETHER = 32


def _regex(rule: DerivationRule) -> str:
    reading = rule.listener.reading
    assert reading is not None and reading.regex is not None
    return reading.regex


class Triggers:
    """All triggers, indexed by topic, so that a fact costs only the triggers it can match.

    Triggers for a fixed text are found by that text; triggers for a pattern are searched in sets.
    `tools` maps aliases of tools to their names.
    """

    def __init__(
        self, definitions: Mapping[str, VariableDefinition], tools: Mapping[str, str] | None = None
    ) -> None:
        self._tools = tools or {}
        self.functions: list[DerivationRule] = []
        self._asked: dict[Topic, list[DerivationRule]] = {}
        self._texts: dict[str, dict[Shape, dict[str, list[DerivationRule]]]] = {}
        self._restarts: dict[Topic, list[DerivationRule]] = {}
        self._hiding: set[str] = set()
        patterned: dict[tuple[str, Shape], list[DerivationRule]] = {}
        for number, found in enumerate(listeners(definitions)):
            self._add(DerivationRule(number, *found), patterned)
        self._patterns: dict[str, list[tuple[Patterns, list[DerivationRule]]]] = {}
        for (agent, shape), rules in patterned.items():
            for start in range(0, len(rules), TOGETHER):
                some = rules[start : start + TOGETHER]
                patterns = Patterns(shape, (_regex(rule) for rule in some))
                self._patterns.setdefault(agent, []).append((patterns, some))

        self.kinds = self._kinds()

    def _kinds(self) -> frozenset[str]:
        """The kinds of facts that triggers listen to; functions listen to all."""
        if self.functions:
            return frozenset(SUBJECTS)
        heard = {kind for kind, _ in (*self._asked, *self._restarts)}
        return frozenset(heard | ({"agent.text"} if self._texts or self._patterns else set()))

    def _add(
        self, rule: DerivationRule, patterned: dict[tuple[str, Shape], list[DerivationRule]]
    ) -> None:
        listener, trigger = rule.listener, rule.trigger
        if isinstance(trigger, Function):
            self.functions.append(rule)
        if listener.restarts is not None:
            self._restarts.setdefault(listener.restarts, []).append(rule)
        if getattr(trigger, "hides", False):
            self._hiding.add(listener.topics[0][1])
        reading = listener.reading
        if reading is not None and reading.whole is not None:
            shapes = self._texts.setdefault(listener.topics[0][1], {})
            shapes.setdefault(reading.shape, {}).setdefault(reading.whole, []).append(rule)
            return
        if reading is not None and reading.regex is not None:
            patterned.setdefault((listener.topics[0][1], reading.shape), []).append(rule)
            return
        for topic in listener.topics:
            kind, subject = topic
            of_a_tool = SUBJECTS.get(kind) == "tool"
            heard = (kind, self._tools.get(subject, subject)) if of_a_tool else topic
            self._asked.setdefault(heard, []).append(rule)

    def may_hide(self, agent: str) -> bool:
        """Whether a message of the agent can be a control word."""
        return agent in self._hiding

    def hides(self, agent: str, text: str) -> bool:
        """Whether a message is a control word, hidden from the user."""
        if agent not in self._hiding:
            return False
        rules = [*self._worded(agent, text), *self._asked.get(("agent.text", agent), ())]
        return any(_hides(rule, text) for rule in rules)

    def derive(
        self, kind: str, fact: Any, seen: Seen, fired: Set[str], at: datetime
    ) -> list[Change]:
        """The changes, refusals and timers that follow from a fact, given the current values.

        If several triggers of one variable match, the last declared one wins.
        """
        topic = topic_of(kind, fact)
        if topic is None:
            return []
        found: dict[str, tuple[DerivationRule, Json]] = {}
        for rule in self._hearing(topic, fact):
            value = UNCHANGED if rule.is_spent(fired) else rule.listener.read(fact, seen)
            if value is not UNCHANGED:
                found[rule.definition.name] = rule, _read(rule, value)
        changes = [
            change
            for rule, value in found.values()
            if (change := settle(rule.definition, value, rule.writer, seen.values)) is not None
        ]
        return [*changes, *self._timers(topic, fired, at)]

    def _hearing(self, topic: Topic, fact: Any) -> list[DerivationRule]:
        asked = self._asked.get(topic, [])
        if topic[0] != "agent.text":
            return asked
        worded = list(self._worded(topic[1], fact.text))
        return sorted([*asked, *worded]) if worded else asked

    def _worded(self, agent: str, text: str) -> Iterator[DerivationRule]:
        """The rules that a text may match: by the whole text or by a pattern in it."""
        for shape, rules in self._texts.get(agent, {}).items():
            yield from rules.get(shape.of(text), ())
        for patterns, rules in self._patterns.get(agent, ()):
            for number in patterns.found_in(text):
                yield rules[number]

    def _timers(self, topic: Topic, fired: Set[str], at: datetime) -> list[TimerSet]:
        rules = self._restarts.get(topic)
        if not rules:
            return []
        return [
            TimerSet(rule.writer, at + rule.trigger.delay)
            for rule in rules
            if isinstance(rule.trigger, TimerTrigger) and not rule.is_spent(fired)
        ]


def settle(
    definition: VariableDefinition, value: Json, writer: str, values: Mapping[str, Json]
) -> ContextChanged | ContextRefused | None:
    """The result of setting a value: a change, a refusal, or None if nothing changes."""
    name = definition.name
    if problem := misfit(definition, value):
        return ContextRefused(name, writer, problem)
    previous = values.get(name)
    return None if same(previous, value) else ContextChanged(name, value, previous, writer)


def _read(rule: DerivationRule, value: Json) -> Json:
    """The value that a trigger read; a captured text is converted to the variable's type if
    possible."""
    if not isinstance(value, str) or getattr(rule.trigger, "capture", None) is None:
        return value
    coerced = coerce(rule.definition, value)
    return value if coerced.failed or coerced.note else coerced.value


def _hides(rule: DerivationRule, text: str) -> bool:
    reading = rule.listener.reading
    hiding = getattr(rule.trigger, "hides", False)
    return hiding and reading is not None and reading.find(text) is not None
