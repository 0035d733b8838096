"""Derived variables: which triggers an event can touch, and what it changes."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

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
        """The changes that a message of an agent brings, given the values of this moment.

        Of several triggers of one variable that match, the last one declared decides.
        """
        found: dict[str, Change] = {}
        for rule in self._by_agent.get(agent, ()):
            spent = rule.trigger.once and rule.writer in fired
            if not spent and rule.matches(text):
                found[rule.variable] = Change(rule.variable, rule.trigger.value, rule.writer)
        return [each for each in found.values() if not same(values.get(each.name), each.value)]

    def hides(self, agent: str, text: str) -> bool:
        """Whether a message is a control word that the user need not see."""
        rules = self._by_agent.get(agent, ())
        return any(rule.trigger.hide and rule.matches(text) for rule in rules)


def matcher(trigger: AgentText) -> Callable[[str], bool]:
    """The predicate of a trigger; every part of its `match` must hold.

    Raises:
        ValueError: the regular expression is not one that RE2 knows.
    """
    match = trigger.match
    fold = str.casefold if trigger.ignore_case and not trigger.exact else str
    trim = str.strip if trigger.trim and not trigger.exact else str
    tests: list[Callable[[str], bool]] = []
    if match.equals is not None:
        whole = fold(trim(match.equals))
        tests.append(lambda text: fold(text) == whole)
    if match.contains is not None:
        part = fold(match.contains)
        tests.append(lambda text: part in fold(text))
    if match.regex is not None:
        search = _pattern(match.regex, ignore_case=fold is str.casefold).search
        tests.append(lambda text: search(text) is not None)
    return lambda text: all(test(trimmed) for trimmed in (trim(text),) for test in tests)


def _pattern(regex: str, *, ignore_case: bool) -> Any:
    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False  # the diagnostic says it
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace")
        message = f"{regex!r} is not a regular expression that RE2 knows: {why}."
        raise ValueError(message) from error
