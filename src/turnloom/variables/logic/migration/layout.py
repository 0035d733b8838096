"""The entries of a variables file of any format, and the notes of their migration."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from turnloom.kernel.documents import Path
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
        return is_from_root or "encoding" in source or source.get("default") is not None
    return isinstance(kind, str) and kind in _OLDER_SOURCES


def is_bare(name: str, part: Json) -> bool:
    """Whether a key is a variable of a format without sections, and no misspelt section."""
    has_keys = bool(_BARE & (as_object(part) or {}).keys())
    return is_text(name) and has_keys and nearest(name, TODAY) is None


class FileEntry(NamedTuple):
    """One entry of a file: its location, its name, and why it cannot be read, if so."""

    where: str
    name: str
    section: str
    value: Json
    path: Path
    today: bool = False
    fault: str = ""
    gone: bool = False  # it has no counterpart


class Layout(NamedTuple):
    """The entries of a file, its keys of older formats with their paths, and its default
    database."""

    items: list[FileEntry]
    older: dict[str, Path]
    database: str | None


class _Part(NamedTuple):
    """A section of a file."""

    key: str
    value: Json
    path: Path


def read(value: Json) -> Layout:
    """The entries of a file of any format."""
    root = as_object(value)
    if root is not None:
        parts = [*_parts(root, ())]
    elif _are_objects(value):
        parts = [_Part(OUTER, value, ())]
    else:
        fault = f"The file must be an object, not {kind_of(value)}; nothing was read from it."
        return Layout([FileEntry("", "", "", value, path=(), fault=fault)], {}, None)
    items = [item for part in parts for item in _items(part)]
    older = {_older_key(part): part.path for part in reversed(parts) if _older_key(part)}
    return Layout(items, dict(reversed(older.items())), _database(parts))


def _are_objects(value: Json) -> bool:
    """Whether a value is a list with objects."""
    return any(as_object(each) is not None for each in as_array(value) or ())


def _older_key(part: _Part) -> str:
    """How an older format is known by a key; empty if the key is a current or an unknown one."""
    if part.key == OUTER:
        return "a list of variables" if _are_objects(part.value) else ""
    is_older = part.key in OLDER or (part.key not in TODAY and is_bare(part.key, part.value))
    return repr(part.key) if is_older else ""


def _parts(root: dict[str, Any], path: Path) -> Iterator[_Part]:
    """The sections of a file, without their wrappers."""
    for key, part in root.items():
        inner, where = as_object(part), (*path, key)
        wraps = key == OUTER or (key == "variables" and any(k in SECTIONS for k in inner or ()))
        if wraps and inner is not None:
            yield from _parts(inner, where)
        else:
            yield _Part(str(key), part, where)


def _database(parts: Sequence[_Part]) -> str | None:
    """The default database of the file."""
    for key, part, _ in parts:
        named = (as_object(part) or {}).get("database_name") if key == "schema_overview" else part
        if (key == "schema_overview" or key in _DATABASES) and is_text(named):
            return named
    return None


def _items(part: _Part) -> Iterator[FileEntry]:
    key, value, path = part
    is_section = key in SECTIONS or key in VIEWS
    if is_section and (key != OUTER or value is None or _are_objects(value)):
        yield from _section(part)
    elif key == "schema_overview":
        fault = "It has no counterpart; declare the fields that agents need as variables."
        yield FileEntry(key, key, "", value, path=path, fault=fault, gone=True)
    elif key in _DATABASES:
        fault = f"{preview(value)} is now set in each variable without a database."
        yield FileEntry(key, key, "", value, path=path, fault=fault, gone=True)
    elif is_bare(key, value):
        yield FileEntry(key, key, "", value, path=path)
    else:
        yield FileEntry(
            key, key, "", value, path=path, fault=f"{preview(value)} is not recognised."
        )


def _section(part: _Part) -> Iterator[FileEntry]:
    section, value, path = part
    today = section in TODAY
    if (mapping := as_object(value)) is not None:
        for name, each in mapping.items():
            fault = "" if is_text(name) else f"{preview(name)} is not a name."
            where, own = f"{section}.{name}", (*path, name)
            if name == "":
                yield _listed(where, section, each, own)
                continue
            yield FileEntry(where, str(name), section, each, path=own, today=today, fault=fault)
    elif (entries := as_array(value)) is not None:
        for number, each in enumerate(entries):
            yield _listed(f"{section}[{number}]", section, each, (*path, number))
    elif value is not None:
        fault = f"{preview(value)} is neither an object nor an array."
        yield FileEntry(section, section, "", value, path=path, fault=fault, gone=not today)


def _listed(where: str, section: str, value: Json, path: Path) -> FileEntry:
    """An entry of a list, by its own name."""
    entry, today = as_object(value), section in TODAY
    if entry is None:
        fault = f"{preview(value)} is not an object."
        return FileEntry(where, "", section, value, path=path, fault=fault)
    for key in name_keys(section):
        name: Json = entry.get(key)
        if is_text(name):
            rest = {other: said for other, said in entry.items() if other != key}
            return FileEntry(where, name, section, rest, path=path, today=today)
    fault = f"It has no name: {preview(value)}."
    return FileEntry(where, "", section, value, path=path, fault=fault)


def is_text(value: Json) -> bool:
    """Whether a value is a non-empty text that UTF-8 can encode."""
    if not isinstance(value, str):
        return False
    return value != "" and value == value.encode(errors="replace").decode()


def name_keys(section: str) -> tuple[str, ...]:
    """The keys that hold the name of a list's entries."""
    return ("agent", "agent_name", "name") if section in VIEWS else ("name", "key")


_Source = Literal["static", "environment", "database", "file", "derived"]
Became = _Source | Literal["exposure", "rule", "hook", "left", "unchanged", "lost"]

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


# Keys of older formats, by the current ones.
WORDS = {
    "name": ("key", "agent", "agent_name"),
    "default": ("default_value",),
    "value": ("default", "to"),
    "source": ("database",),
    "field": ("fields",),
    "filter": ("query_template", "query"),
    "search_by": ("query_template", "query"),
    "hide": ("ui_hidden",),
    "variables": ("exposures",),
}


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


class UnconvertedSource(NamedTuple):
    """Why a source cannot be converted, and what does it instead."""

    why: str
    instead: str


class OlderShape(NamedTuple):
    """What shows that a file is of an older format, and where it starts."""

    path: Path
    said: str


class Migrated(NamedTuple):
    """A file in the current format, whether it changed, a note per entry, missing functions, and
    the paths in the old file of parts of the new one."""

    value: Json
    changed: bool
    notes: tuple[Note, ...]
    stubs: tuple[Stub, ...] = ()
    origins: Mapping[Path, tuple[Path, ...]] = MappingProxyType({})
    shape: OlderShape | None = None


@dataclass(slots=True)
class Remarks:
    """Remarks about one entry, collected during its migration."""

    lost: list[str] = field(default_factory=list[str])
    assumed: list[str] = field(default_factory=list[str])
    left: list[str] = field(default_factory=list[str])
    stub: Stub | None = None
    refused: UnconvertedSource | None = None

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
