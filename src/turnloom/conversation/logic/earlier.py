"""Handoffs and hooks as other releases of MozaiksAI write them, in today's words."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from turnloom.kernel.values import Json, as_array, as_data, as_object, preview

# The list of rules in the file `transition_graph` of later releases.
TRANSITIONS = "transition_rules"

# The list of hooks in the file `middleware` of later releases.
MIDDLEWARE = "prompt_middleware"

# The keys of a handoff in an older guide, and the current ones.
_OLDER = {"from": "source_agent", "to": "target_agent"}
_KINDS = {"after_turn": "after_work"}
_BY_TOOL = "Derive a variable by a `tool_response` trigger, and compare it in an expression"


class TodaysRule(NamedTuple):
    """A handoff in today's words: what it was, what was assumed, and what is left to the author."""

    rule: dict[str, Any]
    was: str
    assumed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def todays_rule(value: Json) -> TodaysRule | None:
    """A handoff of another release in today's words; None if it is one of today."""
    rule = as_object(value)
    if rule is None:
        return None
    if "source_agent" not in rule and _OLDER.keys() <= rule.keys():
        return _older(rule)
    if "transition_type" in rule and "handoff_type" not in rule:
        return _later(rule)
    return None


def other_words(value: Json) -> Iterator[str]:
    """The keys by which the handoffs of other releases are known."""
    rule = as_object(value) or {}
    yield from (key for key in (*_OLDER, "transition_type") if key in rule)


def _older(rule: Mapping[str, Any]) -> TodaysRule:
    """A handoff of an older guide, with `from` and `to`."""
    todays = {_OLDER.get(key, key): said for key, said in rule.items()}
    was = f"{preview(rule['from'])} to {preview(rule['to'])}"
    if "handoff_type" in todays:
        return TodaysRule(todays, was)
    kind = "condition" if todays.get("condition") else "after_work"
    assumed = f"It had no `handoff_type`; {kind!r} is assumed."
    return TodaysRule({**todays, "handoff_type": kind}, was, assumed=(assumed,))


def _later(rule: Mapping[str, Any]) -> TodaysRule:
    """A transition of a later release: its type and its condition have other words."""
    todays = {key: said for key, said in rule.items() if key != "transition_type"}
    kind = rule["transition_type"]
    todays["handoff_type"] = _KINDS.get(kind, kind) if isinstance(kind, str) else kind
    was = f"transition {preview(kind)}"
    match rule.get("condition_type"):
        case "context_equals" if isinstance(rule.get("condition_key"), str):
            key, wanted = todays.pop("condition_key"), todays.pop("condition_value", None)
            todays["condition_type"] = "expression"
            todays["condition"] = f"${{{key}}} == {_literal(wanted)}"
        case "context_expression" if "context_expression" in rule:
            todays["condition_type"] = "expression"
            todays["condition"] = todays.pop("context_expression")
        case "tool_called":
            left = f"It fires after a call of {preview(rule.get('tool_name'))}. {_BY_TOOL}."
            return TodaysRule(todays, was, left=(left,))
        case _:
            pass
    return TodaysRule(todays, was)


def _literal(value: Json) -> str:
    """A value as conditions write it."""
    return str(value) if value is None or isinstance(value, bool) else as_data(value)


def prompt_middleware(value: Json) -> list[Json] | None:
    """The hooks that a file of a later release lists; None if it is none."""
    return as_array((as_object(value) or {}).get(MIDDLEWARE))


def todays_hook(value: Json) -> Json:
    """A hook of a later release in today's words."""
    hook = as_object(value)
    if hook is None:
        return value
    todays = {"hook_agent" if key == "agent" else key: said for key, said in hook.items()}
    return {"hook_type": "update_agent_state", **todays}


def transitions_in(value: Json) -> bool:
    """Whether a file lists the transitions of a later release."""
    return as_array((as_object(value) or {}).get(TRANSITIONS)) is not None
