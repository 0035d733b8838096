"""Compare what a replay decides with what the log has."""

from datetime import datetime
from typing import Any, cast

import msgspec

from turnloom.log.spec import Event, Fact

# Fields of facts that say where code stands and which engine a deployment has, not what is decided.
UNCOMPARED = frozenset({"stack", "engine"})


def is_same_event(recorded: Event, decided: Event) -> bool:
    """Whether a decided event is the recorded one, apart from times."""
    return (
        recorded.id == decided.id
        and recorded.kind == decided.kind
        and recorded.actor == decided.actor
        and recorded.cause == decided.cause
        and is_same_fact(recorded.data, decided.data)
    )


def is_same_fact(recorded: Fact, decided: Fact) -> bool:
    """Whether two facts are the same, apart from times and stacks."""
    if recorded is decided or recorded == decided:
        return True
    return comparable(recorded) == comparable(decided)


def comparable(fact: Fact) -> dict[str, Any]:
    """A fact as plain data, without times, stacks, engines, and the words that say more about what
    was withheld: another release may choose others."""
    plain = msgspec.to_builtins(fact, builtin_types=(datetime,), order="sorted")
    if "withheld" in plain:
        plain["withheld"] = [{**each, "detail": ""} for each in plain["withheld"]]
    return {key: _timeless(each) for key, each in plain.items() if key not in UNCOMPARED}


def _timeless(value: Any) -> Any:
    if isinstance(value, datetime):
        return "a time"
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in cast(dict[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_timeless(each) for each in cast(list[Any], value)]
    return value
