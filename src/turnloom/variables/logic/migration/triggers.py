"""Migration of triggers and transitions."""

from collections.abc import Iterator
from typing import Any

from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.matching import reader
from turnloom.variables.logic.migration.fitting import EntryDraft, accepted
from turnloom.variables.logic.migration.layout import TRIGGER_KEYS, Remarks, is_text
from turnloom.variables.logic.types import misfit
from turnloom.variables.spec import UserTextTrigger, VariableDefinition

PREDICATES = ("equals", "contains", "regex")
_VALUELESS = ("ui_response", "function")
_TEXTS = ("agent_text", "user_text")
# Keys of agents' texts alone.
_AGENTS = ("agent", "hide", "ui_hidden")
_SWITCHES = ("trim", "ignore_case", "exact", "once", "hide")


def take_triggers(draft: EntryDraft) -> list[dict[str, Any]]:
    """The triggers of a source, from its `triggers` and `transitions`."""
    remarks, source = draft.remarks, draft.source
    raw = [*_each(source.pop("triggers", None), "trigger", remarks, ("triggers",))]
    stated = source.pop("transitions", None)
    for path, transition in _each(stated, "transition", remarks, ("transitions",)):
        raw += _from_transition(transition, remarks, path)
    converted: list[dict[str, Any]] = []
    for path, trigger in raw:
        base = ("source",) if path[0] in draft.nested else ()
        for found in _convert(draft, trigger):
            draft.origins["source", "triggers", len(converted)] = (*base, *path)
            converted.append(found)
    return converted


def fault_of(definition: VariableDefinition, trigger: dict[str, Any]) -> str | None:
    """Why the current check would reject a trigger, if it would."""
    if trigger.get("type") in _TEXTS:
        plain = {"type": "user_text", "match": trigger["match"]}
        try:
            reader(UserTextTrigger.model_validate(plain))
        except ValueError as error:
            return str(error).rstrip(".")
    if trigger["type"] in _VALUELESS or "from" in trigger or "capture" in trigger:
        return None
    return misfit(definition, trigger.get("value", True))


_Raw = tuple[Path, dict[str, Any]]


def _each(value: Json, what: str, remarks: Remarks, path: Path) -> Iterator[_Raw]:
    """The objects of a list, or a single object, with their paths."""
    items = as_array(value)
    if items is None and value is not None:
        items = [value]
    for number, item in enumerate(items or ()):
        entry = as_object(item)
        if entry is None:
            remarks.lost.append(f"A {what} is dropped: {preview(item)} is not an object.")
        else:
            yield (*path, number) if as_array(value) is not None else path, dict(entry)


def _from_transition(transition: dict[str, Any], remarks: Remarks, path: Path) -> Iterator[_Raw]:
    """The trigger of a transition; it sets the target of the transition."""
    before, to = transition.pop("from", None), transition.pop("to", True)
    stated = transition.pop("trigger", None) or [None]
    for where, trigger in _each(stated, "trigger", remarks, (*path, "trigger")):
        if before is not None:
            said = f"A transition fired only from {preview(before)}"
            remarks.lost.append(f"{said}; its trigger now fires from any value.")
        if trigger.get("type") != "ui_response":
            yield where, trigger if to is True else {**trigger, "value": to}
        else:
            if to is not True:
                said = f"A transition set {preview(to)}"
                remarks.lost.append(f"{said}; a UI answer now sets its own value.")
            yield where, trigger
    remarks.drop(transition, "a transition")


def _convert(draft: EntryDraft, trigger: dict[str, Any]) -> list[dict[str, Any]]:
    said = preview(dict(trigger))
    match trigger.get("type"):
        case "agent_text" | "user_text":
            found, why = _text(draft, trigger)
        case "ui_response":
            found, why = _ui_response(draft, trigger)
        case kind:
            known = accepted("x", {"source": {"type": "derived", "triggers": [trigger]}})
            found, why = [trigger] if known else [], f"type {preview(kind)} is unknown"
    if not found:
        draft.remarks.left.append(f"Trigger {said} stays as it is: {why}.")
        draft.faulty.append(trigger)
    return found or [trigger]


def _text(draft: EntryDraft, trigger: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """A text trigger; predicates next to `type` move into `match`, `ui_hidden` becomes `hide`. The
    user's messages have no agent, and cannot be hidden from the user."""
    rest = dict(trigger)
    match = rest.pop("match", None)
    kept = {"type": rest.pop("type")}
    found = dict(as_object(match) or {})
    for key in PREDICATES:
        if (flat := rest.pop(key, None)) is not None:
            found.setdefault(key, flat)
    if kept["type"] == "agent_text":
        kept["agent"] = rest.pop("agent", None)
        if not is_text(kept["agent"]):
            return [], "it has no `agent`"
    texts = [key for key in PREDICATES if found.get(key) == "" or is_text(found.get(key))]
    predicates = {key: found.pop(key) for key in texts}
    if not predicates:
        return [], "it has no `equals`, `contains` or `regex`"
    draft.remarks.drop(found, "a `match`")
    options = _options(draft, rest, kept["type"])
    if draft.kind == "state" and len(predicates) > 1:
        draft.remarks.assumed.append("One predicate was enough; each becomes a trigger.")
        parts = [{key: said} for key, said in predicates.items()]
    else:
        parts = [predicates]
    return [{**kept, "match": part, **options} for part in parts], ""


def _options(draft: EntryDraft, rest: dict[str, Any], kind: str) -> dict[str, Any]:
    """The options of a text trigger; the rest is noted."""
    if kind == "user_text":
        foreign = {key: rest.pop(key) for key in _AGENTS if key in rest}
        draft.remarks.drop(foreign, "a trigger")
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
