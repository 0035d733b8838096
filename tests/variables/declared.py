"""Variables as tests declare them, and triggers asked about one fact."""

from collections.abc import Set
from datetime import UTC, datetime
from typing import Any, NamedTuple

from turnloom.agents.events import AgentText as Said
from turnloom.kernel.values import Json
from turnloom.log.spec import Fact
from turnloom.variables.logic.derivation import Change, Triggers
from turnloom.variables.logic.triggers import definition_model
from turnloom.variables.spec import AgentTextTrigger, VariableDefinition

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Moment(NamedTuple):
    """What a run knows, as far as triggers look at it."""

    values: dict[str, Json]
    turns_of: dict[str, int] = {}


def environment(type: str, default: Json = None, **other: Any) -> VariableDefinition:
    """A variable from the environment variable X."""
    source = {"type": "environment", "env_var": "X", "default": default}
    return VariableDefinition.model_validate({"name": "x", "type": type, "source": source, **other})


def trigger(agent: str = "A", /, **said: Any) -> dict[str, Any]:
    """A trigger on texts of an agent; what `match` takes goes there."""
    match = {key: said.pop(key) for key in ("equals", "contains", "regex") if key in said}
    return {"type": "agent_text", "agent": agent, "match": match, **said}


def checked(raw: dict[str, Any]) -> AgentTextTrigger:
    """A trigger as a model."""
    return AgentTextTrigger.model_validate(raw)


def derived(
    name: str, *triggers: dict[str, Any], default: Json = False, **other: Any
) -> VariableDefinition:
    """A derived variable."""
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return definition_model().model_validate({"name": name, "source": source, **other})


def triggers_of(*definitions: VariableDefinition) -> Triggers:
    """The index of the triggers of these variables."""
    return Triggers({each.name: each for each in definitions})


def ask(
    index: Triggers,
    fact: Fact,
    values: dict[str, Json] | None = None,
    fired: Set[str] = frozenset(),
) -> list[Change]:
    """What a fact brings."""
    return index.derive(fact.kind, fact, Moment(values or {}), fired, AT)


def hear(
    index: Triggers, agent: str, text: str, values: dict[str, Json], fired: Set[str] = frozenset()
) -> list[Change]:
    """What a message of an agent brings."""
    return ask(index, Said(1, agent, text), values, fired)
