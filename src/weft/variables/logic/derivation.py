"""Derived variables: which triggers an event can touch, and what it changes."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import re2

from weft.kernel.values import Json
from weft.variables.logic.types import same
from weft.variables.spec import AgentText, Definition, Derived


class Change(NamedTuple):
    """What a trigger wants a variable to be."""

    name: str
    value: Json
    writer: str


class Rule(NamedTuple):
    """One trigger of one variable, ready to be asked."""

    variable: str
    trigger: AgentText
    writer: str
    matches: Callable[[str], bool]


class Triggers:
    """All triggers by the agent they listen to, so that an event costs what it can touch."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._by_agent: dict[str, list[Rule]] = {}
        for definition in definitions:
            if isinstance(definition.source, Derived):
                for number, trigger in enumerate(definition.source.triggers):
                    writer = f"trigger:{definition.name}[{number}]"
                    rule = Rule(definition.name, trigger, writer, matcher(trigger))
                    self._by_agent.setdefault(trigger.agent, []).append(rule)

    def on_text(
        self, agent: str, text: str, values: Mapping[str, Json], fired: frozenset[str] | set[str]
    ) -> list[Change]:
        """The changes that a message of an agent brings, given the values of this moment."""
        changes: list[Change] = []
        for rule in self._by_agent.get(agent, ()):
            value = rule.trigger.value
            if rule.trigger.once and rule.writer in fired:
                continue
            if not same(values.get(rule.variable), value) and rule.matches(text):
                changes.append(Change(rule.variable, value, rule.writer))
        return changes

    def hides(self, agent: str, text: str) -> bool:
        """Whether a message is a control word that the user need not see."""
        rules = self._by_agent.get(agent, ())
        return any(rule.trigger.hide and rule.matches(text) for rule in rules)


def matcher(trigger: AgentText) -> Callable[[str], bool]:
    """The predicate of a trigger; every part of its `match` must hold.

    Raises:
        ValueError: the regular expression is not one that RE2 knows.
    """
    fold = trigger.ignore_case and not trigger.exact
    trim = trigger.trim and not trigger.exact
    tests: list[Callable[[str], bool]] = []

    def shape(text: str) -> str:
        text = text.strip() if trim else text
        return text.casefold() if fold else text

    match = trigger.match
    if match.equals is not None:
        tests.append(shape(match.equals).__eq__)
    if match.contains is not None:
        wanted = shape(match.contains)
        tests.append(lambda text: wanted in text)
    if match.regex is not None:
        return _with_pattern(match.regex, fold, trim, shape, tests)
    return lambda text: all(test(shape(text)) for test in tests)


def _with_pattern(
    regex: str,
    fold: bool,
    trim: bool,
    shape: Callable[[str], str],
    tests: list[Callable[[str], bool]],
) -> Callable[[str], bool]:
    """The predicate of a trigger with a pattern, which sees the text before its case is folded."""
    try:
        search = re2.compile(f"(?i){regex}" if fold else regex).search
    except re2.error as error:
        raise ValueError(
            f"{regex!r} is not a regular expression that RE2 knows: {error}"
        ) from error

    def holds(text: str) -> bool:
        bare = text.strip() if trim else text
        return search(bare) is not None and all(test(shape(text)) for test in tests)

    return holds
