"""A replay as people see it: one line, or the first difference side by side."""

import msgspec

from turnloom.explain.spec.text import ReadableExplanation, counted, indent, table
from turnloom.kernel.markup import grid, visible
from turnloom.kernel.values import Json

# Columns of a difference.
SIDES = ("", "in the log", "decided now")


class ReplayedEvent(msgspec.Struct, frozen=True):
    """One side of a difference: an event, in a few words and whole."""

    id: str
    kind: str
    actor: str
    cause: int | None
    words: str
    data: Json


class DifferentField(msgspec.Struct, frozen=True):
    """A part of an event that differs, as it is in the log and as it is decided now."""

    name: str
    recorded: str
    decided: str

    @property
    def cells(self) -> tuple[str, str, str]:
        """Table cells."""
        return self.name, self.recorded, self.decided


class Divergence(msgspec.Struct, frozen=True):
    """The first event that is decided otherwise now: both sides, and the parts that differ. Without
    `decided`, nothing leads to the recorded event any more."""

    seq: int
    recorded: ReplayedEvent
    decided: ReplayedEvent | None
    fields: tuple[DifferentField, ...]


class Replay(ReadableExplanation, frozen=True):
    """The result of a replay. `same` of its `events` are decided as the log has them, with `turns`
    among them; `divergence` is the first difference. `changed_code` names the files or steps whose
    code has changed since the run began."""

    run: str
    workflow: str
    form: str
    events: int
    same: int
    turns: int
    divergence: Divergence | None = None
    changed_code: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.headline]
        if self.divergence is not None:
            rows = table([SIDES, *(each.cells for each in self.divergence.fields)])
            lines += [indent(each, "  ") for each in (*rows, *self.about)]
        return visible("\n".join(lines))

    def _repr_html_(self) -> str:
        fields = self.divergence.fields if self.divergence is not None else ()
        return grid(self.headline, SIDES, (each.cells for each in fields))

    @property
    def headline(self) -> str:
        """The result as one line."""
        about = f"{self.run} {self.workflow}"
        if self.divergence is None:
            return f"✓ {about}: {counted(self.events, 'event')}, {counted(self.turns, 'turn')}"
        return f"✗ {about}: event {self.divergence.seq} of {self.events} is decided otherwise now"

    @property
    def about(self) -> list[str]:
        """The code that has changed since the run began."""
        return [f"Code has changed: {', '.join(self.changed_code)}"] if self.changed_code else []
