"""Variables as tests declare them."""

from typing import Any

from weft.kernel.values import Json
from weft.variables.logic.derivation import Triggers
from weft.variables.spec import AgentText, Definition


def environment(type: str, default: Json = None, **other: Any) -> Definition:
    """A variable from the environment variable X."""
    source = {"type": "environment", "env_var": "X", "default": default}
    return Definition.model_validate({"name": "x", "type": type, "source": source, **other})


def trigger(agent: str = "A", /, **said: Any) -> dict[str, Any]:
    """A trigger on texts of an agent; what `match` takes goes there."""
    match = {key: said.pop(key) for key in ("equals", "contains", "regex") if key in said}
    return {"type": "agent_text", "agent": agent, "match": match, **said}


def checked(raw: dict[str, Any]) -> AgentText:
    """A trigger as a model."""
    return AgentText.model_validate(raw)


def derived(name: str, *triggers: dict[str, Any], default: Json = False) -> Definition:
    """A derived variable."""
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return Definition.model_validate({"name": name, "source": source})


def triggers_of(*definitions: Definition) -> Triggers:
    """The index of the triggers of these variables."""
    return Triggers(definitions)
