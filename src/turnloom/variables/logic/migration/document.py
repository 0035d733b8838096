"""Migration of a whole variables file to the current format."""

from collections.abc import Sequence, Set
from typing import Any

from pydantic import ValidationError

from turnloom.kernel.values import Json, as_array, as_object, preview
from turnloom.variables.logic.exposure import names_in, names_of
from turnloom.variables.logic.migration.definitions import Result, define, note_of, unreadable
from turnloom.variables.logic.migration.layout import (
    OUTER,
    VIEWS,
    FileEntry,
    Migrated,
    Note,
    Remarks,
    Stub,
    is_text,
    name_keys,
    read,
)
from turnloom.variables.logic.types import same
from turnloom.variables.spec import BAKED_IN, BASE, Exposure

_LOOKS = ("header", "template", "placement", "null_label")
_PLACEMENTS = ("append", "prepend", "replace")


def show(item: FileEntry, gone: Set[str]) -> Result:
    """Migrate the exposure of an agent. A variable that is gone, or that the file never declared,
    stays: the check reports it."""
    body = _body(item)
    if item.fault or body is None:
        fault = item.fault or f"{preview(item.value)} is not an exposure."
        return Result(unreadable(item, fault), None)
    was = f"older format {item.section!r}"
    today = item.today and as_object(item.value) is not None
    if item.section == "agents":
        was = "'agents' with 'exposures'" if "exposures" in body else "'agents'"
    remarks = Remarks()
    if body.pop("name", item.name) != item.name:
        remarks.lost.append(f"Its other name is replaced by {item.name!r}.")
    if today and not remarks.lost and _passes(item.name, body, gone):
        return Result(Note(item.where, item.name, was, "unchanged"), body)
    entry = _rewrite(dict(body), gone, remarks)
    if today and not remarks.lost and same(entry, body):
        return Result(Note(item.where, item.name, was, "unchanged"), entry)
    return Result(note_of(item, was, "exposure", remarks), entry)


def join(listed: dict[str, Any], exposed: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Merge the entries of one agent in `agents` and `exposures`, and list what is lost."""
    entry = {**listed, **exposed}
    unshown = [name for name in listed.get("variables", ()) if name not in entry["variables"]]
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
    return {} if item.value is None else dict(entry) if entry is not None else None


def _passes(name: str, body: dict[str, Any], gone: Set[str]) -> bool:
    """Whether an entry passes the current check, but for undeclared variables."""
    try:
        exposure = Exposure.model_validate({**body, "name": name})
    except ValidationError:
        return False
    if exposure.template is not None and {*names_of(exposure)} != {*exposure.variables}:
        return False
    return gone.isdisjoint(exposure.variables)


def _rewrite(body: dict[str, Any], gone: Set[str], remarks: Remarks) -> dict[str, Any]:
    exposures = _exposures(body.pop("exposures", None), remarks)
    entry: dict[str, Any] = {}
    listed = _names(body.pop("variables"), remarks) if "variables" in body else None
    shown = [name for each in exposures for name in _names(each.pop("variables", None), remarks)]
    if listed is not None or shown:
        variables = list(dict.fromkeys(shown)) if shown else listed or []
        entry["variables"] = variables
        remarks.left += [f"{name!r} stays: declare it." for name in variables if name in gone]
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
    if "template" not in entry:
        return
    shown, listed = names_in(entry["template"]), entry.get("variables", [])
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
        if (value == "" or is_text(value)) and (key != "placement" or value in _PLACEMENTS):
            entry[key] = said.pop(key)
        else:
            remarks.lost.append(
                f"Key {key!r} has the invalid value {preview(said.pop(key))}; it is dropped."
            )


def migrate(value: Json) -> Migrated:
    """Migrate a file to the current format, with a note per entry; a current file is unchanged."""
    try:
        return _migrate(value)
    except RecursionError:
        fault = "It is nested too deeply."
        note = Note("", "", "the whole file", "lost", lost=(fault,))
        return Migrated({OUTER: {"definitions": {}, "agents": {}}}, True, (note,))


def _migrate(value: Json) -> Migrated:
    layout = read(value)
    results: list[Result | None] = [
        None if item.section in VIEWS else define(item, layout.database) for item in layout.items
    ]
    definitions, notes = _by_name(layout.items, results)
    stubs = _stubs(results, definitions)
    declared = {item.name for item in layout.items if item.section not in VIEWS}
    gone = declared - {*definitions, *BASE, *BAKED_IN}
    results = [show(item, gone) if item.section in VIEWS else None for item in layout.items]
    agents, more = _by_name(layout.items, results)
    every = tuple(note for pair in zip(notes, more, strict=True) for note in pair if note)
    if layout.today and all(note.became == "unchanged" for note in every):
        return Migrated(value, False, every)
    kept = {item.name: item.value for item in layout.items if item.kept}
    found = {OUTER: {"definitions": definitions, "agents": agents, **kept}}
    if same(found, value):
        return Migrated(value, False, every)
    return Migrated(found, True, every, stubs)


def _stubs(
    results: Sequence[Result | None], definitions: dict[str, dict[str, Any]]
) -> tuple[Stub, ...]:
    """The functions of the definitions that count."""
    found = [each for each in results if each is not None and each.stub is not None]
    kept = [each.stub for each in found if each.entry is definitions.get(each.note.name)]
    return tuple(stub for stub in kept if stub is not None)


def _by_name(
    items: Sequence[FileEntry], results: Sequence[Result | None]
) -> tuple[dict[str, dict[str, Any]], list[Note | None]]:
    """The entries by name and their notes; of duplicates, the later one counts."""
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    notes = [result.note if result else None for result in results]
    for number, (item, result) in enumerate(zip(items, results, strict=True)):
        if result is None or result.entry is None:
            continue
        entry, note, earlier = result.entry, result.note, places.get(item.name)
        if earlier is not None:
            first = items[earlier]
            if {first.section, item.section} == {"agents", "exposures"}:
                entry, notes[number] = _joined(first, found[item.name], entry, note)
            else:
                notes[earlier] = _replaced(notes[earlier], item.where)
        found[item.name], places[item.name] = entry, number
    return found, notes


def _joined(
    first: FileEntry, one: dict[str, Any], other: dict[str, Any], note: Note
) -> tuple[dict[str, Any], Note]:
    """Merge two entries of one agent, and the note of the later one."""
    listed, exposed = (other, one) if first.section == "exposures" else (one, other)
    entry, lost = join(listed, exposed)
    assumed = (*note.assumed, f"It is merged with {first.where!r}.")
    return entry, note._replace(became="exposure", lost=(*note.lost, *lost), assumed=assumed)


def _replaced(note: Note | None, where: str) -> Note | None:
    why = f"It is replaced by the later declaration at {where!r}."
    return note and note._replace(became="lost", lost=(*note.lost, why), assumed=(), left=())
