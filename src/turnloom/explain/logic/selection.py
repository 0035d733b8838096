"""Choices among candidates, from the log."""

from collections.abc import Sequence

from turnloom.explain.spec.selection import Selected
from turnloom.guards.events import SelectionMade
from turnloom.log.spec import Event


def selection_at(events: Sequence[Event], moment: str) -> Selected | None:
    """The choice that was made at a moment: that is what ids of its events begin with."""
    for event in events:
        if isinstance(event.data, SelectionMade) and event.id.startswith(f"{moment}/"):
            return selected(event, event.data)
    return None


def selected(event: Event, fact: SelectionMade) -> Selected:
    """A choice as it is told."""
    return Selected(
        event.seq,
        fact.chosen,
        fact.meant,
        fact.category,
        fact.confidence,
        fact.candidates,
        fact.excluded,
        fact.notes,
    )
