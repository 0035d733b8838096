"""Conditions on variables: one or two equalities, parsed from text."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnloom.kernel.interruption import Interrupted
from turnloom.kernel.values import Json, preview
from turnloom.variables.logic.types import same
from turnloom.variables.spec.unknown import Unknown

FORM = 'Write `${name} == True`, `name is true` or `${a} == True AND ${b} == "x"`.'

_TERM = re.compile(
    r"""\s*(?:\$\{\s*(?P<braced>[^\W\d]\w*)\s*\}|(?P<bare>[^\W\d]\w*))\s*
        (?:==|\bis\b)\s*
        (?P<value>"[^"]*"|'[^']*'|-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?
                 |[Tt]rue|[Ff]alse|TRUE|FALSE|None|null)(?!\w)\s*""",
    re.VERBOSE,
)
_WHEN = re.compile(r"\s*when\b", re.IGNORECASE)
_AND = re.compile(r"and\b", re.IGNORECASE)
_ALWAYS = ("true", "True", "TRUE")


class Term(NamedTuple):
    """A variable and its required value."""

    name: str
    value: Json


class Condition(NamedTuple):
    """One or two terms that must hold together; it always holds without any."""

    terms: tuple[Term, ...]


class ConditionVerdict(NamedTuple):
    """The result of a condition: whether it holds, the values it read, and why it failed."""

    holds: bool
    saw: dict[str, Json]
    why_not: str = ""


class UndecidedCondition(Interrupted):
    """A condition depends on values that a backtest does not know."""

    def __init__(self, unknown: Sequence[Unknown]) -> None:
        super().__init__(", ".join(each.what for each in unknown))
        self.unknown = tuple(unknown)


def parse_condition(text: str) -> Condition:
    """Parse a condition.

    Raises:
        ValueError: the syntax is invalid.
    """
    if text.strip() in _ALWAYS:
        return Condition(())
    position, terms = 0, list[Term]()
    if when := _WHEN.match(text):
        position = when.end()
    while True:
        term = _TERM.match(text, position)
        if term is None:
            raise ValueError(f"Condition {text!r} must be one equality or two with AND. {FORM}")
        terms.append(Term(term["braced"] or term["bare"], _literal(term["value"])))
        position = term.end()
        if position == len(text):
            return Condition(tuple(terms))
        joint = _AND.match(text, position)
        if joint is None or len(terms) == 2:
            raise ValueError(f"Condition {text!r} has unexpected {text[position:]!r}. {FORM}")
        position = joint.end()


def _literal(text: str) -> Json:
    if text == "None":
        return None
    return text[1:-1] if text[0] in "\"'" else json.loads(text.lower())


def judge(
    condition: Condition, values: Mapping[str, Json], absent: Mapping[str, str]
) -> ConditionVerdict:
    """Evaluate the condition; `absent` says why a name has no value. A term that does not hold
    decides, even if another one is unknown.

    Raises:
        UndecidedCondition: it depends on an unknown value, in a backtest.
    """
    saw: dict[str, Json] = {}
    unknown: list[Unknown] = []
    for name, wanted in condition.terms:
        if name not in values:
            return ConditionVerdict(False, saw, f"{name} is absent: {absent.get(name, 'not set')}")
        value = saw[name] = values[name]
        if isinstance(value, Unknown):
            unknown.append(value)
        elif not same(value, wanted):
            return ConditionVerdict(
                False, saw, f"{name} is {preview(value)}, not {preview(wanted)}"
            )
    if unknown:
        raise UndecidedCondition(unknown)
    return ConditionVerdict(True, saw)
