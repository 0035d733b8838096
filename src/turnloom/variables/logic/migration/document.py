"""Migration of a whole variables file to the current format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turnloom.kernel.documents import Path
from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.exposure import names_in
from turnloom.variables.logic.migration.definitions import Result, define, note_of, replaced, stays
from turnloom.variables.logic.migration.layout import (
    OUTER,
    TODAY,
    VIEWS,
    FileEntry,
    Migrated,
    Note,
    OlderShape,
    Remarks,
    is_text,
    name_keys,
    read,
)

_LOOKS = ("header", "template", "placement", "null_label")
_PLACEMENTS = ("append", "prepend", "replace")
# How many entries of an older format are named.
_NAMED = 3


def show(item: FileEntry) -> Result:
    """Migrate the exposure of an agent."""
    body = _body(item)
    if item.fault or body is None:
        fault = item.fault or f"{preview(item.value)} is not an exposure."
        return Result(stays(item, fault), item.value)
    was = f"older format {item.section!r}"
    if item.section == "agents":
        was = "'agents' with 'exposures'" if "exposures" in body else "'agents'"
    if item.today and as_object(item.value) is not None and "exposures" not in body:
        return Result(Note(item.where, item.name, was, "unchanged"), item.value)
    remarks = Remarks()
    if (said := body.pop("name", item.name)) != item.name:
        remarks.lost.append(replaced(said, item.name))
    entry = _rewrite(dict(body), remarks)
    shown = entry.get("variables", ())
    origins = {("variables", number): _place(item.value, name) for number, name in enumerate(shown)}
    return Result(note_of(item, was, "exposure", remarks), entry, origins=origins)


def _place(view: Json, name: Json) -> Path:
    """Where a view, or one of its exposures, lists a variable."""
    body = as_object(view) or {}
    exposures = as_array(body.get("exposures")) or ()
    places: list[tuple[Path, Json]] = [
        *((("exposures", number, "variables"), each) for number, each in enumerate(exposures)),
        (("variables",), body),
    ]
    for path, each in places:
        listed = as_array((as_object(each) or {}).get("variables")) or []
        if name in listed:
            return (*path, listed.index(name))
    listed = as_array(view) or []
    return (listed.index(name),) if name in listed else ()


def join(listed: dict[str, Any], exposed: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge the entries of one agent in `agents` and `exposures`, and list what is lost."""
    entry = {**listed, **exposed}
    shown = as_array(entry.get("variables")) or []
    unshown = [name for name in as_array(listed.get("variables")) or () if name not in shown]
    lost = [_unexposed(name) for name in unshown]
    for key in _LOOKS:
        if key in listed and listed[key] != entry[key]:
            lost.append(f"Key {key!r} ({preview(listed[key])}) is dropped: an exposure sets it.")
    _agree(entry, lost)
    return entry, lost


def _body(item: FileEntry) -> dict[str, Any] | None:
    """The content of an entry; a list has variables, or exposures under `exposures`."""
    entry, items = as_object(item.value), as_array(item.value)
    if item.section == "exposures" and (entry or items):
        named = {key: said for key, said in (entry or {}).items() if key in name_keys("agents")}
        rest = {key: said for key, said in (entry or {}).items() if key not in named}
        return {**named, "exposures": items if items is not None else [rest]}
    if items is not None:
        return {"variables": items}
    if isinstance(item.value, str):
        return {"variables": [item.value]}
    return dict(entry) if entry is not None else None


def _rewrite(body: dict[str, Any], remarks: Remarks) -> dict[str, Any]:
    exposures = _exposures(body.pop("exposures", None), remarks)
    entry: dict[str, Any] = {}
    listed = _names(body.pop("variables"), remarks) if "variables" in body else None
    shown = [name for each in exposures for name in _names(each.pop("variables", None), remarks)]
    if listed is not None or shown:
        variables = list(dict.fromkeys(shown)) if shown else listed or []
        entry["variables"] = variables
        for name in listed or ():
            if name not in variables:
                remarks.lost.append(_unexposed(name))
    for number, each in enumerate([body, *exposures]):
        _look(each, entry, remarks)
        remarks.drop(each, "an exposure" if number else "the agent")
    _agree(entry, remarks.lost)
    return entry


def _agree(entry: dict[str, Any], lost: list[str]) -> None:
    """Reduce the list to the variables in the template; a template with more is dropped."""
    if not isinstance(entry.get("template"), str):
        return
    shown, listed = names_in(entry["template"]), as_array(entry.get("variables")) or []
    more = [name for name in shown if name not in listed]
    if more or not shown:
        why = f"it shows {more[0]!r}, which is not listed" if more else "it shows no variable"
        lost.append(f"Key 'template' is dropped: {why}.")
        del entry["template"]
        return
    lost += [f"{name!r} is dropped: the template omits it." for name in listed if name not in shown]
    entry["variables"] = [name for name in listed if name in shown]


def _unexposed(name: str) -> str:
    return f"{name!r} is dropped: it was listed, but in no exposure."


def _exposures(value: Json, remarks: Remarks) -> list[dict[str, Any]]:
    if value is None:
        return []
    items = as_array(value)
    found: list[dict[str, Any]] = []
    for item in items if items is not None else [value]:
        if (entry := as_object(item)) is not None:
            found.append(dict(entry))
        else:
            remarks.lost.append(f"An exposure is dropped: {preview(item)} is not an object.")
    if len(found) > 1:
        remarks.assumed.append(f"Its {len(found)} exposures are merged in order.")
    return found


def _names(value: Json, remarks: Remarks) -> list[str]:
    items = as_array(value)
    found: list[str] = []
    for name in items if items is not None else [] if value is None else [value]:
        if isinstance(name, str):
            found += [name] if name not in found else []
        else:
            remarks.lost.append(f"{preview(name)} is dropped: it is not a variable name.")
    return found


def _look(said: dict[str, Any], entry: dict[str, Any], remarks: Remarks) -> None:
    """The display options of an exposure; the first value counts."""
    for key in _LOOKS:
        value = said.get(key)
        if value is None or (key in entry and entry[key] != value):
            continue
        entry[key] = said.pop(key)
        if not (value == "" or is_text(value)) or (key == "placement" and value not in _PLACEMENTS):
            remarks.left.append(f"Key {key!r} stays with the invalid value {preview(value)}.")


def migrate(value: Json) -> Migrated:
    """Migrate a file to the current format, with a note per entry; a current file is unchanged, and
    what is broken stays as it is."""
    try:
        return _migrate(value)
    except RecursionError:
        left = ("It stays: it is nested too deeply.",)
        return Migrated(value, False, (Note("", "", "the whole file", "left", left=left),))


def _migrate(value: Json) -> Migrated:
    layout = read(value)
    results = [
        show(item) if item.section in VIEWS else define(item, layout.database)
        for item in layout.items
    ]
    notes = [result.note for result in results]
    changed = [note.became not in ("unchanged", "left") for note in notes]
    if not layout.older and not any(changed):
        return Migrated(value, False, tuple(notes))
    parts = {key: _Section() for key in TODAY}
    others: dict[str, Json] = {}
    origins: dict[Path, tuple[Path, ...]] = {}
    for number, (item, result) in enumerate(zip(layout.items, results, strict=True)):
        if result.note.became == "lost":
            continue
        if item.section or not item.fault:
            section = parts["agents" if item.section in VIEWS else "definitions"]
            notes[number] = section.add(item, result)
        else:
            others[item.name] = item.value
            origins[OUTER, item.name] = (item.path,)
    renamed = {path: lost for section in parts.values() for path, lost in section.renamed()}
    for number, item in enumerate(layout.items):
        if item.path in renamed:
            lost, became = [*notes[number].lost, *renamed[item.path]], notes[number].became
            kept = "left" if became == "unchanged" else became
            notes[number] = notes[number]._replace(lost=tuple(dict.fromkeys(lost)), became=kept)
    found = {key: section.value for key, section in parts.items()}
    for key, section in parts.items():
        origins |= section.origins((OUTER, key))
    stubs = tuple(each.stub for each in results if each.stub is not None)
    older = [item for item, is_changed in zip(layout.items, changed, strict=True) if is_changed]
    shape = _shape(layout.older, older)
    whole = {OUTER: {**found, **others}}
    return Migrated(whole, True, tuple(notes), stubs, origins=origins, shape=shape)


def _shape(keys: Mapping[str, Path], older: Sequence[FileEntry]) -> OlderShape:
    """What is older in a file: its keys, or the sources of its variables."""
    if keys:
        return OlderShape(next(iter(keys.values())), ", ".join(keys))
    kinds = dict.fromkeys(kind for item in older if (kind := _kind(item)))
    first, names = older[0], ", ".join(repr(item.name) for item in older[:_NAMED])
    if len(older) > _NAMED:
        names = f"{names} and {len(older) - _NAMED} more"
    path = (*first.path, "source", "type") if _kind(first) else first.path
    said = f"source types {', '.join(map(repr, kinds))}, of {names}" if kinds else names
    return OlderShape(path, said)


def _kind(item: FileEntry) -> str:
    source = as_object((as_object(item.value) or {}).get("source")) or {}
    return source["type"] if isinstance(source.get("type"), str) else ""


@dataclass(slots=True)
class _Section:
    """The entries of `definitions` or `agents`: a list if some have no name, or the same one."""

    entries: list[tuple[FileEntry, Result]] = field(default_factory=list[tuple[FileEntry, Result]])
    merged: dict[str, tuple[Path, ...]] = field(default_factory=dict[str, tuple[Path, ...]])

    def add(self, item: FileEntry, result: Result) -> Note:
        """Add an entry, or merge it with the other one of its agent."""
        for number, (first, earlier) in enumerate(self.entries):
            both = as_object(earlier.entry), as_object(result.entry)
            is_same = first.name == item.name and {first.section, item.section} == {*VIEWS}
            if item.name and is_same and both[0] is not None and both[1] is not None:
                entry, note = _joined(first, both[0], both[1], result.note)
                self.entries[number] = first, result._replace(entry=entry)
                self.merged[item.name] = (item.path, first.path)
                return note
        self.entries.append((item, result))
        return result.note

    @property
    def _is_list(self) -> bool:
        names = [item.name for item, _ in self.entries]
        return "" in names or len({*names}) < len(names)

    @property
    def value(self) -> Json:
        """The entries as the current format has them."""
        if not self._is_list:
            return {item.name: result.entry for item, result in self.entries}
        return [_listed(item, result.entry) for item, result in self.entries]

    def renamed(self) -> Iterator[tuple[Path, list[str]]]:
        """The paths of entries that a list calls by one of their names, and what that drops."""
        for item, result in self.entries if self._is_list else ():
            entry = as_object(result.entry) or {}
            said = [key for key in _other_names(item, entry) if entry[key] != item.name]
            if said:
                yield item.path, [replaced(entry[key], item.name) for key in said]

    def origins(self, path: Path) -> Iterator[tuple[Path, tuple[Path, ...]]]:
        """The old paths of the entries, and of parts of them."""
        for number, (item, result) in enumerate(self.entries):
            own = (*path, number if self._is_list else item.name)
            yield own, self.merged.get(item.name, (item.path,))
            for part, old in result.origins.items():
                yield (*own, *part), ((*item.path, *old), item.path)


def _listed(item: FileEntry, entry: Json) -> Json:
    """An entry of a list, with its name."""
    if not item.name:
        return entry
    value = as_object(entry)
    rest = {"source": entry} if value is None else value
    others = _other_names(item, entry)
    return {"name": item.name, **{key: said for key, said in rest.items() if key not in others}}


def _other_names(item: FileEntry, entry: Json) -> list[str]:
    """The keys of an entry that would count as its name in a list."""
    keys = name_keys(item.section)
    found = as_object(entry) or {} if item.name else {}
    first = keys[: keys.index("name")]
    return [key for key in found if key == "name" or (key in first and is_text(found[key]))]


def _joined(
    first: FileEntry, one: dict[str, Any], other: dict[str, Any], note: Note
) -> tuple[dict[str, Any], Note]:
    """Merge two entries of one agent, and the note of the later one."""
    listed, exposed = (other, one) if first.section == "exposures" else (one, other)
    entry, lost = join(listed, exposed)
    assumed = (*note.assumed, f"It is merged with {first.where!r}.")
    return entry, note._replace(became="exposure", lost=(*note.lost, *lost), assumed=assumed)
