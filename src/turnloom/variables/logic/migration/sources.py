"""Migration of sources to the four current ones."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.migration.fitting import EntryDraft
from turnloom.variables.logic.migration.layout import is_text
from turnloom.variables.logic.migration.triggers import take_triggers
from turnloom.variables.spec import BASE

Source = dict[str, Any]

# `{{runtime.app_id}}`, `{{app_id}}` and `${app_id}` refer to a value of the run.
_NAMED = re.compile(r"\{\{\s*(?:runtime\.)?(\w+)\s*\}\}|\$\{(\w+)\}")
_TENANT = ("app_id", "enterprise_id")


def convert_source(draft: EntryDraft) -> Source | None:
    """The current source of a variable; None, with the reason noted, if there is none."""
    convert = _CONVERTERS.get(draft.kind)
    if convert is not None:
        return convert(draft)
    said = f"Source type {preview(draft.kind)} is unknown" if draft.kind else "It has no source"
    draft.remarks.lost.append(f"{said}.")
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
    draft.remarks.lost.append("It has no `env_var` and no default.")
    return None


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
    collection, field = source.pop("collection", None), _field(source)
    search_by, why = _search_by(draft)
    if not is_text(collection):
        why = "It has no `collection`."
    elif field is None:
        why = "It must name exactly one field of a document."
    if why or search_by is None:
        draft.remarks.lost.append(why)
        return None
    if source.get("database_name") is None and draft.database:
        draft.remarks.assumed.append(f"The file's default database is {draft.database!r}.")
        source["database_name"] = draft.database
    named = is_text(source.get("database_name"))
    where = {"database_name": source.pop("database_name")} if named else {}
    found = {"collection": collection, "search_by": search_by, "field": field}
    return {"type": "database", **where, **found, **_default(source)}


def _field(source: Source) -> str | None:
    """The field that is read, if there is exactly one."""
    if is_text(source.get("field")):
        return source.pop("field")
    fields = source.get("fields")
    found = [fields] if isinstance(fields, str) else as_array(fields) or []
    if len(found) != 1 or not is_text(found[0]):
        return None
    del source["fields"]
    return found[0]


def _search_by(draft: EntryDraft) -> tuple[str | None, str]:
    """The id of the run that selects the document, or the reason why there is none."""
    source = draft.source
    search_by = source.pop("search_by", None)
    queries = [source.pop(key, None) for key in ("query_template", "query")]
    query = next((each for each in queries if each), None)
    if query is not None:
        return _equality(query)
    if search_by is None:
        found = "app_id" if draft.kind == "data_reference" else "enterprise_id"
        draft.remarks.assumed.append(f"It had no `search_by`; {found!r} is assumed.")
        return found, ""
    if search_by in BASE:
        return search_by, ""
    return None, f"Its `search_by` {preview(search_by)} is not an id of the run."


def _equality(query: Json) -> tuple[str | None, str]:
    """The id of the run that a query compares with the field of that name, if it does only that."""
    why = f"Its query {preview(query)} is not a single equality with an id of the run."
    conditions = as_object(query) or {}
    for key, value in conditions.items():
        named = _NAMED.fullmatch(value) if isinstance(value, str) else None
        base = (named[1] or named[2]) if named else None
        is_same = key == base or (key in _TENANT and base in _TENANT)
        if is_same and key in BASE and len(conditions) == 1:
            return key, ""
    return None, why


def _default(source: Source) -> Mapping[str, Json]:
    return {"default": source.pop("default")} if "default" in source else {}


def _gone(kind: str, instead: str) -> Callable[[EntryDraft], Source | None]:
    def refuse(draft: EntryDraft) -> Source | None:
        draft.remarks.lost.append(f"Source type {kind!r} has no counterpart. {instead}")
        if "default" in draft.source:
            said = preview(draft.source["default"])
            draft.remarks.lost.append(f"Its default was {said}.")
        return None

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
    "computed": _gone(
        "computed", "If a tool or hook sets it, declare it as `derived` without triggers."
    ),
    "data_entity": _gone("data_entity", "Write the documents in a tool."),
    "external": _gone("external", "Call the service in a tool or hook that sets a variable."),
    "file": _gone("file", "Read the file in a hook, or declare its content as a `static` value."),
}

# Kinds of sources that an entry without a source may have as its type.
SOURCE_TYPES = frozenset(_CONVERTERS) - {"flag"}
