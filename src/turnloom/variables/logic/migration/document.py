"""A whole file of any shape as a file of today's."""

from collections.abc import Sequence
from typing import Any

from turnloom.kernel.values import Json
from turnloom.variables.logic.migration.definitions import Result, define
from turnloom.variables.logic.migration.layout import OUTER, VIEWS, Item, read
from turnloom.variables.logic.migration.notes import Migrated, Note
from turnloom.variables.logic.migration.views import join, show
from turnloom.variables.spec import BAKED_IN, BASE


def migrate(value: Json) -> Migrated:
    """A file of any shape in today's, with a note per entry; today's shape stays as it is."""
    try:
        return _migrate(value)
    except RecursionError:
        fault = "It is nested too deeply to be read."
        note = Note("", "", "the whole file", "lost", (fault,))
        return Migrated({OUTER: {"definitions": {}, "agents": {}}}, True, (note,))


def _migrate(value: Json) -> Migrated:
    layout = read(value)
    results: list[Result | None] = [
        None if item.section in VIEWS else define(item, layout.database) for item in layout.items
    ]
    definitions, notes = _by_name(layout.items, results)
    names = frozenset({*definitions, *BASE, *BAKED_IN})
    results = [show(item, names) if item.section in VIEWS else None for item in layout.items]
    agents, more = _by_name(layout.items, results)
    every = tuple(note for pair in zip(notes, more, strict=True) for note in pair if note)
    if layout.today and all(note.became == "unchanged" for note in every):
        return Migrated(value, False, every)
    return Migrated({OUTER: {"definitions": definitions, "agents": agents}}, True, every)


def _by_name(
    items: Sequence[Item], results: Sequence[Result | None]
) -> tuple[dict[str, dict[str, Any]], list[Note | None]]:
    """The entries by name and their notes; of two with one name, the later counts."""
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
    first: Item, one: dict[str, Any], other: dict[str, Any], note: Note
) -> tuple[dict[str, Any], Note]:
    """One entry of two about the same agent, and the note of the later."""
    listed, exposed = (other, one) if first.section == "exposures" else (one, other)
    entry, lost = join(listed, exposed)
    assumed = (*note.assumed, f"It is joined with {first.where!r}.")
    return entry, note._replace(became="exposure", lost=(*note.lost, *lost), assumed=assumed)


def _replaced(note: Note | None, where: str) -> Note | None:
    why = f"It is declared again at {where!r}, and that one counts."
    return note and note._replace(became="lost", lost=(*note.lost, why), assumed=())
