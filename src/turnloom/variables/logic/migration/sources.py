"""Migration of sources to the current ones."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from turnloom.errors import UsageError
from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.migration.fitting import EntryDraft, accepted
from turnloom.variables.logic.migration.layout import FROM_ROOT, Stub, UnconvertedSource, is_text
from turnloom.variables.logic.migration.triggers import take_triggers
from turnloom.variables.logic.paths import steps
from turnloom.variables.spec import BASE, syntax_of

Source = dict[str, Any]

# `{{runtime.app_id}}`, `{{app_id}}` and `${app_id}` refer to a value of the run.
_NAMED = re.compile(r"\{\{\s*(?:runtime\.)?(\w+)\s*\}\}|\$\{(\w+)\}")
_TENANT = ("app_id", "enterprise_id")
_BY_HOOK = "Read the document in a `before_chat` hook that sets the variable."


def convert_source(draft: EntryDraft) -> Source | None:
    """The current source of a variable; None, with the reason noted, if there is none."""
    convert = _CONVERTERS.get(draft.kind)
    if convert is not None:
        return convert(draft)
    said = f"Source type {preview(draft.kind)} is unknown" if draft.kind else "It has no source"
    draft.remarks.left.append(f"It stays: {said}.")
    return None


def _environment(draft: EntryDraft) -> Source | None:
    source = draft.source
    variable = source.pop("env_var", None)
    if isinstance(source.get("required"), bool) and source.pop("required"):
        draft.body["required"] = True
    if is_text(variable) and "\0" not in variable and "=" not in variable:
        return {"type": "environment", "env_var": variable, **_default(source)}
    if "default" in source:
        draft.remarks.assumed.append("It had no `env_var`; its default becomes its value.")
        return {"type": "static", "value": source.pop("default")}
    draft.remarks.left.append("It has no `env_var` and no default: add one.")
    return {"type": "environment"}


def _static(draft: EntryDraft) -> Source | None:
    source = draft.source
    if source.get("value") is not None or ("value" in source and source.get("default") is None):
        return {"type": "static", "value": source.pop("value")}
    source.pop("value", None)
    if "default" in source:
        said = "It had a default and no value, so tools may set it"
        draft.remarks.assumed.append(f"{said}; it becomes derived, since static ones are constant.")
        return {"type": "derived", **_default(source), "triggers": take_triggers(draft)}
    draft.remarks.assumed.append("It had no value; null is assumed.")
    return {"type": "static", "value": None}


def _derived(draft: EntryDraft) -> Source | None:
    source = draft.source
    explicit = "triggers" in source or draft.kind != "derived"
    triggers = take_triggers(draft)
    if draft.kind == "flag" and "default" not in source and "type" not in draft.body:
        draft.remarks.assumed.append("It had no default; false is assumed.")
        source["default"] = False
    found = {"type": "derived", **_default(source)}
    return {**found, "triggers": triggers} if explicit or triggers else found


def _database(draft: EntryDraft) -> Source | None:
    source = draft.source
    collection, fields = source.pop("collection", None), _fields(source)
    keys, why = _conditions(draft)
    if not fields:
        why = "It names no field of a document."
    if why:
        return _refuse(draft, why, _BY_HOOK)
    if source.get("database_name") is None and draft.database:
        draft.remarks.assumed.append(f"The file's default database is {draft.database!r}.")
        source["database_name"] = draft.database
    named = is_text(source.get("database_name"))
    where = {"database_name": source.pop("database_name")} if named else {}
    if not is_text(collection):
        draft.remarks.left.append("It has no `collection`: add it.")
    found = {**({"collection": collection} if is_text(collection) else {}), **keys}
    if len(fields) > 1:
        _become_object(draft)
        found["fields"] = fields
    else:
        found["field"] = fields[0]
    return {"type": "database", **where, **found, **_default(source)}


def _become_object(draft: EntryDraft) -> None:
    """Several fields of a document are an object."""
    word = draft.body.get("type")
    if word not in ("object", "document"):
        draft.body["type"] = "object"
        said = f"Type {preview(word)}" if word is not None else "No type"
        draft.remarks.assumed.append(f"{said} is now 'object': it has several fields.")


def _fields(source: Source) -> list[str]:
    """The fields that are read, each once; none if one of them is not a name."""
    if is_text(source.get("field")):
        return [source.pop("field")]
    fields = source.get("fields")
    found = [fields] if isinstance(fields, str) else as_array(fields) or []
    if not all(is_text(field) and _is_field(field) for field in found):
        return []
    source.pop("fields", None)
    return list(dict.fromkeys(found))


def _conditions(draft: EntryDraft) -> tuple[Source, str]:
    """The keys that select the document, or the reason why there are none."""
    source = draft.source
    search_by = source.pop("search_by", None)
    queries = [source.pop(key, None) for key in ("query_template", "query")]
    query = next((each for each in queries if each), None)
    if query is not None:
        return _query(query)
    if (filters := as_object(source.get("filter"))) is not None:
        del source["filter"]
        return {**({"search_by": search_by} if search_by in BASE else {}), "filter": filters}, ""
    if search_by is None:
        found = "app_id" if draft.kind == "data_reference" else "enterprise_id"
        draft.remarks.assumed.append(f"It had no `search_by`; {found!r} is assumed.")
        return {"search_by": found}, ""
    if search_by in BASE:
        return {"search_by": search_by}, ""
    return {}, f"Its `search_by` {preview(search_by)} is not an id of the run."


def _query(query: Json) -> tuple[Source, str]:
    """A query as `search_by` and `filter`, if it compares fields with ids and constants only."""
    conditions = as_object(query)
    if conditions is None:
        return {}, f"Its query {preview(query)} is not an object."
    found: Source = {}
    filters: Source = {}
    for key, value in conditions.items():
        base = _id_in(value)
        is_same = key == base or (key in _TENANT and base in _TENANT)
        if base is None and not _is_constant(key, value):
            said = f"Its query compares {key!r} with {preview(value)}"
            return {}, f"{said}, which a lookup cannot."
        if is_same and key in BASE and not found:
            found["search_by"] = key
        else:
            filters[key] = value if base is None else f"${{{base}}}"
    return {**found, **({"filter": filters} if filters else {})}, ""


def _id_in(value: Json) -> str | None:
    """The id of the run that a value of a query stands for."""
    named = _NAMED.fullmatch(value) if isinstance(value, str) else None
    base = (named[1] or named[2]) if named else None
    return base if base in BASE else None


def _is_constant(key: str, value: Json) -> bool:
    """Whether a filter accepts a key with this value, which is not a template."""
    if isinstance(value, str) and ("{{" in value or "${" in value):
        return False
    source = {"type": "database", "collection": "x", "field": "x", "filter": {key: value}}
    return _is_field(key) and accepted("x", {"source": source}) is not None


def _is_field(key: str) -> bool:
    try:
        return bool(steps(key))
    except UsageError:
        return False


def _file(draft: EntryDraft) -> Source | None:
    source, remarks = draft.source, draft.remarks
    said, format = source.pop("path", None), source.pop("format", None)
    if not is_text(said):
        remarks.left.append("It has no `path`: add it.")
        return {"type": "file", **({"format": format} if format else {})}
    path = FROM_ROOT.sub("", said.replace("\\", "/"))
    if accepted("x", {"source": {"type": "file", "path": path}}) is None:
        path = path.rstrip("/").rpartition("/")[2].lstrip(".") or "data.txt"
    if path != said:
        remarks.assumed.append(f"Its path was {said!r}; the folder must have {path!r}.")
    if str(source.get("encoding", "")).lower().replace("-", "") == "utf8":
        del source["encoding"]
    syntax = format if format in ("text", "json", "yaml") else syntax_of(path)
    if format not in (None, syntax):
        remarks.lost.append(f"Its format {preview(format)} is unknown; {syntax!r} is assumed.")
    return {"type": "file", "path": path, "format": syntax}


def _computed(draft: EntryDraft) -> Source | None:
    """A derived variable, whose function the author writes."""
    source, name = draft.source, draft.name
    function = f"derive_{re.sub(r'[^0-9A-Za-z_]', '_', name)}"
    about = [
        f"{key}: {preview(value)}"
        for key in ("computation", "inputs")
        if (value := source.pop(key, None)) is not None
    ]
    if "type" not in draft.body and is_text(source.get("output_type")):
        draft.body["type"] = source.pop("output_type")
    source.pop("output_type", None)
    draft.remarks.stub = Stub(function, name, tuple(about))
    draft.remarks.assumed.append(f"Write {function!r} in derivations.py; until then it raises.")
    trigger = {"type": "function", "function": function}
    return {"type": "derived", **_default(source), "triggers": [trigger]}


def _default(source: Source) -> Mapping[str, Json]:
    return {"default": source.pop("default")} if "default" in source else {}


def _refuse(draft: EntryDraft, why: str, instead: str) -> None:
    """Leave a source as it is; the check says the same."""
    draft.remarks.refused = UnconvertedSource(why, instead)
    draft.remarks.left.append(f"It stays: {why} {instead}")


def _gone(kind: str, instead: str) -> Callable[[EntryDraft], Source | None]:
    def refuse(draft: EntryDraft) -> Source | None:
        return _refuse(draft, f"Source type {kind!r} has no counterpart.", instead)

    return refuse


_CONVERTERS: Mapping[str, Callable[[EntryDraft], Source | None]] = {
    "static": _static,
    "declarative": _static,
    "environment": _environment,
    "config": _environment,
    "database": _database,
    "data_reference": _database,
    "derived": _derived,
    "flag": _derived,
    "state": _derived,
    "runtime": _derived,
    "computed": _computed,
    "data_entity": _gone(
        "data_entity", "Write the documents in a tool, and read them with a database variable."
    ),
    "external": _gone(
        "external",
        "Call the service in a tool, or in a `before_chat` hook, that sets the variable.",
    ),
    "build_context": _gone(
        "build_context", "Read the file in a `before_chat` hook that sets the variable."
    ),
    "file": _file,
}

# Kinds of sources that an entry without a source may have as its type.
SOURCE_TYPES = frozenset(_CONVERTERS) - {"flag"}
