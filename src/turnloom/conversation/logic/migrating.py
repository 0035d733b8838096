"""Migration of a whole workflow folder: what becomes of each entry of each file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from turnloom.conversation.logic.earlier import (
    MIDDLEWARE,
    TRANSITIONS,
    other_words,
    prompt_middleware,
    todays_hook,
    todays_rule,
    transitions_in,
)
from turnloom.kernel.documents import DeclarationFile, Folder, Origins, Path
from turnloom.kernel.values import Json, as_array, as_object
from turnloom.variables.logic.migration import WORDS, Note, OlderShape, Stub, migrate

VARIABLES = "context_variables"
DERIVATIONS = "derivations.py"

# Names of entries, by the first of these keys that they have.
_NAMES = ("name", "function", "agent_name", "agent")
# Keys that hold entries by name.
_SECTIONS = ("agents", "models", "registry", "structured_outputs", "handoffs", "tools", "hooks")

_HEAD = '''\
"""Functions that derive variables from the events of a run."""

from turnloom import derivation
'''


# Files of later releases, and the current ones.
_FILES = {"transition_graph": "handoffs", "middleware": "hooks"}

# Keys of handoffs and hooks in other releases, by the current ones.
_WORDS = {
    "hooks": (MIDDLEWARE,),
    "hook_agent": ("agent",),
    "handoff_rules": ("handoffs", TRANSITIONS),
    "source_agent": ("from",),
    "target_agent": ("to",),
    "handoff_type": ("transition_type",),
    "condition": ("context_expression", "condition_key"),
}


class FileMigration(NamedTuple):
    """The migration of one file: its current content, whether it changed, a note per entry, where
    parts of it come from, and what shows its former shape."""

    file: str
    value: Json
    changed: bool
    notes: tuple[Note, ...]
    stubs: tuple[Stub, ...] = ()
    origins: Origins = MappingProxyType({})
    shape: OlderShape | None = None


class TodaysFolder(NamedTuple):
    """A folder whose declarations have the current shape, at the positions of the former ones; the
    migrations that are left to write, by part; and the functions that they will add."""

    folder: Folder
    pending: Mapping[str, FileMigration] = MappingProxyType({})

    @property
    def stubs(self) -> frozenset[str]:
        """The functions that the migrations add."""
        return frozenset(stub.function for each in self.pending.values() for stub in each.stubs)


def todays_folder(folder: Folder) -> TodaysFolder:
    """The folder as `turnloom migrate` will write it: the check names its faults in one go."""
    found = {
        part: _migrate(part, folder.documents[part])
        for part in (VARIABLES, "handoffs", "hooks")
        if part in folder.documents
    }
    pending = {part: each for part, each in found.items() if each.changed}
    if not pending:
        return TodaysFolder(folder)
    documents = {
        part: folder.documents[part].rewritten(each.value, each.origins, _WORDS | WORDS)
        for part, each in pending.items()
    }
    todays = TodaysFolder(replace(folder, documents={**folder.documents, **documents}), pending)
    if not todays.stubs:
        return todays
    code = {DERIVATIONS: "", **folder.code}
    return todays._replace(folder=replace(todays.folder, code=code))


def migrate_documents(documents: Mapping[str, DeclarationFile]) -> list[FileMigration]:
    """Migrate the files of a folder, by part; the variables come first."""
    parts = sorted(documents, key=lambda part: (part != VARIABLES, part))
    return [_migrate(part, documents[part]) for part in parts]


def unread_file(file: str) -> FileMigration:
    """The note of a file that is no part of a workflow."""
    why = "Nothing here reads it; another system may."
    return FileMigration(file, None, False, (Note(file, "", "a file", "left", assumed=(why,)),))


def derivations(stubs: Sequence[Stub], existing: str | None) -> str:
    """The text of `derivations.py` with a function for each stub that it does not define yet."""
    text = _HEAD if existing is None else existing
    missing = [stub for stub in stubs if f"def {stub.function}(" not in text]
    if missing and "derivation" not in text:
        text = f"{text.rstrip()}\n\nfrom turnloom import derivation\n"
    return text + "".join(map(_function, missing))


def _function(stub: Stub) -> str:
    about = "".join(f"    # {' '.join(line.split())}\n" for line in stub.about)
    sentence = f"Write {stub.function} in {DERIVATIONS}: it derives {stub.variable!r}."
    return (
        f"\n\n@derivation\ndef {stub.function}(event, values):\n"
        f"    # Return the value of {stub.variable!r} after this event, or `UNCHANGED`.\n"
        f"    # If a tool sets it, delete this function and its trigger instead.\n{about}"
        f"    raise NotImplementedError({sentence!r})\n"
    )


def _migrate(part: str, document: DeclarationFile) -> FileMigration:
    if part == VARIABLES:
        return FileMigration(document.file, *migrate(document.value))
    if part == "handoffs":
        return _handoffs(document)
    if part == "hooks" and prompt_middleware(document.value) is not None:
        return _hooks(document)
    notes = [Note(where, name, "", "unchanged") for where, name in _entries(document.value, "")]
    return FileMigration(document.file, document.value, False, tuple(notes))


def _entries(value: Json, path: str) -> Iterator[tuple[str, str]]:
    """The entries of a file: items of its lists, names of its sections, and its other keys."""
    mapping = as_object(value)
    if mapping is None:
        for number, item in enumerate(as_array(value) or ()):
            yield f"{path}[{number}]", _name(item)
        return
    for key, inside in mapping.items():
        where = f"{path}.{key}" if path else str(key)
        if as_array(inside) is not None or (key in _SECTIONS and as_object(inside) is not None):
            yield from _entries(inside, where)
        else:
            yield where, str(key)


def _name(item: Json) -> str:
    entry = as_object(item) or {}
    if isinstance(entry.get("source_agent"), str):
        return f"{entry['source_agent']} → {entry.get('target_agent')}"
    return next((entry[key] for key in _NAMES if isinstance(entry.get(key), str)), "")


def _handoffs(document: DeclarationFile) -> FileMigration:
    """Migrate handoffs that another release writes with `from` and `to`, or as transitions, which
    have a file of their own."""
    notes: list[Note] = []
    value = _rules(document.value, "", notes)
    is_graph = transitions_in(document.value)
    changed = is_graph or any(note.became != "unchanged" for note in notes)
    if changed and as_array((as_object(value) or {}).get("handoffs")) is not None:
        value = {"handoff_rules" if key == "handoffs" else key: value[key] for key in value}
    if is_graph:
        value = {"handoff_rules" if key == TRANSITIONS else key: value[key] for key in value}
    shape = _shape(document.value) if changed else None
    return FileMigration(document.file, value, changed, tuple(notes), shape=shape)


def _hooks(document: DeclarationFile) -> FileMigration:
    """Migrate the prompt middleware of a later release, which has a file of its own."""
    items = prompt_middleware(document.value) or []
    notes = [
        Note(f"{MIDDLEWARE}[{number}]", _name(item), "prompt middleware", "hook")
        for number, item in enumerate(items)
    ]
    value = {**(as_object(document.value) or {}), "hooks": [*map(todays_hook, items)]}
    del value[MIDDLEWARE]
    shape = OlderShape((MIDDLEWARE,), f"`{MIDDLEWARE}`")
    return FileMigration(document.file, value, True, tuple(notes), shape=shape)


def _shape(value: Json) -> OlderShape:
    """The keys of handoffs of other releases, and the first of them."""
    found = [*_other_rules(value, ())]
    words = dict.fromkeys(word for _, rule in found for word in other_words(rule))
    said = " and ".join(f"`{word}`" for word in words or (TRANSITIONS,))
    return OlderShape(found[0][0] if found else (TRANSITIONS,), said)


def _other_rules(value: Json, path: Path) -> Iterator[tuple[Path, Json]]:
    """The rules of other releases, with their paths."""
    for number, item in enumerate(as_array(value) or ()):
        if todays_rule(item) is not None:
            yield (*path, number), item
    for key, inside in (as_object(value) or {}).items():
        yield from _other_rules(inside, (*path, key))


def written_to(file: str) -> str:
    """The file that gets the migrated content of another."""
    folder, slash, name = file.rpartition("/")
    stem, dot, suffix = name.partition(".")
    return folder + slash + _FILES.get(stem, stem) + dot + suffix


def _rules(value: Json, path: str, notes: list[Note]) -> Json:
    items, mapping = as_array(value), as_object(value)
    if items is not None:
        return [_rule(item, f"{path}[{number}]", notes) for number, item in enumerate(items)]
    if mapping is None:
        return value
    return {
        key: _rules(inside, f"{path}.{key}" if path else str(key), notes)
        for key, inside in mapping.items()
    }


def _rule(item: Json, where: str, notes: list[Note]) -> Json:
    todays = todays_rule(item)
    if todays is None:
        notes.append(Note(where, _name(item), "", "unchanged"))
        return item
    rule, was, assumed, left = todays
    notes.append(Note(where, _name(rule), was, "rule", assumed=assumed, left=left))
    return rule
