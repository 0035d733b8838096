"""Migration of one variable to a current definition."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_array, as_data, as_object, preview
from turnloom.variables.logic.migration.fitting import (
    EntryDraft,
    accepted,
    fit,
    is_free_text,
    probe,
)
from turnloom.variables.logic.migration.layout import (
    FOREIGN,
    SECTIONS,
    SOURCE_KEYS,
    Became,
    FileEntry,
    Note,
    Remarks,
    Stub,
    UnconvertedSource,
    is_older_source,
)
from turnloom.variables.logic.migration.sources import SOURCE_TYPES, convert_source
from turnloom.variables.logic.migration.triggers import fault_of
from turnloom.variables.logic.options import faults
from turnloom.variables.logic.types import same
from turnloom.variables.spec import BASE, VariableDefinition

# Keys next to the name in older formats that now belong to the source.
_FLAT = (
    *("default", "value", "triggers", "transitions", "env_var"),
    *("database_name", "collection", "search_by", "field", "fields", "query", "query_template"),
)

_OTHER = ("database", "default_value")

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
    """The migration of an entry: its note, its current declaration, if any, and the paths in the
    old entry of parts of the new one."""

    note: Note
    entry: Json = None
    stub: Stub | None = None
    origins: Mapping[Path, Path] = MappingProxyType({})


def define(item: FileEntry, database: str | None) -> Result:
    """Migrate a variable. What is broken stays as it is: the check names it."""
    value = as_object(item.value)
    if item.gone:
        return Result(Note(item.where, item.name, unread(item), "lost", lost=(item.fault,)))
    fault = item.fault or ("" if value is not None else f"{preview(item.value)} is not an object.")
    if not item.name.isprintable():
        fault = "Its name has unprintable characters."
    if fault or value is None:
        return Result(stays(item, fault), item.value)
    if item.today and not _is_older(value):
        return Result(_unchanged(item, _was(item, _kind_in(value))), value)
    if item.name in BASE:
        why = "It is an id of the run and cannot be redefined."
        return Result(Note(item.where, item.name, unread(item), "lost", lost=(why,)))
    return _migrated(item, value, database)


def _unchanged(item: FileEntry, was: str) -> Note:
    return Note(item.where, item.name, was, "unchanged")


def _kind_in(value: Mapping[str, Json]) -> Json:
    return (as_object(value.get("source")) or {}).get("type")


def _is_older(value: Mapping[str, Json]) -> bool:
    """Whether a variable is declared as older formats do."""
    source, word = as_object(value.get("source")), value.get("type")
    if source is None:
        said = value.get("source")
        return isinstance(said, str) or any(key in value for key in (*_FLAT, *_OTHER))
    older = is_older_source(source) or source.get("transitions") or "default_value" in source
    is_unset = source.get("type") == "static" and "default" in source and "value" not in source
    return bool(older) or is_unset or is_free_text(word)


def _migrated(item: FileEntry, value: dict[str, Any], database: str | None) -> Result:
    """Migrate a variable that can be read."""
    draft, was = _lift(item, value, database)
    entry = _rewrite(draft)
    if entry is None:
        kept = value if item.today and "source" in value else draft.kept
        return Result(note_of(item, was, "left", draft.remarks), kept)
    if item.today and same(entry, value):
        return Result(_unchanged(item, was), value)
    became = cast(Became, entry["source"]["type"])
    note = note_of(item, was, became, draft.remarks)
    return Result(note, entry, draft.remarks.stub, draft.origins)


def refusal(name: str, value: Json) -> UnconvertedSource | None:
    """Why a variable stays as older formats declare it, and what does it instead."""
    entry = as_object(value)
    if entry is None or not _is_older(entry):
        return None
    item = FileEntry("", name, "definitions", entry, path=(), today=True)
    draft, _ = _lift(item, entry, None)
    if convert_source(draft) is not None or draft.remarks.refused is None:
        return None
    why, instead = draft.remarks.refused
    declared = fit(draft, {"type": "derived"}) | {"source": {"type": "derived"}}
    return UnconvertedSource(why, f"{instead} Declare it so: `{as_data({name: declared})[1:-1]}`.")


def note_of(item: FileEntry, was: str, became: Became, remarks: Remarks) -> Note:
    """The note of an entry, with its remarks."""
    lost, assumed, left = map(tuple, (remarks.lost, remarks.assumed, remarks.left))
    return Note(item.where, item.name, was, became, lost=lost, assumed=assumed, left=left)


def replaced(said: Json, name: str) -> str:
    """The sentence about a name of an entry that another one replaces."""
    return f"Its name {preview(said)} is replaced by {name!r}."


def stays(item: FileEntry, fault: str) -> Note:
    """The note of an entry that cannot be read, and stays as it is."""
    return Note(item.where, item.name, unread(item), "left", left=(f"It stays: {fault}",))


def unread(item: FileEntry) -> str:
    """The description of an unreadable entry."""
    if item.section:
        return f"entry of {item.section!r}"
    return f"key {item.name!r}" if item.name else "the whole file"


def _lift(item: FileEntry, value: dict[str, Any], database: str | None) -> tuple[EntryDraft, str]:
    """An entry with its source separated, and a description of its old form."""
    remarks = Remarks()
    body = dict(value)
    if body.pop("name", item.name) != item.name:
        remarks.lost.append(replaced(value["name"], item.name))
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
    lookup = "data_reference" if kind == "database" else kind
    kept = {**body, "source": {"type": lookup, **source}}
    nested = frozenset(as_object(value.get("source")) or ())
    draft = EntryDraft(
        item.name,
        kind,
        body,
        source,
        kept=kept,
        nested=nested,
        database=database,
        remarks=remarks,
    )
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
    known = (*_CURRENT[source["type"]], *SOURCE_KEYS.get(draft.kind, ()))
    source |= draft.remarks.drop(draft.source, "the source", known)
    entry |= {key: draft.body.pop(key) for key in FOREIGN if key in draft.body}
    entry |= draft.remarks.drop(draft.body, "the variable", [*VariableDefinition.model_fields])
    found = accepted(draft.name, {**entry, "source": source})
    for fault in faults(found) if found else ():
        draft.remarks.left.append(f"Key {fault.key!r} stays: {fault.why}")
    return {**entry, "source": source}
