"""The entries of a variables file of any format, and the notes of their migration."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from turnloom.kernel.values import Json, as_array, as_object, kind_of, nearest, preview

OUTER = "context_variables"
TODAY = ("definitions", "agents")
VIEWS = ("agents", "exposures")

# Sections with variables, and the default source of their entries.
SECTIONS = {
    "definitions": "",
    "variables": "",
    "defined_variables": "",
    OUTER: "",
    "database_variables": "database",
    "environment_variables": "environment",
    "declarative_variables": "static",
    "derived_variables": "derived",
    "derived": "derived",
    "runtime_variables": "runtime",
}
# Kinds of sources that only older formats have.
_OLDER_SOURCES = frozenset(
    {"config", "state", "data_reference", "data_entity", "computed", "external"}
    | {"runtime", "declarative", "build_context"}
)
# A path from the root of the project instead of the workflow folder.
# What starts with an underscore is no workflow: several of them share it.
FROM_ROOT = re.compile(r"(?:\./)*workflows/(?:(?=_)|[^/]+/)|(?:\./)+")
_DATABASES = ("database_name", "default_database_name", "default_database")

# Keys of older formats only.
OLDER = frozenset({*SECTIONS, *VIEWS, "schema_overview", *_DATABASES}) - {*TODAY, OUTER}
_BARE = frozenset({"type", "default", "enum", "value", "source", "description", "triggers"})


def is_older_source(source: Mapping[str, Any]) -> bool:
    """Whether a source is of an older format: by its type, or the path and keys of its file."""
    kind, path = source.get("type"), source.get("path")
    if kind == "file":
        is_from_root = isinstance(path, str) and FROM_ROOT.match(path) is not None
        return is_from_root or "encoding" in source
    return isinstance(kind, str) and kind in _OLDER_SOURCES


def is_bare(name: str, part: Json) -> bool:
    """Whether a key is a variable of a format without sections."""
    return is_text(name) and bool(_BARE & (as_object(part) or {}).keys())


class FileEntry(NamedTuple):
    """One entry of a file: its location, its name, and why it cannot be read, if so."""

    where: str
    name: str
    section: str
    value: Json
    today: bool = False
    fault: str = ""
    kept: bool = False  # as it is: it is misspelt, which the check says


class Layout(NamedTuple):
    """The entries of a file, whether it has the current layout, and its default database."""

    items: list[FileEntry]
    today: bool
    database: str | None


def read(value: Json) -> Layout:
    """The entries of a file of any format."""
    root = {OUTER: value} if as_array(value) is not None else as_object(value)
    if root is None:
        fault = f"The file must be an object, not {kind_of(value)}; nothing was read from it."
        return Layout([FileEntry("", "", "", None, fault=fault)], False, None)
    parts = list(_parts(root))
    items = [item for key, part in parts for item in _items(key, part)]
    return Layout(items, _is_today(value), _database(parts))


def _parts(root: dict[str, Any]) -> Iterator[tuple[str, Json]]:
    """The sections of a file, without their wrappers."""
    for key, part in root.items():
        inner = as_object(part)
        wraps = key == OUTER or (key == "variables" and any(k in SECTIONS for k in inner or ()))
        if wraps and inner is not None:
            yield from _parts(inner)
        else:
            yield str(key), part


def _is_today(value: Json) -> bool:
    root = as_object(value)
    if root is not None and OUTER in root:
        root = as_object(root[OUTER]) if len(root) == 1 else None
    return root is not None and all(key in TODAY for key in root)


def _database(parts: Sequence[tuple[str, Json]]) -> str | None:
    """The default database of the file."""
    for key, part in parts:
        named = (as_object(part) or {}).get("database_name") if key == "schema_overview" else part
        if (key == "schema_overview" or key in _DATABASES) and is_text(named):
            return named
    return None


def _items(key: str, part: Json) -> Iterator[FileEntry]:
    if key in SECTIONS or key in VIEWS:
        yield from _section(key, part)
    elif key == "schema_overview":
        fault = "It has no counterpart; declare the fields that agents need as variables."
        yield FileEntry(key, key, "", part, fault=fault)
    elif key in _DATABASES:
        fault = f"{preview(part)} is now set in each variable without a database."
        yield FileEntry(key, key, "", part, fault=fault)
    elif is_bare(key, part):
        yield FileEntry(key, key, "", part)
    else:
        fault, meant = f"{preview(part)} is not recognised.", nearest(key, [*SECTIONS, *VIEWS])
        yield FileEntry(key, key, "", part, fault=fault, kept=meant is not None)


def _section(section: str, part: Json) -> Iterator[FileEntry]:
    today = section in TODAY
    if (mapping := as_object(part)) is not None:
        for name, value in mapping.items():
            fault = "" if is_text(name) else f"{preview(name)} is not a name."
            yield FileEntry(
                f"{section}.{name}", str(name), section, value, today=today, fault=fault
            )
    elif (entries := as_array(part)) is not None:
        for number, value in enumerate(entries):
            yield _listed(f"{section}[{number}]", section, value)
    elif part is not None:
        fault = f"{preview(part)} is neither an object nor an array."
        yield FileEntry(section, section, section, part, fault=fault)


def _listed(where: str, section: str, value: Json) -> FileEntry:
    """An entry of a list, by its own name."""
    entry = as_object(value)
    if entry is None:
        return FileEntry(where, "", section, value, fault=f"{preview(value)} is not an object.")
    for key in name_keys(section):
        name: Json = entry.get(key)
        if is_text(name):
            rest = {other: said for other, said in entry.items() if other != key}
            return FileEntry(where, name, section, rest, today=section in TODAY and key == "name")
    return FileEntry(where, "", section, value, fault=f"It has no name: {preview(value)}.")


def is_text(value: Json) -> bool:
    """Whether a value is a non-empty text that UTF-8 can encode."""
    if not isinstance(value, str):
        return False
    return value != "" and value == value.encode(errors="replace").decode()


def name_keys(section: str) -> tuple[str, ...]:
    """The keys that hold the name of a list's entries."""
    return ("agent", "agent_name", "name") if section in VIEWS else ("name", "key")


_Source = Literal["static", "environment", "database", "file", "derived"]
Became = _Source | Literal["exposure", "rule", "left", "unchanged", "lost"]

# Keys of older formats that are dropped, and why.
_GONE = {
    "db_type": "the store is chosen in the settings",
    "refresh_strategy": "a value is read once, when the run starts",
    "persist": "every value of a run is in its log",
    "ui_hidden": "only a text of an agent can be hidden",
    "writer_ids": "only another system reads it",
}


# The keys of older sources by type, and of their triggers.
SOURCE_KEYS: Mapping[str, tuple[str, ...]] = {
    "config": ("env_var", "default", "required"),
    "state": ("default", "triggers", "transitions", "persist"),
    "data_reference": (
        *("db_type", "database_name", "collection", "query_template", "query", "search_by"),
        *("field", "fields", "refresh_strategy", "default"),
    ),
    "data_entity": (
        *("database_name", "collection", "schema", "entity_schema", "indexes", "write_strategy"),
        *("search_by", "default"),
    ),
    "computed": ("computation", "inputs", "output_type", "persist_to", "default"),
    "external": ("service", "operation", "params", "auth", "cache", "retry", "default"),
    "file": ("path", "format", "encoding", "default"),
    "runtime": ("default", "required"),
    "build_context": ("path", "default", "required"),
    "declarative": ("value", "default"),
}
TRIGGER_KEYS = tuple(
    "type agent match equals contains regex tool response_key ui_hidden value from capture once "
    "hide exact trim ignore_case apply".split()
)
# Keys of variables that other systems of later releases read.
FOREIGN = (
    *("authority_class", "model_visible", "tool_visible", "persisted", "routing"),
    *("authorization", "writer_ids"),
)
# Keys that some format has: none of them is misspelt.
EARLIER = frozenset(
    {key for keys in SOURCE_KEYS.values() for key in keys}
    | {*TRIGGER_KEYS, "to", "trigger", "default_value", "filter"}
)


class Note(NamedTuple):
    """The migration of one entry: its old form, its new form, what was lost, what was assumed, and
    what is left to the author, which the check names."""

    where: str
    name: str
    was: str
    became: Became
    lost: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Stub(NamedTuple):
    """A function of `derivations.py` that the author has to write, and what is known of it."""

    function: str
    variable: str
    about: tuple[str, ...] = ()


class Migrated(NamedTuple):
    """A file in the current format, whether it changed, a note per entry, and missing functions."""

    value: Json
    changed: bool
    notes: tuple[Note, ...]
    stubs: tuple[Stub, ...] = ()


@dataclass(slots=True)
class Remarks:
    """Remarks about one entry, collected during its migration."""

    lost: list[str] = field(default_factory=list[str])
    assumed: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])
    stub: Stub | None = None

    def drop(
        self, rest: Mapping[str, Any], what: str, known: Collection[str] = ()
    ) -> dict[str, Any]:
        """Note every key without a counterpart, and return those that are misspelt; keys without a
        value are ignored."""
        kept: dict[str, Any] = {}
        for key, value in rest.items():
            if key not in EARLIER and (meant := nearest(str(key), [*known])):
                self.left.append(f"Key {key!r} of {what} stays: it may be {meant!r}.")
                kept[key] = value
            elif value is not None and value != [] and value != {}:
                why = _GONE.get(key, "it has no counterpart")
                self.lost.append(f"Key {key!r} of {what} ({preview(value)}) is dropped: {why}.")
        return kept
