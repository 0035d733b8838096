"""Handoffs that an agent's model decides: offered to it as tools."""

import re
from collections.abc import Mapping

from turnloom.agents.spec import ToolSchema, Transfer
from turnloom.conversation.spec import Rule
from turnloom.kernel.values import Json, as_data

_PLACE = re.compile(r"\$\{\s*([^\W\d]\w*)\s*\}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")

# What the names of these tools begin with.
TRANSFER = "transfer_to_"

# How many characters of a target's name stand in the name of its tool; providers take 64 in all.
_NAME = 40


def names_in(condition: str) -> list[str]:
    """The variables that a condition in words has a place for."""
    return list(dict.fromkeys(_PLACE.findall(condition)))


def transfer(rule: Rule, values: Mapping[str, Json], absent: Mapping[str, str]) -> Transfer:
    """A handoff as a tool, its condition in words with the values of this moment."""

    def value(found: re.Match[str]) -> str:
        if (name := found[1]) in values:
            return as_data(values[name])
        return f"absent ({absent.get(name, 'not set')})"

    name = f"{TRANSFER}{_UNFIT.sub('_', rule.target)[:_NAME]}_{rule.number}"
    told = f"Hand over to {rule.target}. {_PLACE.sub(value, rule.said)}"
    parameters: dict[str, Json] = {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    return Transfer(ToolSchema(name, told, parameters), rule.number, rule.target)
