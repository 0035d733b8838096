"""Values that would have fired a rule: the smallest set, over declared domains."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

from turnloom.explain.spec.route import ChangedValue, FailedPart
from turnloom.kernel.values import Json
from turnloom.variables.logic.conditions import Condition
from turnloom.variables.logic.types import misfit, same
from turnloom.variables.spec import VariableDefinition

# The most values that are changed at once.
MOST = 2


class _Else:
    """A value unequal to every value that a condition names."""


ELSE = _Else()


def failed_parts(
    condition: Condition, values: Mapping[str, Json], absent: Mapping[str, str]
) -> tuple[FailedPart, ...]:
    """The terms of a condition that do not hold."""
    return tuple(
        FailedPart(name, wanted, values.get(name), _absence(name, values, absent))
        for name, wanted in condition.terms
        if name not in values or not same(values[name], wanted)
    )


def _absence(name: str, values: Mapping[str, Json], absent: Mapping[str, str]) -> str:
    return "" if name in values else absent.get(name, "not set")


def domain_of(definition: VariableDefinition | None, constants: Iterable[Json]) -> list[Any]:
    """The values that a variable may have, as far as conditions tell them apart.

    Conditions compare for equality only. So the constants that they name, and any other value,
    stand for all values of a declared type.
    """
    if definition is None:
        return []
    if definition.enum is not None:
        return [each for each in definition.enum if misfit(definition, each) is None]
    if definition.type == "boolean":
        return [True, False]
    if definition.type is None:
        return []
    fitting = [each for each in constants if misfit(definition, each) is None]
    return [*fitting, ELSE]


def smallest_change(
    condition: Condition | None,
    others: Sequence[str],
    domains: Mapping[str, Sequence[Any]],
    values: Mapping[str, Json],
    fires: Callable[[Mapping[str, Any]], bool],
) -> tuple[ChangedValue, ...]:
    """The smallest set of changed values with which a rule fires; empty if more than `MOST` would
    have to change, or no values of their domains do.

    `others` are the variables that other rules read: one of those may fire first. `fires` evaluates
    the rule with changed values.
    """
    own = dict(condition.terms) if condition else {}
    if condition and any(not same(own[name], wanted) for name, wanted in condition.terms):
        return ()  # it wants two values of one variable
    needed = {n: v for n, v in own.items() if n not in values or not same(values[n], v)}
    if any(not _is_in(value, domains.get(name, ())) for name, value in needed.items()):
        return ()
    free = [name for name in others if name not in own]
    for size in range(MOST - len(needed) + 1):
        for beside in _assignments(free, size, domains, values):
            changed = {**needed, **beside}
            if changed and fires(changed):
                return tuple(_changed(name, changed[name], values) for name in changed)
    return ()


def _assignments(
    names: Sequence[str],
    size: int,
    domains: Mapping[str, Sequence[Any]],
    values: Mapping[str, Json],
) -> Iterator[dict[str, Any]]:
    """Every change of exactly so many of the variables."""
    for chosen in combinations(names, size):
        options = [
            [
                each
                for each in domains.get(name, ())
                if name not in values or not same(each, values[name])
            ]
            for name in chosen
        ]
        for picked in product(*options):
            yield dict(zip(chosen, picked, strict=True))


def _is_in(value: Json, domain: Sequence[Any]) -> bool:
    return any(each is not ELSE and same(each, value) for each in domain)


def _changed(name: str, value: Any, values: Mapping[str, Json]) -> ChangedValue:
    is_else = value is ELSE
    becomes = None if is_else else value
    was, is_absent = values.get(name), name not in values
    return ChangedValue(name, was, becomes, anything_else=is_else, absent=is_absent)
