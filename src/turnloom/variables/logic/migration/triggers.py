"""Migration of triggers and transitions."""

from collections.abc import Iterator
from typing import Any

from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.matching import reader
from turnloom.variables.logic.migration.fitting import EntryDraft, accepted
from turnloom.variables.logic.migration.layout import TRIGGER_KEYS, Remarks, is_text
from turnloom.variables.logic.types import misfit
from turnloom.variables.spec import AgentTextTrigger, VariableDefinition

PREDICATES = ("equals", "contains", "regex")
_VALUELESS = ("ui_response", "function")
_SWITCHES = ("trim", "ignore_case", "exact", "once", "hide")


def take_triggers(draft: EntryDraft) -> list[dict[str, Any]]:
    """The triggers of a source, from its `triggers` and `transitions`."""
    remarks = draft.remarks
    raw = list(_each(draft.source.pop("triggers", None), "trigger", remarks))
    for transition in _each(draft.source.pop("transitions", None), "transition", remarks):
        raw += _from_transition(transition, remarks)
    return [found for trigger in raw for found in _convert(draft, trigger)]


def fault_of(definition: VariableDefinition, trigger: dict[str, Any]) -> str | None:
    """Why the current check would reject a trigger, if it would."""
    if trigger.get("type") == "agent_text":
        plain = {"type": "agent_text", "agent": "x", "match": trigger["match"]}
        try:
            reader(AgentTextTrigger.model_validate(plain))
        except ValueError as error:
            return str(error).rstrip(".")
    if trigger["type"] in _VALUELESS or "from" in trigger or "capture" in trigger:
        return None
    return misfit(definition, trigger.get("value", True))


def _each(value: Json, what: str, remarks: Remarks) -> Iterator[dict[str, Any]]:
    """The objects of a list, or a single object."""
    items = as_array(value)
    for item in items if items is not None else [value] if value is not None else ():
        entry = as_object(item)
        if entry is None:
            remarks.lost.append(f"A {what} is dropped: {preview(item)} is not an object.")
        else:
            yield dict(entry)


def _from_transition(transition: dict[str, Any], remarks: Remarks) -> Iterator[dict[str, Any]]:
    """The trigger of a transition; it sets the target of the transition."""
    before, to = transition.pop("from", None), transition.pop("to", True)
    for trigger in _each(transition.pop("trigger", None) or [None], "trigger", remarks):
        if before is not None:
            said = f"A transition fired only from {preview(before)}"
            remarks.lost.append(f"{said}; its trigger now fires from any value.")
        if trigger.get("type") != "ui_response":
            yield trigger if to is True else {**trigger, "value": to}
        else:
            if to is not True:
                said = f"A transition set {preview(to)}"
                remarks.lost.append(f"{said}; a UI answer now sets its own value.")
            yield trigger
    remarks.drop(transition, "a transition")


def _convert(draft: EntryDraft, trigger: dict[str, Any]) -> list[dict[str, Any]]:
    said = preview(dict(trigger))
    match trigger.get("type"):
        case "agent_text":
            found, why = _agent_text(draft, trigger)
        case "ui_response":
            found, why = _ui_response(draft, trigger)
        case kind:
            known = accepted("x", {"source": {"type": "derived", "triggers": [trigger]}})
            found, why = [trigger] if known else [], f"type {preview(kind)} is unknown"
    if not found:
        draft.remarks.left.append(f"Trigger {said} stays as it is: {why}.")
        draft.faulty.append(trigger)
    return found or [trigger]


def _agent_text(draft: EntryDraft, trigger: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """A text trigger; predicates next to `type` move into `match`, `ui_hidden` becomes `hide`."""
    rest = dict(trigger)
    agent, match = rest.pop("agent", None), rest.pop("match", None)
    found = dict(as_object(match) or {})
    for key in PREDICATES:
        if (flat := rest.pop(key, None)) is not None:
            found.setdefault(key, flat)
    if not is_text(agent):
        return [], "it has no `agent`"
    texts = [key for key in PREDICATES if found.get(key) == "" or is_text(found.get(key))]
    predicates = {key: found.pop(key) for key in texts}
    if not predicates:
        return [], "it has no `equals`, `contains` or `regex`"
    draft.remarks.drop(found, "a `match`")
    kept = {"type": rest.pop("type"), "agent": agent}
    options = _options(draft, rest)
    if draft.kind == "state" and len(predicates) > 1:
        draft.remarks.assumed.append("One predicate was enough; each becomes a trigger.")
        parts = [{key: said} for key, said in predicates.items()]
    else:
        parts = [predicates]
    return [{**kept, "match": part, **options} for part in parts], ""


def _options(draft: EntryDraft, rest: dict[str, Any]) -> dict[str, Any]:
    """The options of a text trigger; the rest is noted."""
    if (hidden := rest.pop("ui_hidden", None)) is not None:
        rest.setdefault("hide", hidden)
    kept = {"value": rest.pop("value")} if "value" in rest else {}
    for key in _SWITCHES:
        if isinstance(rest.get(key), bool):
            kept[key] = rest.pop(key)
    for key in ("from", "capture"):
        if key in rest and _takes(key, rest[key]):
            kept[key] = rest.pop(key)
    if draft.kind == "flag":
        kept.setdefault("exact", True)
    return {**kept, **draft.remarks.drop(rest, "a trigger", TRIGGER_KEYS)}


def _takes(key: str, value: Json) -> bool:
    """Whether a current text trigger has this key."""
    trigger = {"type": "agent_text", "agent": "x", "match": {"regex": "(x)"}, key: value}
    return accepted("x", {"source": {"type": "derived", "triggers": [trigger]}}) is not None


def _ui_response(draft: EntryDraft, trigger: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """A trigger for the answer of a UI tool."""
    rest = dict(trigger)
    kept = {"type": rest.pop("type")}
    for key in ("tool", "response_key"):
        kept[key] = rest.pop(key, None)
        if not is_text(kept[key]):
            return [], f"it has no `{key}`"
    if rest.get("apply") == "auto":
        kept["apply"] = rest.pop("apply")
    elif draft.kind == "state":
        kept["apply"] = "auto"
        draft.remarks.assumed.append("An answer sets it, as before, by `apply: auto`.")
    return [{**kept, **draft.remarks.drop(rest, "a trigger", TRIGGER_KEYS)}], ""
