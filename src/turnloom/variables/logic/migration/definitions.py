"""Migration of one variable to a current definition."""

from typing import Any, NamedTuple, cast

from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.migration.fitting import EntryDraft, accepted, fit, probe
from turnloom.variables.logic.migration.layout import (
    SECTIONS,
    Became,
    FileEntry,
    Note,
    Remarks,
    Stub,
    is_older_source,
)
from turnloom.variables.logic.migration.sources import SOURCE_TYPES, convert_source
from turnloom.variables.logic.migration.triggers import fault_of
from turnloom.variables.logic.options import faults
from turnloom.variables.logic.types import misfit, same
from turnloom.variables.spec import BASE, VariableDefinition

# Keys next to the name in older formats that now belong to the source.
_FLAT = (
    *("default", "value", "triggers", "transitions", "env_var"),
    *("database_name", "collection", "search_by", "field", "fields", "query", "query_template"),
)

# The keys of current sources by type.
_CURRENT = {
    "static": ("value",),
    "environment": ("env_var", "default"),
    "database": (
        "database_name",
        "collection",
        "search_by",
        "filter",
        "field",
        "fields",
        "default",
    ),
    "file": ("path", "format"),
    "derived": ("default", "triggers"),
}


class Result(NamedTuple):
    """The migration of an entry: its note, and its current declaration, if any."""

    note: Note
    entry: dict[str, Any] | None
    stub: Stub | None = None


def define(item: FileEntry, database: str | None) -> Result:
    """Migrate a variable."""
    value = as_object(item.value)
    fault = item.fault
    if not fault and item.name in BASE:
        fault = "It is an id of the run and cannot be redefined."
    if not fault and not item.name.isprintable():
        fault = "Its name has unprintable characters."
    if not fault and value is None:
        fault = f"{preview(item.value)} is not an object."
    if fault or value is None:
        return Result(unreadable(item, fault), None)
    return _migrated(item, value, database)


def _migrated(item: FileEntry, value: dict[str, Any], database: str | None) -> Result:
    """Migrate a variable that can be read."""
    draft, was = _lift(item, value, database)
    if item.today and _passes(item.name, value):
        return Result(Note(item.where, item.name, was, "unchanged"), _nameless(value))
    entry = _rewrite(draft)
    if entry is None and draft.remarks.left:
        entry = {**draft.body, "source": {"type": draft.kind, **draft.source}}
        return Result(note_of(item, was, "left", draft.remarks), entry)
    if entry is None:
        return Result(note_of(item, was, "lost", draft.remarks), None)
    if item.today and same(entry, value):
        return Result(Note(item.where, item.name, was, "unchanged"), value)
    became = cast(Became, entry["source"]["type"])
    return Result(note_of(item, was, became, draft.remarks), entry, draft.remarks.stub)


def note_of(item: FileEntry, was: str, became: Became, remarks: Remarks) -> Note:
    """The note of an entry, with its remarks."""
    lost, assumed, left = map(tuple, (remarks.lost, remarks.assumed, remarks.left))
    return Note(item.where, item.name, was, became, lost=lost, assumed=assumed, left=left)


def unreadable(item: FileEntry, fault: str) -> Note:
    """The note of an entry that cannot be read: it stays as it is, or is lost."""
    if item.kept:
        return Note(item.where, item.name, unread(item), "left", left=(f"It stays: {fault}",))
    return Note(item.where, item.name, unread(item), "lost", lost=(fault,))


def unread(item: FileEntry) -> str:
    """The description of an unreadable entry."""
    if item.section:
        return f"entry of {item.section!r}"
    return f"key {item.name!r}" if item.name else "the whole file"


def _nameless(value: dict[str, Any]) -> dict[str, Any]:
    return {key: said for key, said in value.items() if key != "name"}


def _passes(name: str, entry: dict[str, Any]) -> bool:
    """Whether a definition passes the current check."""
    definition = accepted(name, entry)
    if definition is None or entry.get("name", name) != name:
        return False
    source: dict[str, Any] = entry["source"]
    if is_older_source(source) or (definition.type is None and source["type"] != "static"):
        return False
    plain = probe(name, definition.type)
    values = (source.get("value"), source.get("default"))
    if any(misfit(plain, allowed) for allowed in definition.enum or ()) or any(faults(definition)):
        return False
    return not any(misfit(definition, value) for value in values) and not any(
        fault_of(definition, trigger) for trigger in source.get("triggers") or ()
    )


def _lift(item: FileEntry, value: dict[str, Any], database: str | None) -> tuple[EntryDraft, str]:
    """An entry with its source separated, and a description of its old form."""
    remarks = Remarks()
    body = dict(value)
    if body.pop("name", item.name) != item.name:
        remarks.lost.append(f"Its name {preview(value['name'])} is replaced by {item.name!r}.")
    source = _source(body, remarks)
    for alias in (body, source):
        if "default_value" in alias and "default" not in alias:
            alias["default"] = alias.pop("default_value")
    for key in _FLAT:
        if key in body and key not in source:
            source[key] = body.pop(key)
    said = source.pop("type", None)
    if said is None and not SECTIONS.get(item.section) and _names_source(body.get("type")):
        said = body.pop("type")
    kind = _kind(item, said, source, remarks)
    draft = EntryDraft(item.name, kind, body, source, database=database, remarks=remarks)
    return draft, _was(item, said)


def _names_source(word: Json) -> bool:
    return isinstance(word, str) and word in SOURCE_TYPES


def _source(body: dict[str, Any], remarks: Remarks) -> dict[str, Any]:
    """The source of an entry, under `source` or, in the oldest format, `database`."""
    said, stored = body.pop("source", None), as_object(body.get("database"))
    if isinstance(said, str):
        return {"type": said}
    if said is not None and as_object(said) is None:
        remarks.lost.append(f"Key 'source' has the invalid value {preview(said)}; it is dropped.")
    found = dict(as_object(said) or {})
    if not found and stored is not None:
        del body["database"]
        found = {"type": "database", **stored}
    return found


def _kind(item: FileEntry, said: Json, source: dict[str, Any], remarks: Remarks) -> str:
    """The kind of source that an entry declares, or else the one that its keys imply."""
    by_section = SECTIONS.get(item.section, "")
    if said is not None:
        kind = said if isinstance(said, str) else preview(said)
    elif by_section:
        kind = by_section
    else:
        kinds = {"collection": "database", "env_var": "environment", "value": "static"}
        kind = next((kinds[key] for key in kinds if source.get(key) is not None), "runtime")
        if item.section:
            remarks.assumed.append(f"It had no source; {kind!r} is assumed.")
    return "flag" if by_section == kind == "derived" else kind


def _was(item: FileEntry, said: Json) -> str:
    source = f"source type {preview(said)}" if said is not None else ""
    if item.section == "definitions":
        return source or "no source"
    shape = f"older format {item.section!r}" if item.section else "older format without sections"
    return f"{shape}, {source}" if source else shape


def _rewrite(draft: EntryDraft) -> dict[str, Any] | None:
    """The current definition; whatever has no counterpart is noted."""
    source = convert_source(draft)
    if source is None:
        return None
    entry = fit(draft, source)
    definition = probe(draft.name, entry.get("type"), entry.get("enum"))
    for trigger in as_array(source.get("triggers")) or ():
        is_noted = any(trigger is each for each in draft.faulty)
        if not is_noted and (why := fault_of(definition, trigger)) is not None:
            draft.remarks.left.append(f"Trigger {preview(trigger)} stays as it is: {why}.")
    source |= draft.remarks.drop(draft.source, "the source", _CURRENT[source["type"]])
    entry |= draft.remarks.drop(draft.body, "the variable", [*VariableDefinition.model_fields])
    found = accepted(draft.name, {**entry, "source": source})
    for fault in faults(found) if found else ():
        draft.remarks.lost.append(f"Key {fault.key!r} is dropped: {fault.why}")
        del entry[fault.key]
    return {**entry, "source": source}
